// SPDX-License-Identifier: BSD-3-Clause
// Follows the kernel's interface under DPDK's af_packet, whose driver reads it once, when it opens.
// The driver's socket cannot be bound again: if the interface is removed, the port stays down.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "port/interface/kernel.h"
#include "port/interface/watch.h"

namespace ulc::dpdk {

class FollowedInterface {
public:
    /// mac, mtu: those of the port. Errors: kInvalid (no such interface), kPermission, kSystem.
    static Err open(const std::string& name, const Mac& mac, std::uint16_t mtu,
                    std::unique_ptr<FollowedInterface>& out, std::string& why);
    ~FollowedInterface();
    FollowedInterface(const FollowedInterface&) = delete;
    FollowedInterface& operator=(const FollowedInterface&) = delete;

    [[nodiscard]] port::InterfaceWatch& watch() noexcept { return watch_; }

private:
    explicit FollowedInterface(int socket) noexcept : socket_(socket), kernel_(socket) {}

    int socket_;  ///< receives nothing; holds the membership of a kept address
    port::KernelInterface kernel_;
    port::InterfaceWatch watch_;
};

}  // namespace ulc::dpdk
