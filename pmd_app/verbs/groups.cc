// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/groups.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ulc::verbs {
namespace {

ibv_gid raw_of(const Gid& gid) noexcept {
    ibv_gid raw{};
    std::memcpy(raw.raw, gid.data(), gid.size());
    return raw;
}

}  // namespace

int join_ip_group(const Gid& group, bool v4, const Gid& own, std::uint32_t interface) {
    const int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    int result = 0;
    if (v4) {
        ip_mreq request{};
        std::memcpy(&request.imr_multiaddr, group.data() + 12, 4);
        std::memcpy(&request.imr_interface, own.data() + 12, 4);
        result = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
    } else {
        ipv6_mreq request{};
        std::memcpy(&request.ipv6mr_multiaddr, group.data(), group.size());
        request.ipv6mr_interface = interface;
        result = setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof request);
    }
    if (result == 0) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

Groups::~Groups() {
    for (std::uint16_t n = 0; n < kGroups; ++n)
        if (joined_[n]) leave(n);
    drop_handles();
}

void Groups::want(const std::bitset<kGroups>& groups) noexcept {
    wanted_ = groups;
    wanted_[kBroadcastGroup] = true;
}

int Groups::start() noexcept {
    if (membership_ != nullptr) {
        membership_->want(wanted_);
        membership_->wait();
    }
    return settle();
}

int Groups::settle() noexcept {
    if (membership_ != nullptr) return settle_members();
    int first_error = 0;
    for (std::uint16_t n = 0; n < kGroups; ++n) {
        if (wanted_[n] == joined_[n]) continue;
        if (!wanted_[n]) {
            leave(n);
        } else if (const int error = join(n); error != 0 && first_error == 0) {
            first_error = error;
        }
    }
    return first_error;
}

int Groups::join(std::uint16_t group) noexcept {
    if (adapter_.routable()) {
        const int fd = verbs_.join_ip_group(mgid(group), adapter_.v4(), adapter_.own().gid,
                                            adapter_.interface());
        if (fd < 0) return errno;
        sockets_[group] = fd + 1;
    }
    const int error = attach(group);
    if (error != 0) {
        if (sockets_[group] != 0) close(sockets_[group] - 1);
        sockets_[group] = 0;
    }
    return error;
}

int Groups::attach(std::uint16_t group) noexcept {
    const ibv_gid raw = raw_of(mgid(group));
    const int error = verbs_.attach_mcast(adapter_.qp(), &raw, places_[group].lid);
    if (error == 0) joined_[group] = true;
    return error;
}

/// The queue pair is attached to the groups that are wanted and of which the node is a member.
int Groups::settle_members() noexcept {
    membership_->want(wanted_ | sent_to_);
    membership_->step();
    int first_error = membership_->error();
    for (std::uint16_t n = 0; n < kGroups; ++n) {
        const bool member = membership_->is_member(n);
        const bool is_elsewhere = member && places_[n] != membership_->place(n);
        if (joined_[n] && (!member || !wanted_[n] || is_elsewhere)) leave(n);
        if (is_elsewhere) {
            moved_ |= handles_[n] != nullptr;
            places_[n] = membership_->place(n);
        }
        if (member && wanted_[n] && !joined_[n]) {
            const int error = attach(n);
            if (error != 0 && first_error == 0) first_error = error;
        }
    }
    return first_error;
}

void Groups::leave(std::uint16_t group) noexcept {
    const ibv_gid raw = raw_of(mgid(group));
    static_cast<void>(verbs_.detach_mcast(adapter_.qp(), &raw, places_[group].lid));
    if (sockets_[group] != 0) close(sockets_[group] - 1);
    sockets_[group] = 0;
    joined_[group] = false;
}

ibv_ah* Groups::make_handle(std::uint16_t group) noexcept {
    if (membership_ != nullptr && !membership_->is_member(group)) {
        sent_to_[group] = true;
        return nullptr;
    }
    handles_[group] =
        adapter_.make_handle(mgid(group), places_[group].lid, places_[group].service_level);
    return handles_[group];
}

void Groups::drop_handles() noexcept {
    for (ibv_ah*& handle : handles_) {
        if (handle != nullptr) verbs_.destroy_ah(handle);
        handle = nullptr;
    }
}

}  // namespace ulc::verbs
