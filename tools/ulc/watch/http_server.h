// SPDX-License-Identifier: BSD-3-Clause
// This file serves one page over HTTP/1.0 to a few readers. One thread, no keep-alive.
//
// Limits: kConnectionsMax connections at once, kRequestOctetsMax a request, kConnectionTime from
// accept to close, whatever the reader sends. A page that took long to make gets half of that
// time once more. Connections beyond the limit wait in the kernel's queue, which is as long.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ulc::tools {

/// Makes the text of the page.
using HttpPage = std::function<std::string()>;

/// One reader. Its times are those of `Now`, which tests choose.
class HttpConnection {
public:
    using Time = std::chrono::steady_clock::time_point;
    using Now = std::function<Time()>;
    static constexpr std::size_t kRequestOctetsMax = 8192;
    static constexpr std::chrono::seconds kConnectionTime{5};

    /// fd: a connected socket that does not block; the caller closes it.
    HttpConnection(int fd, Time now) : fd_(fd), deadline_(now + kConnectionTime) {}

    /// Reads, answers and writes as far as possible. ready: the socket has something to do. False:
    /// the connection is over, or its time is up.
    [[nodiscard]] bool advance(bool ready, const HttpPage& page, const Now& now);
    [[nodiscard]] int fd() const noexcept { return fd_; }
    [[nodiscard]] Time deadline() const noexcept { return deadline_; }
    /// Returns what poll() is to wait for.
    [[nodiscard]] short events() const noexcept;

private:
    enum class State { kReading, kWriting, kDraining };
    [[nodiscard]] bool step(const HttpPage& page, const Now& now);

    int fd_;
    State state_ = State::kReading;
    Time deadline_;
    std::string request_;
    std::string reply_;
    std::size_t written_ = 0;
};

class HttpServer {
public:
    static constexpr std::size_t kConnectionsMax = 16;

    HttpServer() = default;
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    /// Listens at an address as 127.0.0.1:9418 or [::1]:9418; port 0: any free one. False: `error`
    /// names the fault and what to do.
    [[nodiscard]] bool open(const std::string& address, std::string* error);
    /// Returns the address that it listens at, with the port that was chosen.
    [[nodiscard]] std::string address() const;
    /// Serves `page` at /metrics until `*stop` is not 0. Signals of `waiting` reach the process
    /// only while it waits, so that none is missed.
    void serve(const HttpPage& page, const volatile std::sig_atomic_t* stop,
               const sigset_t& waiting);

private:
    void accept_one();

    int listener_ = -1;
    std::vector<HttpConnection> connections_;
};

/// Returns the reply to a request whose header is whole: the page, or an error by its number.
[[nodiscard]] std::string http_reply(std::string_view request, const HttpPage& page);

}  // namespace ulc::tools
