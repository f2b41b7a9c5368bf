// SPDX-License-Identifier: BSD-3-Clause
// Run in two guests of the lab: measures round trip and stream between the same two NICs, by the
// kernel's stack or by ULC, polled on both sides. Only ratios are meaningful in an emulated
// machine.
//   nic_pingpong udp|tcp PEER-ADDRESS    rank ULC_RANK of 2; 0 measures and prints
//   nic_pingpong ulc                     the same through the engine
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <ulc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kRounds = 400;
constexpr std::size_t kSmall = 64;          // bytes
constexpr std::size_t kStream = 2'000'000;  // bytes, in one direction
constexpr std::size_t kChunk = 1400;        // bytes of a datagram, below the MTU
constexpr std::uint16_t kSocketPort = 5088;
constexpr std::int64_t kLimit = 60'000'000'000;  // ns

[[noreturn]] void fail(const std::string& what) {
    std::printf("nic_pingpong: %s: %s\n", what.c_str(), std::strerror(errno));
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

double now_us() {
    const auto t = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(t).count();
}

/// A transport of bytes to the peer and back, in order; each call ends when it is done.
struct Transport {
    virtual ~Transport() = default;
    virtual void send(const void* data, std::size_t octets) = 0;
    virtual void receive(void* data, std::size_t octets) = 0;
    /// Datagrams may be lost: only a reliable transport is streamed.
    [[nodiscard]] virtual bool keeps_all() const { return true; }
    virtual void end() {}
};

class Socket : public Transport {
public:
    Socket(bool tcp, const char* peer, bool first) : tcp_(tcp) {
        sockaddr_in own{};
        own.sin_family = AF_INET;
        own.sin_port = htons(kSocketPort);
        sockaddr_in other = own;
        if (inet_pton(AF_INET, peer, &other.sin_addr) != 1) fail("the peer's address");
        fd_ = socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
        const int one = 1;
        setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (!tcp || !first) {
            if (bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) fail("bind");
        }
        if (tcp && !first) {
            if (listen(fd_, 1) != 0) fail("listen");
            const int accepted = accept(fd_, nullptr, nullptr);
            if (accepted < 0) fail("accept");
            close(fd_);
            fd_ = accepted;
        } else {
            int tries = 100;
            while (connect(fd_, reinterpret_cast<sockaddr*>(&other), sizeof other) != 0) {
                if (--tries == 0) fail("connect");
                usleep(100'000);
            }
        }
        if (tcp) setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    ~Socket() override { close(fd_); }
    void send(const void* data, std::size_t octets) override {
        const auto* at = static_cast<const char*>(data);
        while (octets > 0) {
            const ssize_t n =
                ::send(fd_, at, tcp_ ? octets : std::min(octets, kChunk), MSG_NOSIGNAL);
            if (n < 0 && errno != ECONNREFUSED) fail("send");
            if (n < 0) return;  // the peer is not there yet; it is asked again
            at += n;
            octets -= static_cast<std::size_t>(n);
        }
    }
    void receive(void* data, std::size_t octets) override {
        auto* at = static_cast<char*>(data);
        const double until = now_us() + (tcp_ ? 60e6 : 1e6);
        for (int empty = 0; octets > 0;) {
            const ssize_t n = recv(fd_, at, octets, MSG_DONTWAIT);
            if (n > 0) {
                at += n;
                octets -= static_cast<std::size_t>(n);
            } else if (n == 0 || now_us() > until) {
                if (tcp_) fail("the peer went away");
                return;
            } else if (++empty % 50 == 0) {
                usleep(100);  // QEMU's network needs the processor too
            }
        }
    }
    [[nodiscard]] bool keeps_all() const override { return tcp_; }

private:
    bool tcp_;
    int fd_ = -1;
};

class Ulc : public Transport {
public:
    Ulc() {
        if (ulc_open(nullptr, &ep_) != ULC_OK ||
            ulc_join_wait(ep_, nullptr, ULC_RANK_ANY, 0, kLimit) != ULC_OK)
            fail(ulc_last_error_text());
        peer_ = static_cast<std::uint16_t>(1 - ulc_rank(ep_));
    }
    void send(const void* data, std::size_t octets) override {
        ulc_request request;
        ulc_status status;
        int error = ULC_ERR_AGAIN;
        while ((error = ulc_send(ep_, peer_, 1, data, octets, &request)) == ULC_ERR_AGAIN)
            (void)ulc_wait(ep_, 1'000'000);
        if (error != ULC_OK || ulc_wait_for(ep_, &request, &status, kLimit) != ULC_OK) fail("send");
    }
    void receive(void* data, std::size_t octets) override {
        ulc_request request;
        ulc_status status;
        if (ulc_receive(ep_, peer_, 1, UINT64_MAX, data, octets, &request) != ULC_OK ||
            ulc_wait_for(ep_, &request, &status, kLimit) != ULC_OK || status.error != ULC_OK)
            fail("receive");
    }
    void end() override {
        ulc_leave_wait(ep_, kLimit);
        ulc_close(ep_);
    }

private:
    ulc_endpoint* ep_ = nullptr;
    std::uint16_t peer_ = 0;
};

void measure(Transport& way, const char* name) {
    std::array<char, kSmall> octets{};
    std::vector<double> times;
    for (int i = 0; i < kRounds; ++i) {
        const double start = now_us();
        way.send(octets.data(), octets.size());
        way.receive(octets.data(), octets.size());
        times.push_back(now_us() - start);
    }
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    std::printf("%s: round trip of %zu octets %.0f us", name, kSmall, times[kRounds / 2]);
    if (way.keeps_all()) {
        std::vector<char> stream(kStream);
        const double start = now_us();
        way.send(stream.data(), stream.size());
        way.receive(octets.data(), 1);  // all of it has come
        std::printf(", stream of %zu kB %.0f ms", kStream / 1000, (now_us() - start) / 1000);
    }
    std::printf("\n");
}

void answer(Transport& way) {
    std::array<char, kSmall> octets{};
    for (int i = 0; i < kRounds; ++i) {
        way.receive(octets.data(), octets.size());
        way.send(octets.data(), octets.size());
    }
    if (!way.keeps_all()) return;
    std::vector<char> stream(kStream);
    way.receive(stream.data(), stream.size());
    way.send(octets.data(), 1);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    const char* rank = std::getenv("ULC_RANK");  // NOLINT(concurrency-mt-unsafe): one thread
    const bool first = rank != nullptr && std::strcmp(rank, "0") == 0;
    if (mode == "ulc") {
        Ulc way;
        first ? measure(way, "ulc") : answer(way);
        way.end();
    } else if ((mode == "udp" || mode == "tcp") && argc > 2) {
        Socket way(mode == "tcp", argv[2], first);
        first ? measure(way, mode.c_str()) : answer(way);
    } else {
        std::puts("usage: nic_pingpong ulc | nic_pingpong udp|tcp PEER-ADDRESS");
        return 2;
    }
    return 0;
}
