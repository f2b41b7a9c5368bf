// SPDX-License-Identifier: BSD-3-Clause
// Measures the speed of a stream from rank 0 to rank 1: messages of 64 KiB, every byte compared,
// from the first submission until rank 1 has reported the last. Nothing is in flight at either end
// of that time, so a loss near it is counted exactly once. Rank 0 prints "bulk: B octets a second".
//   bulk MESSAGES [FILE]
// FILE: the stream lasts until there is such a file at rank 0, and MESSAGES longer.
#include <ulc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLimit = 30'000'000'000;  // ns
constexpr std::size_t kOctets = 65536;
constexpr std::size_t kUnderWay = 6;  ///< more than a window
constexpr std::uint64_t kData = 1;
constexpr std::uint64_t kReady = 2;
constexpr std::uint64_t kHasAll = 3;

void need(const char* what, int error) {
    if (error == ULC_OK) return;
    std::fprintf(stderr, "bulk: %s: %s (%s)\n", what, ulc_error_text(error), ulc_last_error_text());
    std::exit(1);
}

void fill(std::vector<unsigned char>& payload, std::uint64_t number) {
    std::memcpy(payload.data(), &number, sizeof number);
}

std::vector<unsigned char> payload() {
    std::vector<unsigned char> octets(kOctets);
    for (std::size_t i = 0; i < kOctets; ++i)
        octets[i] = static_cast<unsigned char>(i * 7 + i / 251);
    return octets;
}

void wait_for(ulc_endpoint* ep, ulc_request* request, ulc_status* status) {
    need("wait", ulc_wait_for(ep, request, status, kLimit));
    need("message", status->error);
}

/// Sends a message without payload from rank 1 to rank 0.
void say(ulc_endpoint* ep, std::uint64_t tag) {
    ulc_request request;
    ulc_status status{};
    need("send", ulc_send(ep, 0, tag, nullptr, 0, &request));
    wait_for(ep, &request, &status);
}

void wait_for_word(ulc_endpoint* ep, std::uint64_t tag) {
    ulc_request request;
    ulc_status status{};
    need("receive", ulc_receive(ep, 1, tag, ~std::uint64_t{0}, nullptr, 0, &request));
    wait_for(ep, &request, &status);
}

/// The messages of rank 0.
class Stream {
public:
    /// Makes a stream of `messages`, behind those that are sent until that file is there. nullptr:
    /// no file.
    Stream(std::uint64_t messages, const char* until) : left_(messages), until_(until) {}

    /// Returns whether there is one more.
    bool next() {
        if (until_ != nullptr && access(until_, F_OK) != 0) return true;
        until_ = nullptr;
        return left_-- > 0;
    }

private:
    std::uint64_t left_;
    const char* until_;
};

/// Sends a message, when the send ring has space for it.
void send(ulc_endpoint* ep, const std::vector<unsigned char>& octets, ulc_request* request) {
    int error = ULC_OK;
    while ((error = ulc_send(ep, 1, kData, octets.data(), octets.size(), request)) == ULC_ERR_AGAIN)
        need("wait", ulc_wait(ep, kLimit));
    need("send", error);
}

void send_all(ulc_endpoint* ep, Stream stream) {
    std::array<std::vector<unsigned char>, kUnderWay> memory;
    std::array<ulc_request, kUnderWay> requests;
    memory.fill(payload());
    ulc_status status{};
    wait_for_word(ep, kReady);
    const auto start = Clock::now();
    std::uint64_t number = 0;
    for (; stream.next(); ++number) {
        std::vector<unsigned char>& octets = memory[number % kUnderWay];
        ulc_request* request = &requests[number % kUnderWay];
        if (number >= kUnderWay) wait_for(ep, request, &status);
        fill(octets, number);
        send(ep, octets, request);
    }
    std::array<ulc_request, kUnderWay> ends;  // one for each receive that is posted
    for (ulc_request& end : ends)
        send(ep, {}, &end);
    wait_for_word(ep, kHasAll);
    const double span = std::chrono::duration<double>(Clock::now() - start).count();
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(number, kUnderWay); ++i)
        wait_for(ep, &requests[i], &status);
    for (ulc_request& end : ends)
        wait_for(ep, &end, &status);
    std::printf("bulk: %.0f octets a second\n", static_cast<double>(number * kOctets) / span);
}

/// Receives until a message without payload comes.
void receive_all(ulc_endpoint* ep) {
    std::vector<unsigned char> expected = payload();
    std::array<std::vector<unsigned char>, kUnderWay> memory;
    std::array<ulc_request, kUnderWay> requests;
    const auto post = [&](std::uint64_t number) {
        std::vector<unsigned char>& octets = memory[number % kUnderWay];
        octets.resize(kOctets);
        need("receive", ulc_receive(ep, 0, kData, ~std::uint64_t{0}, octets.data(), kOctets,
                                    &requests[number % kUnderWay]));
    };
    for (std::uint64_t number = 0; number < kUnderWay; ++number)
        post(number);
    say(ep, kReady);
    ulc_status status{};
    std::uint64_t number = 0;
    for (;; ++number) {
        wait_for(ep, &requests[number % kUnderWay], &status);
        if (status.length == 0) break;
        fill(expected, number);
        if (status.length != kOctets || memory[number % kUnderWay] != expected) {
            std::fprintf(stderr, "bulk: message %llu arrived wrong\n",
                         static_cast<unsigned long long>(number));
            std::exit(1);
        }
        post(number + kUnderWay);
    }
    for (std::uint64_t end = 1; end < kUnderWay; ++end)
        wait_for(ep, &requests[(number + end) % kUnderWay], &status);
    say(ep, kHasAll);
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t messages = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100;
    ulc_endpoint* ep = nullptr;
    need("open", ulc_open(nullptr, &ep));
    need("join", ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kLimit));
    if (ulc_rank(ep) == 0) {
        send_all(ep, {messages, argc > 2 ? argv[2] : nullptr});
    } else {
        receive_all(ep);
    }
    need("leave", ulc_leave_wait(ep, kLimit));
    ulc_close(ep);
    return 0;
}
