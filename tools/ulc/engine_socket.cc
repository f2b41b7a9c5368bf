// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/engine_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
            if (const std::size_t node = socket.find("%n"); node != std::string::npos)
                return fmt::format("{} names an engine for each node; name one of them, as {}",
                                   socket, std::string(socket).replace(node, 2, "0"));
            return fmt::format(
                "there is no socket {}; start ulc-engine, or name the socket of one that runs",
                socket);
        case ECONNREFUSED:
            if (struct stat info{}; ::stat(socket.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode))
                return fmt::format(
                    "{} is no socket; name the one of the engine's option --socket, as {}", socket,
                    abi::kDefaultSocketPath);
            return fmt::format(
                "{} is left over from an engine that has ended; start ulc-engine again", socket);
        case EACCES:
            return fmt::format("no permission for {}; run as the engine's user or let it allow you",
                               socket);
        default:
            return fmt::format("cannot connect to {}: {}", socket, std::strerror(error));
    }
}

/// Receives the Offer and the descriptor that comes with it.
bool receive_offer(int fd, abi::Offer* offer, Descriptor* memory, std::string* error) {
    iovec part{offer, sizeof *offer};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    const cmsghdr* header = n > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        int received = -1;
        std::memcpy(&received, CMSG_DATA(header), sizeof received);
        memory->reset(received);
    }
    if (n <= 0) {
        *error = n < 0 && errno == EAGAIN
                     ? "the engine does not answer within 5 s; look whether it is stopped"
                     : "the engine is ending, or refused without a reason; see its log";
        return false;
    }
    if (n != static_cast<ssize_t>(sizeof *offer) || offer->magic != abi::kHelloMagic) {
        *error =
            "the answer is not that of a ulc-engine of this version; use the ulc that was "
            "installed with the engine";
        return false;
    }
    offer->text[sizeof offer->text - 1] = '\0';
    if (offer->status != 0 || memory->get() < 0) {
        *error = offer->text[0] != '\0' ? offer->text : "the engine refused";
        return false;
    }
    return true;
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

bool ask_for_page(const std::string& socket, abi::HelloKind kind, Descriptor* memory,
                  std::string* error) {
    Descriptor fd;
    abi::Offer offer{};
    return greet_engine(socket, kind, 5, &fd, error) &&
           receive_offer(fd.get(), &offer, memory, error);
}

}  // namespace ulc::tools
