// SPDX-License-Identifier: BSD-3-Clause
#include "main/attach/peer.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59  // Linux 4.13
#endif

namespace ulc::daemon {
namespace {

constexpr int kStartTimeField = 22;  // of /proc/PID/stat, proc(5)
constexpr std::size_t kGroupsUsual = 32;

bool is_shortage(int number) {
    return number == EMFILE || number == ENFILE || number == ENOMEM || number == ENOBUFS;
}

/// Returns the start of the process of that number, as CLOCK_BOOTTIME; kNever: unknown.
Nanos started_at(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');  // the name may hold anything
    if (name_end == std::string::npos) return kNever;
    std::istringstream fields(text.substr(name_end + 1));
    std::string field;
    for (int n = 3; n <= kStartTimeField; ++n)
        if (!(fields >> field)) return kNever;
    const long ticks_per_second = sysconf(_SC_CLK_TCK);
    return static_cast<Nanos>(std::strtoull(field.c_str(), nullptr, 10)) *
           (kSecond / ticks_per_second);
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
// to a process that started later; such a one started after the connection was made.
Liveness watch_process(int socket, const Peer& peer, Nanos connected_at, int& pidfd) {
    pidfd = -1;
    socklen_t length = sizeof pidfd;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
        return Liveness::kWatched;
    if (is_shortage(errno)) return Liveness::kNoRoom;
    if (errno != ENOPROTOOPT && errno != ENOSYS) return Liveness::kGone;
    if (peer.pid <= 0) return Liveness::kUnknown;
    pidfd = static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0));
    if (pidfd < 0) {
        if (is_shortage(errno)) return Liveness::kNoRoom;
        return errno == ESRCH ? Liveness::kGone : Liveness::kUnknown;
    }
    const Nanos started = started_at(peer.pid);
    if (started == kNever || started <= connected_at) return Liveness::kWatched;
    close(pidfd);
    pidfd = -1;
    return Liveness::kGone;
}

}  // namespace ulc::daemon
