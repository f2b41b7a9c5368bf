// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/address/followed_interface.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ulc::dpdk {

bool FollowedInterface::read(void* context, int index, port::InterfaceReading& out) {
    const auto& self = *static_cast<const FollowedInterface*>(context);
    if (!self.kernel_.read(index, out)) return false;
    if (self.mtu_ == Mtu::kDrivers) out.mtu = 0;
    return true;
}

Err FollowedInterface::open(const std::string& name, const PortInfo& info, Mtu mtu,
                            std::unique_ptr<FollowedInterface>& out, std::string& why) {
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        why = "packet socket on " + name + ": " +
              std::strerror(errno) +  // NOLINT(concurrency-mt-unsafe): start-up
              "; it needs CAP_NET_RAW: run as root, or: setcap cap_net_raw+ep PROGRAM";
        return errno == EPERM ? Err::kPermission : Err::kSystem;
    }
    std::unique_ptr<FollowedInterface> made(new FollowedInterface(fd, mtu));
    const int index = made->kernel_.find(name);
    if (index == 0) {
        why = "no network interface '" + name + "'; 'ip link' shows those there are";
        return Err::kInvalid;
    }
    port::InterfaceReading reading;
    if (mtu == Mtu::kDrivers && made->kernel_.read(index, reading) && reading.mac != info.mac) {
        why = "it is not that of the port";
        return Err::kInvalid;
    }
    port::InterfaceCalls calls;
    calls.context = made.get();
    calls.read = read;
    calls.find = [](void* context, const std::string& wanted) {
        return static_cast<const FollowedInterface*>(context)->kernel_.find(wanted);
    };
    calls.bind = [](void*, int) { return false; };
    calls.keep_address = [](void* context, int at, const Mac& address) {
        return static_cast<const FollowedInterface*>(context)->kernel_.keep_address(at, address);
    };
    made->watch_.begin(calls, name, index, info.mac, info.mtu);
    out = std::move(made);
    return Err::kOk;
}

FollowedInterface::~FollowedInterface() { close(socket_); }

}  // namespace ulc::dpdk
