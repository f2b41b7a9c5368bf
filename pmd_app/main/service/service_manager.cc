// SPDX-License-Identifier: BSD-3-Clause
#include "main/service/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace ulc::daemon {
namespace {

std::string taken_from_environment(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): start-up
    std::string text = value == nullptr ? "" : value;
    unsetenv(name);  // NOLINT(concurrency-mt-unsafe): start-up
    return text;
}

/// Returns the number that is the whole text; 0: it is none, or too large.
std::int64_t number_of(const std::string& text) {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end && value > 0 ? value : 0;
}

/// Returns a socket whose datagrams go to the path, or to the abstract name after '@'. On failure
/// returns -1 and sets errno.
int connected_to(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) {
        errno = EINVAL;
        return -1;
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    if (path[0] == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made >= 0 && connect(made, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        const int reason = errno;
        close(made);
        errno = reason;
        return -1;
    }
    return made;
}

}  // namespace

ServiceManager::ServiceManager(std::string& why) {
    const std::string path = taken_from_environment("NOTIFY_SOCKET");
    const std::int64_t granted_us = number_of(taken_from_environment("WATCHDOG_USEC"));
    const std::int64_t process = number_of(taken_from_environment("WATCHDOG_PID"));
    if (path.empty()) return;
    socket_ = connected_to(path);
    if (socket_ < 0) {
        why = "NOTIFY_SOCKET " + path + ": " +
              std::strerror(errno) +  // NOLINT(concurrency-mt-unsafe): start-up
              "; systemd is not notified; NotifyAccess=main in the unit permits it";
        return;
    }
    const bool is_ours = process == 0 || process == getpid();
    if (granted_us == 0 || !is_ours) return;
    interval_ = std::min(granted_us, kNever / kMicrosecond) * kMicrosecond / 2;
}

ServiceManager::~ServiceManager() {
    if (socket_ >= 0) close(socket_);
}

void ServiceManager::ready(std::string_view status) noexcept {
    if (socket_ < 0) return;
    std::string message = "READY=1\nSTATUS=";
    for (const char c : status)
        message += c == '\n' ? ' ' : c;
    send(message, 0);
}

// Does not wait while systemd's queue is full: the next one follows in time.
void ServiceManager::alive() noexcept { send("WATCHDOG=1", MSG_DONTWAIT); }

void ServiceManager::stopping() noexcept {
    send("STOPPING=1\nSTATUS=delivering what clients sent", 0);
}

void ServiceManager::send(std::string_view message, int flags) noexcept {
    if (socket_ < 0) return;
    static_cast<void>(::send(socket_, message.data(), message.size(), MSG_NOSIGNAL | flags));
}

}  // namespace ulc::daemon
