// SPDX-License-Identifier: BSD-3-Clause
// The kernel's answers about a network interface, through a packet socket (watch.h).
// Its memberships live as long as that socket. Each call is a system call or a few.
#pragma once

#include "port/interface/watch.h"

namespace ulc::port {

class KernelInterface {
public:
    /// socket: an open packet socket, which the caller closes after this object's last call.
    explicit KernelInterface(int socket) noexcept : socket_(socket) {}

    /// Returns the table of calls over this object. bind: InterfaceCalls::bind.
    [[nodiscard]] InterfaceCalls calls(bool (*bind)(void* context, int index), void* bind_context);

    [[nodiscard]] bool read(int index, InterfaceReading& out) const;
    [[nodiscard]] int find(const std::string& name) const noexcept;
    /// Lets frames for an address pass at the interface of that index. False: it cannot. An
    /// interface of kind macvlan says that it can, and passes frames for its own address alone.
    [[nodiscard]] bool keep_address(int index, const Mac& address) const noexcept;

private:
    int socket_;
};

}  // namespace ulc::port
