// SPDX-License-Identifier: BSD-3-Clause
// This file serves one page over HTTP/1.0 to a few readers. One thread, no keep-alive.
//
// Limits: kConnectionsMax connections at once, kRequestOctetsMax a request, kConnectionTime from
// accept to close. Connections beyond the limit wait in the kernel's queue, which is as long.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ulc::tools {

class HttpServer {
public:
    static constexpr std::size_t kConnectionsMax = 16;
    static constexpr std::size_t kRequestOctetsMax = 8192;
    static constexpr std::chrono::seconds kConnectionTime{5};

    /// Makes the text of the page.
    using Page = std::function<std::string()>;

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
    void serve(const Page& page, const volatile std::sig_atomic_t* stop, const sigset_t& waiting);

private:
    using Clock = std::chrono::steady_clock;
    enum class State { kReading, kWriting, kDraining };
    struct Connection {
        int fd = -1;
        State state = State::kReading;
        Clock::time_point deadline;
        std::string request;
        std::string reply;
        std::size_t written = 0;
    };

    void accept_one();
    [[nodiscard]] static bool advance(Connection& connection, const Page& page);

    int listener_ = -1;
    std::vector<Connection> connections_;
};

/// Returns the reply to a request whose header is whole: the page, or an error by its number.
[[nodiscard]] std::string http_reply(std::string_view request, const HttpServer::Page& page);

}  // namespace ulc::tools
