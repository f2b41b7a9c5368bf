// SPDX-License-Identifier: BSD-3-Clause
// The process at the other end of a unix socket: its credentials as the kernel gives them, and a
// descriptor that tells when it ends. The end of the socket alone does not: a child of fork() keeps
// the socket open.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "main/attach/listen_socket.h"

namespace ulc::daemon {

struct Peer {
    pid_t pid = 0;  ///< 0: not visible in this PID namespace
    uid_t uid = 0;
    gid_t gid = 0;
    std::uint64_t start_ticks = 0;  ///< as abi::ProcessRow; 0: not known
    std::vector<gid_t> groups;      ///< supplementary, if asked for
};

/// Credentials at the time of connect(). False: the kernel does not tell.
[[nodiscard]] bool peer_of(int socket, bool with_groups, Peer& out);

/// Root, the engine's own user, and the users and groups of the list.
[[nodiscard]] bool may_attach(const AllowList& allowed, const Peer& peer);

enum class Liveness {
    kWatched,  ///< the descriptor becomes readable when the process ends
    kGone,     ///< it has ended already
    kUnknown,  ///< not visible here: only the end of the socket tells
    kNoRoom,   ///< no descriptor left; errno says which limit
};
/// Opens a pidfd of the peer, which the caller closes, and notes when that process started.
/// connected_at: CLOCK_BOOTTIME, not before the connection was made.
[[nodiscard]] Liveness watch_process(int socket, Peer& peer, Nanos connected_at, int& pidfd);

[[nodiscard]] Nanos boottime_now() noexcept;

}  // namespace ulc::daemon
