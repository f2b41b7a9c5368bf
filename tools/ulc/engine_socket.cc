// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/engine_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ulc::tools {
namespace {

std::string explain_connect(const std::string& socket, int error) {
    switch (error) {
        case ENOENT:
            return fmt::format(
                "there is no socket {}; start ulc-engine, or name the socket of one that runs",
                socket);
        case ECONNREFUSED:
            return fmt::format(
                "{} is left over from an engine that has ended; start ulc-engine again", socket);
        case EACCES:
            return fmt::format("no permission for {}; run as the engine's user or let it allow you",
                               socket);
        default:
            return fmt::format("cannot connect to {}: {}", socket, std::strerror(error));
    }
}

}  // namespace

void Descriptor::reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
}

bool greet_engine(const std::string& socket, abi::HelloKind kind, int seconds, Descriptor* fd,
                  std::string* error) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket.size() >= sizeof address.sun_path) {
        *error = fmt::format("the path {} is too long for a socket", socket);
        return false;
    }
    std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
    fd->reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const timeval limit{.tv_sec = seconds, .tv_usec = 0};
    ::setsockopt(fd->get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (::connect(fd->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        *error = explain_connect(socket, errno);
        return false;
    }
    abi::Hello hello{};
    hello.magic = abi::kHelloMagic;
    hello.abi_version = abi::kAbiVersion;
    hello.kind = kind;
    hello.client_pid = static_cast<std::uint32_t>(::getpid());
    if (::send(fd->get(), &hello, sizeof hello, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof hello))
        return true;
    *error = fmt::format("cannot ask the engine: {}", std::strerror(errno));
    return false;
}

}  // namespace ulc::tools
