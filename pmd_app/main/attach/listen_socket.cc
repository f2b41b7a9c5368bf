// SPDX-License-Identifier: BSD-3-Clause
#include "main/attach/listen_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83  // Linux 6.16
#endif

namespace ulc::daemon {
namespace {

/// Short: a client behind a flood waits for what is before it in this queue. Others block in
/// connect(), in turn.
constexpr int kBacklog = 8;
constexpr int kLockTries = 10;
constexpr char kElsewhere[] = "choose another path with --socket";

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
}

std::string served_already(const std::string& path, pid_t pid) {
    std::string text = "an engine already serves " + path;
    if (pid > 0) text += " (process " + std::to_string(pid) + ")";
    return text + "; stop it, or " + kElsewhere;
}

/// True if a process listens on the socket; then pid is its number, or 0 if it is unknown here.
bool has_listener(const std::string& path, pid_t& pid) {
    const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const sockaddr_un address = address_of(path);
    const int status = connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const bool absent = status != 0 && (errno == ECONNREFUSED || errno == ENOENT ||
                                        errno == EPROTOTYPE || errno == ENOTDIR);
    ucred peer{};
    socklen_t length = sizeof peer;
    pid = status == 0 && getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
    close(s);
    return !absent;
}

struct flock whole_file(short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

/// chmod of what an O_PATH descriptor names. fchmod refuses such descriptors.
bool chmod_path(int fd, mode_t mode) {
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    return chmod(link.c_str(), mode) == 0;
}

}  // namespace

SocketAccess access_for(const AllowList& allowed, uid_t own) {
    if (allowed.all) return {0666, SocketAccess::kGroupUnchanged};
    // Root connects whatever the mode is.
    const bool other_users =
        std::ranges::any_of(allowed.uids, [own](uid_t uid) { return uid != own && uid != 0; });
    if (other_users || allowed.gids.size() > 1) return {0666, SocketAccess::kGroupUnchanged};
    if (allowed.gids.size() == 1) return {0660, allowed.gids[0]};
    return {0600, SocketAccess::kGroupUnchanged};
}

Err ListenSocket::open(const std::string& path, const SocketAccess& access, std::string& why) {
    if (path.empty() || path.size() >= sizeof sockaddr_un{}.sun_path) {
        why = "the socket path is empty or longer than 107 bytes; choose another with --socket";
        return Err::kInvalid;
    }
    path_ = path;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    Err error = take_lock(why);
    if (error == Err::kOk) error = bind_and_listen(access, why);
    if (error != Err::kOk) close();
    return error;
}

// A POSIX lock: the kernel names its holder, drops it with the process, and gives it to no child of
// fork().
Err ListenSocket::take_lock(std::string& why) {
    const std::string path = path_ + ".lock";
    const auto fail = [&](int file, Err error) {
        if (file >= 0) ::close(file);
        return error;
    };
    for (int n = 0; n < kLockTries; ++n) {
        const int file =
            ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (file < 0) {
            const bool denied = errno == EACCES || errno == EPERM;
            why = "cannot open " + path + ": " +
                  (errno == ELOOP ? "it is a symbolic link" : std::strerror(errno)) +
                  "; choose a directory that you may write with --socket";
            return fail(file, denied ? Err::kPermission : Err::kSystem);
        }
        struct stat opened {};
        if (fstat(file, &opened) != 0 || !S_ISREG(opened.st_mode) || opened.st_nlink > 1 ||
            opened.st_uid != geteuid()) {
            why = path + " is not a plain file of this user; remove it, or " + kElsewhere;
            return fail(file, Err::kPermission);
        }
        struct flock lock = whole_file(F_WRLCK);
        if (fcntl(file, F_SETLK, &lock) != 0) {
            static_cast<void>(fcntl(file, F_GETLK, &lock));
            why = served_already(path_, lock.l_type == F_UNLCK ? 0 : lock.l_pid);
            return fail(file, Err::kInvalid);
        }
        struct stat named {};
        if (lstat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
            named.st_dev == opened.st_dev) {
            lock_ = file;
            return Err::kOk;
        }
        ::close(file);  // the engine before unlinked it between open() and the lock
    }
    why = path + " is removed again and again; " + kElsewhere;
    return Err::kSystem;
}

Err ListenSocket::bind_and_listen(SocketAccess access, std::string& why) {
    struct stat there {};
    if (lstat(path_.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode)) {
        why = path_ + " exists and is not a socket; " + kElsewhere;
        return Err::kInvalid;
    }
    if (pid_t pid = 0; has_listener(path_, pid)) {
        why = served_already(path_, pid);
        return Err::kInvalid;
    }
    unlink(path_.c_str());  // a crash left it: no process listens on it
    fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const sockaddr_un address = address_of(path_);
    // The mode that bind() gives is this one less the umask: never wider than wanted.
    if (fd_ < 0 || fchmod(fd_, access.mode) != 0 ||
        bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const bool denied = errno == EACCES || errno == EPERM;
        why = "cannot listen on " + path_ + ": " + std::strerror(errno) +
              "; choose a directory that you may write with --socket";
        return denied ? Err::kPermission : Err::kSystem;
    }
    const int no = 0;
    refuses_descriptors_ = setsockopt(fd_, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no) == 0;
    if (const Err error = set_access(access, why); error != Err::kOk) return error;
    if (listen(fd_, kBacklog) != 0) {
        why = "cannot listen on " + path_ + ": " + std::strerror(errno);
        return Err::kSystem;
    }
    return Err::kOk;
}

// Group and mode of the inode that bind() made, by a descriptor that names it: another file that
// took its place in the meantime is not touched.
Err ListenSocket::set_access(SocketAccess access, std::string& why) {
    const int inode = ::open(path_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat made {};
    if (inode < 0 || fstat(inode, &made) != 0 || !S_ISSOCK(made.st_mode) ||
        made.st_uid != geteuid()) {
        if (inode >= 0) ::close(inode);
        why = path_ + " was replaced while it was made; " + kElsewhere;
        return Err::kSystem;
    }
    device_ = made.st_dev;
    inode_ = made.st_ino;
    if (access.group != SocketAccess::kGroupUnchanged && access.group != made.st_gid &&
        fchownat(inode, "", static_cast<uid_t>(-1), access.group, AT_EMPTY_PATH) != 0) {
        note_ = path_ + " cannot be given to group " + std::to_string(access.group) + " (" +
                std::strerror(errno) +
                "): every user may connect, others than the allowed are refused afterwards";
        access.mode = 0666;
    }
    const bool wide_enough = (made.st_mode & 0777) == access.mode || chmod_path(inode, access.mode);
    ::close(inode);
    if (wide_enough) return Err::kOk;
    why = "cannot set the mode of " + path_ + ": " + std::strerror(errno) + "; " + kElsewhere;
    return Err::kSystem;
}

void ListenSocket::close() {
    if (inode_ != 0) {
        struct stat there {};
        if (lstat(path_.c_str(), &there) == 0 && there.st_ino == inode_ && there.st_dev == device_)
            unlink(path_.c_str());
        inode_ = 0;
    }
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    if (lock_ >= 0) {
        // Locked still: no other engine can hold this file, so the name is that of this lock or of
        // a newer one.
        struct stat opened {};
        struct stat named {};
        const std::string path = path_ + ".lock";
        if (fstat(lock_, &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
            opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
            unlink(path.c_str());
        ::close(lock_);
    }
    lock_ = -1;
}

}  // namespace ulc::daemon
