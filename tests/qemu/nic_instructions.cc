// SPDX-License-Identifier: BSD-3-Clause
// Run in two guests whose time stamp counter counts instructions (QEMU -icount shift=0): measures
// how many instructions a message costs a machine in total: application, library, engine and
// driver, or system calls, the kernel's stack, its driver and its interrupts.
//   nic_instructions udp PEER-ADDRESS     rank ULC_RANK of 2; both print
//   nic_instructions ulc PCI-ADDRESS      through the embedded engine
//
// Both send and receive messages in turns of kTurn, polled. The counter is read once in each
// iteration of the polling loop. An iteration without a message always costs the same and is left
// out; all other iterations, wherever an interrupt occurred, are the work.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <ulc.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kTurn = 32;
constexpr int kTurns = 40;
constexpr int kWarmTurns = 5;
constexpr std::uint16_t kSocketPort = 5089;
constexpr std::int64_t kLimit = 60'000'000'000;     // ns
constexpr std::uint64_t kPatience = 3'000'000'000;  // instructions without a message: it is lost
constexpr std::size_t kSizes[] = {64, 1400};        // bytes
constexpr double kIdle = 1.1;                       // times the usual empty iteration: still empty

[[noreturn]] void fail(const std::string& what) {
    std::printf("nic_instructions: %s: %s\n", what.c_str(), std::strerror(errno));
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

struct Transport {
    virtual ~Transport() = default;
    virtual void send(const void* data, std::size_t octets) = 0;
    /// Returns true if a message was there.
    virtual bool poll(void* data, std::size_t octets) = 0;
};

class Udp : public Transport {
public:
    explicit Udp(const char* peer) {
        sockaddr_in own{};
        own.sin_family = AF_INET;
        own.sin_port = htons(kSocketPort);
        sockaddr_in other = own;
        if (inet_pton(AF_INET, peer, &other.sin_addr) != 1) fail("the peer's address");
        fd_ = socket(AF_INET, SOCK_DGRAM, 0);
        if (bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) fail("bind");
        if (connect(fd_, reinterpret_cast<sockaddr*>(&other), sizeof other) != 0) fail("connect");
    }
    void send(const void* data, std::size_t octets) override {
        if (::send(fd_, data, octets, 0) < 0 && errno != ECONNREFUSED) fail("send");
    }
    bool poll(void* data, std::size_t octets) override {
        return recv(fd_, data, octets, MSG_DONTWAIT) > 0;
    }

private:
    int fd_ = -1;
};

class Ulc : public Transport {
public:
    explicit Ulc(const std::string& card) {
        if (ulc_open(("embedded:" + card).c_str(), &ep_) != ULC_OK ||
            ulc_join_wait(ep_, nullptr, ULC_RANK_ANY, 0, kLimit) != ULC_OK)
            fail(ulc_last_error_text());
        peer_ = static_cast<std::uint16_t>(1 - ulc_rank(ep_));
    }
    ~Ulc() override {
        ulc_leave_wait(ep_, kLimit);
        ulc_close(ep_);
    }
    void send(const void* data, std::size_t octets) override {
        int error = ULC_ERR_AGAIN;
        while ((error = ulc_send(ep_, peer_, 1, data, octets, nullptr)) == ULC_ERR_AGAIN)
            (void)ulc_poll(ep_);
        if (error != ULC_OK) fail("send");
    }
    bool poll(void* data, std::size_t octets) override {
        const void* view = nullptr;
        ulc_status status;
        if (ulc_poll(ep_) < 0) fail("poll");
        if (ulc_take(ep_, peer_, 1, UINT64_MAX, &view, &status) != ULC_OK) return false;
        std::memcpy(data, view, std::min<std::size_t>(octets, status.length));
        ulc_release(ep_, view);
        return true;
    }

private:
    ulc_endpoint* ep_ = nullptr;
    std::uint16_t peer_ = 0;
};

/// Takes `count` messages; `rounds` gets the cost of each iteration of the loop. Returns how many
/// came.
int receive(Transport& way, int count, std::size_t octets, std::vector<std::uint64_t>& rounds) {
    std::array<char, 2048> data;
    std::uint64_t before = __rdtsc();
    std::uint64_t last = before;
    for (int got = 0; got < count;) {
        const bool came = way.poll(data.data(), octets);
        const std::uint64_t now = __rdtsc();
        rounds.push_back(now - before);
        before = now;
        if (came) {
            ++got;
            last = now;
        } else if (now - last > kPatience) {
            return got;
        }
    }
    return count;
}

void measure(Transport& way, const char* name, bool first, std::size_t octets) {
    std::array<char, 2048> data{};
    std::vector<std::uint64_t> rounds;
    std::uint64_t sending = 0;
    int received = 0;
    for (int turn = -kWarmTurns; turn < kTurns; ++turn) {
        if (turn == 0) {
            sending = 0;
            received = 0;
            rounds.clear();
        }
        if (!first) received += receive(way, kTurn, octets, rounds);
        const std::uint64_t before = __rdtsc();
        for (int i = 0; i < kTurn; ++i)
            way.send(data.data(), octets);
        sending += __rdtsc() - before;
        if (first) received += receive(way, kTurn, octets, rounds);
    }
    std::vector<std::uint64_t> sorted = rounds;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    const double idle = static_cast<double>(*middle) * kIdle;
    std::uint64_t receiving = 0;
    for (const std::uint64_t cost : rounds)
        if (static_cast<double>(cost) > idle) receiving += cost;
    const int sent = kTurns * kTurn;
    std::printf(
        "%s %zu octets: %.0f instructions a message sent and received (send calls %.0f, an empty "
        "round %llu, %d of %d came)\n",
        name, octets, static_cast<double>(sending + receiving) / sent,
        static_cast<double>(sending) / sent, static_cast<unsigned long long>(*middle), received,
        sent);
}

}  // namespace

int main(int argc, char** argv) {
    const char* rank = std::getenv("ULC_RANK");  // NOLINT(concurrency-mt-unsafe): one thread
    if (argc < 3 || rank == nullptr) {
        std::puts("usage: nic_instructions udp PEER-ADDRESS | ulc PCI-ADDRESS");
        return 2;
    }
    const bool first = std::strcmp(rank, "0") == 0;
    const auto run = [&](Transport& way) {
        for (const std::size_t octets : kSizes)
            measure(way, argv[1], first, octets);
    };
    if (std::strcmp(argv[1], "ulc") == 0) {
        Ulc way(argv[2]);
        run(way);
    } else {
        Udp way(argv[2]);
        run(way);
    }
    return 0;
}
