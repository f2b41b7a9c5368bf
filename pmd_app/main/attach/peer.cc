// SPDX-License-Identifier: BSD-3-Clause
#include "main/attach/peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/process_start.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59  // Linux 4.13
#endif

namespace ulc::daemon {
namespace {

constexpr std::size_t kGroupsUsual = 32;

bool is_shortage(int number) {
    return number == EMFILE || number == ENFILE || number == ENOMEM || number == ENOBUFS;
}

/// True if the process has ended.
bool is_over(int pidfd) {
    pollfd look{pidfd, POLLIN, 0};
    return poll(&look, 1, 0) != 0;
}

}  // namespace

Nanos boottime_now() noexcept {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<Nanos>(now.tv_sec) * kSecond + now.tv_nsec;
}

bool peer_of(int socket, bool with_groups, Peer& out) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
    out.pid = peer.pid;
    out.uid = peer.uid;
    out.gid = peer.gid;
    if (!with_groups) return true;
    out.groups.resize(kGroupsUsual);
    for (int n = 0; n < 2; ++n) {
        length = static_cast<socklen_t>(out.groups.size() * sizeof(gid_t));
        const int status =
            getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, out.groups.data(), &length);
        const bool too_small = status != 0 && errno == ERANGE;
        out.groups.resize(status == 0 || too_small ? length / sizeof(gid_t) : 0);
        if (!too_small) return true;
    }
    out.groups.clear();  // the list grew in between; the primary group counts
    return true;
}

bool may_attach(const AllowList& allowed, const Peer& peer) {
    const auto has = [](const auto& list, auto id) {
        return std::find(list.begin(), list.end(), id) != list.end();
    };
    return allowed.all || peer.uid == 0 || peer.uid == geteuid() || has(allowed.uids, peer.uid) ||
           has(allowed.gids, peer.gid) ||
           std::ranges::any_of(peer.groups, [&](gid_t gid) { return has(allowed.gids, gid); });
}

// SO_PEERPIDFD names the very process that connected. Before Linux 6.5 its number may have passed
// to a process that started later; such a one started after the connection was made. The start that
// /proc shows is that of the process if it still has its number afterwards.
Liveness watch_process(int socket, Peer& peer, Nanos connected_at, int& pidfd) {
    pidfd = -1;
    socklen_t length = sizeof pidfd;
    const bool exact = getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0;
    if (!exact) {
        if (is_shortage(errno)) return Liveness::kNoRoom;
        if (errno != ENOPROTOOPT && errno != ENOSYS) return Liveness::kGone;
        if (peer.pid <= 0) return Liveness::kUnknown;
        pidfd = static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0));
        if (pidfd < 0) {
            if (is_shortage(errno)) return Liveness::kNoRoom;
            return errno == ESRCH ? Liveness::kGone : Liveness::kUnknown;
        }
    }
    if (peer.pid > 0) peer.start_ticks = process_start_ticks(static_cast<std::uint32_t>(peer.pid));
    const Nanos tick = kSecond / sysconf(_SC_CLK_TCK);
    const bool later = static_cast<Nanos>(peer.start_ticks) * tick > connected_at;
    if ((exact || !later) && !is_over(pidfd)) return Liveness::kWatched;
    close(pidfd);
    pidfd = -1;
    return Liveness::kGone;
}

}  // namespace ulc::daemon
