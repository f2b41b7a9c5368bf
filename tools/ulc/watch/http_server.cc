// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/watch/http_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ulc::tools {
namespace {

std::string reply_of(std::string_view status, std::string_view body, std::string_view more = "") {
    return fmt::format(
        "HTTP/1.0 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        "Content-Length: {}\r\nConnection: close\r\n{}\r\n{}",
        status, body.size(), more, body);
}

std::string_view word_of(std::string_view& text) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
}

bool is_whole(std::string_view request) {
    return request.find("\r\n\r\n") != std::string_view::npos ||
           request.find("\n\n") != std::string_view::npos;
}

struct HostAndPort {
    std::string host;
    std::string port;
};

/// Splits host:port at the last colon; brackets around an IPv6 address are left out.
bool split(const std::string& address, HostAndPort* out) {
    const std::size_t colon = address.rfind(':');
    if (colon == std::string::npos || colon == 0) return false;
    out->host = address.substr(0, colon);
    out->port = address.substr(colon + 1);
    if (out->host.front() == '[' && out->host.back() == ']')
        out->host = out->host.substr(1, out->host.size() - 2);
    return !out->port.empty() && out->port.size() <= 5 &&
           out->port.find_first_not_of("0123456789") == std::string::npos &&
           std::stoul(out->port) <= 65535;
}

std::string explain_bind(const std::string& address, int error) {
    switch (error) {
        case EADDRINUSE:
            return fmt::format(
                "another program listens at {}; choose another address with --listen", address);
        case EADDRNOTAVAIL:
            return fmt::format("{} is no address of this machine; choose one with --listen",
                               address);
        case EACCES:
            return fmt::format("no permission to listen at {}; choose a port from 1024 on",
                               address);
        default:
            return fmt::format("cannot listen at {}: {}; choose another address with --listen",
                               address, std::strerror(error));
    }
}

}  // namespace

std::string http_reply(std::string_view request, const HttpPage& page) {
    std::string_view line = request.substr(0, request.find_first_of("\r\n"));
    const std::string_view method = word_of(line);
    const std::string_view target = word_of(line);
    if (method.empty() || !target.starts_with('/') || !line.starts_with("HTTP/1."))
        return reply_of("400 Bad Request", "send: GET /metrics HTTP/1.0\n");
    if (method != "GET" && method != "HEAD")
        return reply_of("405 Method Not Allowed", "use GET\n", "Allow: GET, HEAD\r\n");
    if (target.substr(0, target.find('?')) != "/metrics")
        return reply_of("404 Not Found", "the counters are at /metrics\n");
    std::string reply = reply_of("200 OK", page());
    if (method == "HEAD") reply.resize(reply.find("\r\n\r\n") + 4);
    return reply;
}

HttpServer::~HttpServer() {
    for (const HttpConnection& connection : connections_)
        ::close(connection.fd());
    if (listener_ >= 0) ::close(listener_);
}

bool HttpServer::open(const std::string& address, std::string* error) {
    HostAndPort parts;
    if (!split(address, &parts)) {
        *error = fmt::format("{} is no address; write one as 127.0.0.1:9418", address);
        return false;
    }
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int status = ::getaddrinfo(parts.host.c_str(), parts.port.c_str(), &wanted, &found);
    if (status != 0) {
        *error = fmt::format("{}: {}; write an address as 127.0.0.1:9418", parts.host,
                             ::gai_strerror(status));
        return false;
    }
    constexpr int kOne = 1;
    listener_ =
        ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, found->ai_protocol);
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &kOne, sizeof kOne);
    const bool listens = ::bind(listener_, found->ai_addr, found->ai_addrlen) == 0 &&
                         ::listen(listener_, kConnectionsMax) == 0;
    if (!listens) *error = explain_bind(address, errno);
    ::freeaddrinfo(found);
    return listens;
}

std::string HttpServer::address() const {
    sockaddr_storage bound{};
    socklen_t octets = sizeof bound;
    char host[NI_MAXHOST] = "?";
    char port[NI_MAXSERV] = "?";
    auto* name = reinterpret_cast<sockaddr*>(&bound);
    ::getsockname(listener_, name, &octets);
    ::getnameinfo(name, octets, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV);
    return bound.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                       : fmt::format("{}:{}", host, port);
}

void HttpServer::accept_one() {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    connections_.emplace_back(fd, std::chrono::steady_clock::now());
}

short HttpConnection::events() const noexcept {
    return state_ == State::kWriting ? POLLOUT : POLLIN;
}

bool HttpConnection::advance(bool ready, const HttpPage& page, const Now& now) {
    return (!ready || step(page, now)) && now() < deadline_;
}

bool HttpConnection::step(const HttpPage& page, const Now& now) {
    char data[4096];
    if (state_ == State::kReading) {
        const ssize_t n = ::recv(fd_, data, sizeof data, 0);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        request_.append(data, static_cast<std::size_t>(n));
        const bool too_long = request_.size() > kRequestOctetsMax;
        if (n > 0 && !too_long && !is_whole(request_)) return true;
        if (request_.empty()) return false;
        reply_ = too_long ? reply_of("431 Request Header Fields Too Large", "too long\n")
                          : http_reply(request_, page);
        state_ = State::kWriting;
        // The page may have waited for the engine.
        deadline_ = std::max(deadline_, now() + kConnectionTime / 2);
    }
    if (state_ == State::kWriting) {
        const std::string_view rest = std::string_view(reply_).substr(written_);
        const ssize_t n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        written_ += static_cast<std::size_t>(n);
        if (written_ < reply_.size()) return true;
        // A close with unread input would reset the connection, and lose the reply.
        ::shutdown(fd_, SHUT_WR);
        state_ = State::kDraining;
        return true;
    }
    const ssize_t n = ::recv(fd_, data, sizeof data, 0);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void HttpServer::serve(const HttpPage& page, const volatile std::sig_atomic_t* stop,
                       const sigset_t& waiting) {
    using Clock = std::chrono::steady_clock;
    while (*stop == 0) {
        std::vector<pollfd> watched;
        auto first = Clock::now() + std::chrono::hours(1);
        for (const HttpConnection& connection : connections_) {
            watched.push_back({connection.fd(), connection.events(), 0});
            first = std::min(first, connection.deadline());
        }
        if (connections_.size() < kConnectionsMax) watched.push_back({listener_, POLLIN, 0});
        const auto left = std::max(first - Clock::now(), Clock::duration::zero());
        const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
        const timespec wait{ns / 1'000'000'000, ns % 1'000'000'000};
        if (::ppoll(watched.data(), watched.size(), &wait, &waiting) < 0) continue;  // a signal
        const bool comes = watched.size() > connections_.size() && watched.back().revents != 0;
        std::size_t at = 0;
        std::erase_if(connections_, [&](HttpConnection& connection) {
            if (connection.advance(watched[at++].revents != 0, page, Clock::now)) return false;
            ::close(connection.fd());
            return true;
        });
        if (comes) accept_one();
    }
}

}  // namespace ulc::tools
