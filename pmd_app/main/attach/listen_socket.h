// SPDX-License-Identifier: BSD-3-Clause
// The unix socket on which clients attach. One engine serves a path: it holds a lock on PATH.lock
// while the socket is there. Mode and group follow the allow list, so that the kernel refuses most
// users who may not attach. The socket is removed only by the engine that made it.
//
//   lock PATH.lock ▶ no listener? ▶ unlink a stale socket ▶ fchmod, bind ▶ group, mode ▶ listen
//
// Nothing here follows a symbolic link at PATH or PATH.lock. Before listen() no client can connect,
// so that no client meets the socket with another mode.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>

#include "base/error.h"

namespace ulc::daemon {

/// Users who may attach besides root and the engine's own user.
struct AllowList {
    std::span<const uid_t> uids;
    std::span<const gid_t> gids;
    bool all = false;
};

struct SocketAccess {
    static constexpr gid_t kGroupUnchanged = static_cast<gid_t>(-1);
    mode_t mode = 0600;
    gid_t group = kGroupUnchanged;
    bool operator==(const SocketAccess&) const = default;
};

/// The narrowest mode that lets all allowed users connect. Others that it lets connect are refused
/// by credentials. own: the engine's user.
[[nodiscard]] SocketAccess access_for(const AllowList& allowed, uid_t own);

class ListenSocket {
public:
    ListenSocket() = default;
    ~ListenSocket() { close(); }
    ListenSocket(const ListenSocket&) = delete;
    ListenSocket& operator=(const ListenSocket&) = delete;

    /// Makes its folder, takes the lock and listens. Replaces a socket on which no process listens.
    /// Errors: kInvalid (path too long, another engine or another file is there), kPermission,
    /// kSystem; why: what to do.
    Err open(const std::string& path, const SocketAccess& access, std::string& why);
    /// Unlinks the socket if it is still the one made here, and the lock. Any number of times.
    void close();

    [[nodiscard]] int fd() const noexcept { return fd_; }
    /// The kernel refuses descriptors that clients send (SO_PASSRIGHTS, Linux 6.16). False: they
    /// may arrive.
    [[nodiscard]] bool refuses_descriptors() const noexcept { return refuses_descriptors_; }
    /// A sentence for the log if the mode is wider than wanted; else empty.
    [[nodiscard]] const std::string& note() const noexcept { return note_; }

private:
    Err take_lock(std::string& why);
    Err bind_and_listen(SocketAccess access, std::string& why);
    Err set_access(SocketAccess access, std::string& why);

    std::string path_;
    std::string note_;
    int lock_ = -1;
    int fd_ = -1;
    bool refuses_descriptors_ = false;
    dev_t device_ = 0;  ///< the socket's inode is there
    ino_t inode_ = 0;   ///< 0: none was made
};

}  // namespace ulc::daemon
