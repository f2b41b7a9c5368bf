// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/join/cm_library.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <cstring>

#include "verbs/finder.h"

namespace ulc::verbs {
namespace {

constexpr LibraryNeed kNeed = {.by = "multicast groups of a subnet manager need",
                               .packages = "librdmacm1",
                               .a_package = "librdmacm1 of rdma-core 15 or later"};

int never_wait(rdma_event_channel* channel) {
    const int flags = fcntl(channel->fd, F_GETFL);
    return flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0 ? errno : 0;
}

void wait_for_event(rdma_event_channel* channel, int milliseconds) {
    pollfd wanted{.fd = channel->fd, .events = POLLIN, .revents = 0};
    static_cast<void>(poll(&wanted, 1, milliseconds));
}

std::vector<sockaddr_storage> addresses_here() {
    std::vector<sockaddr_storage> out;
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return out;
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
        const int family = each->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        sockaddr_storage address{};
        std::memcpy(&address, each->ifa_addr,
                    family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        out.push_back(address);
    }
    freeifaddrs(list);
    return out;
}

}  // namespace

Err load(CmLibrary& out, std::string& why, const char* file) {
    Finder finder(file);
    finder.find(out.create_event_channel, "rdma_create_event_channel");
    finder.find(out.destroy_event_channel, "rdma_destroy_event_channel");
    finder.find(out.create_id, "rdma_create_id");
    finder.find(out.destroy_id, "rdma_destroy_id");
    finder.find(out.bind_addr, "rdma_bind_addr");
    finder.find(out.join_multicast, "rdma_join_multicast");
    finder.find(out.leave_multicast, "rdma_leave_multicast");
    finder.find(out.get_cm_event, "rdma_get_cm_event");
    finder.find(out.ack_cm_event, "rdma_ack_cm_event");
    if (const Err e = finder.result(kNeed, why); e != Err::kOk) return e;
    out.never_wait = never_wait;
    out.wait = wait_for_event;
    out.addresses = addresses_here;
    return Err::kOk;
}

}  // namespace ulc::verbs
