// SPDX-License-Identifier: BSD-3-Clause
// Follows the kernel's interface under a DPDK port: that of af_packet and AF_XDP, the one behind
// net_tap, and that of a card which its driver shares with the kernel. Their drivers read its MAC
// address once, when they open. Their ports cannot be bound again: if the interface is removed, the
// port stays down.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "port/interface/kernel.h"
#include "port/interface/watch.h"

namespace ulc::dpdk {

class FollowedInterface {
public:
    enum class Mtu : std::uint8_t { kFollowed, kDrivers };  ///< kDrivers: the kernel's is not asked

    /// info: that of the port. Errors: kInvalid (no such interface), kPermission, kSystem.
    static Err open(const std::string& name, const PortInfo& info, Mtu mtu,
                    std::unique_ptr<FollowedInterface>& out, std::string& why);
    ~FollowedInterface();
    FollowedInterface(const FollowedInterface&) = delete;
    FollowedInterface& operator=(const FollowedInterface&) = delete;

    [[nodiscard]] port::InterfaceWatch& watch() noexcept { return watch_; }

private:
    FollowedInterface(int socket, Mtu mtu) noexcept : socket_(socket), mtu_(mtu), kernel_(socket) {}

    static bool read(void* context, int index, port::InterfaceReading& out);

    int socket_;  ///< receives nothing; holds the membership of a kept address
    Mtu mtu_;
    port::KernelInterface kernel_;
    port::InterfaceWatch watch_;
};

}  // namespace ulc::dpdk
