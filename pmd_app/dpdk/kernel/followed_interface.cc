// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/kernel/followed_interface.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ulc::dpdk {

Err FollowedInterface::open(const std::string& name, const Mac& mac, std::uint16_t mtu,
                            std::unique_ptr<FollowedInterface>& out, std::string& why) {
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        why = "packet socket on " + name + ": " +
              std::strerror(errno) +  // NOLINT(concurrency-mt-unsafe): start-up
              "; it needs CAP_NET_RAW: run as root, or: setcap cap_net_raw+ep PROGRAM";
        return errno == EPERM ? Err::kPermission : Err::kSystem;
    }
    std::unique_ptr<FollowedInterface> made(new FollowedInterface(fd));
    const int index = made->kernel_.find(name);
    if (index == 0) {
        why = "no network interface '" + name + "'; 'ip link' shows those there are";
        return Err::kInvalid;
    }
    const port::InterfaceCalls calls =
        made->kernel_.calls([](void*, int) { return false; }, nullptr);
    made->watch_.begin(calls, name, index, mac, mtu);
    out = std::move(made);
    return Err::kOk;
}

FollowedInterface::~FollowedInterface() { close(socket_); }

}  // namespace ulc::dpdk
