// SPDX-License-Identifier: BSD-3-Clause
// Follows the MAC address of a device that has no interface of the kernel: DPDK changes it when a
// bonding device changes its first member, or when a virtual function was reset by its host. The
// device is asked to pass frames for the old address too. Engine thread only, and only while no
// other thread stops or closes the device.
#pragma once

#include <cstdint>
#include <string>

#include "port/interface/watch.h"

namespace ulc::dpdk {

class FollowedStation {
public:
    /// ethdev: an open port. name: for sentences. info: that of the port.
    void begin(std::uint16_t ethdev, const std::string& name, const PortInfo& info);
    [[nodiscard]] port::InterfaceWatch& watch() noexcept { return watch_; }

private:
    std::uint16_t ethdev_ = 0;
    std::string name_;
    port::InterfaceWatch watch_;
};

}  // namespace ulc::dpdk
