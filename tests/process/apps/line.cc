// SPDX-License-Identifier: BSD-3-Clause
// Measures a wire as an application sees it. Rank 0 prints a line for each figure, in nanoseconds.
//   line pingpong SIZE TURNS     one way: least, median and longest of TURNS round trips, halved
//   line stream OCTETS           messages of 64 KiB, until rank 1 has answered the last one
//   line multicast OCTETS TURNS  until every other rank has answered; the median
// Several may follow each other. Every message is compared.
#include <ulc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Octets = std::vector<unsigned char>;

constexpr std::int64_t kLimit = 60'000'000'000;  // ns
constexpr std::size_t kMessage = 65536;
constexpr std::size_t kUnderWay = 8;
constexpr std::uint64_t kData = 1;
constexpr std::uint64_t kWord = 2;

void need(const char* what, int error) {
    if (error == ULC_OK) return;
    std::fprintf(stderr, "line: %s: %s (%s)\n", what, ulc_error_text(error), ulc_last_error_text());
    std::exit(1);
}

Octets payload(std::size_t octets, std::uint64_t number) {
    Octets made(octets);
    for (std::size_t i = 0; i < octets; ++i)
        made[i] = static_cast<unsigned char>(i * 7 + i / 251 + number);
    return made;
}

void wait_for(ulc_endpoint* ep, ulc_request* request, std::size_t octets) {
    ulc_status status{};
    need("wait", ulc_wait_for(ep, request, &status, kLimit));
    need("message", status.error);
    if (status.length == octets) return;
    std::fprintf(stderr, "line: %zu octets instead of %zu\n",
                 static_cast<std::size_t>(status.length), octets);
    std::exit(1);
}

/// Repeats `send` until the endpoint accepts the message.
template <typename Send>
void submit(ulc_endpoint* ep, Send send) {
    int error = ULC_OK;
    while ((error = send()) == ULC_ERR_AGAIN)
        need("wait", ulc_wait(ep, kLimit));
    need("send", error);
}

void send(ulc_endpoint* ep, std::uint16_t to, std::uint64_t tag, const Octets& octets) {
    submit(ep, [&] { return ulc_send(ep, to, tag, octets.data(), octets.size(), nullptr); });
}

void receive(ulc_endpoint* ep, std::uint16_t from, std::uint64_t tag, Octets& into) {
    ulc_request request;
    need("receive",
         ulc_receive(ep, from, tag, ~std::uint64_t{0}, into.data(), into.size(), &request));
    wait_for(ep, &request, into.size());
}

void same(const Octets& got, const Octets& expected) {
    if (got == expected) return;
    std::fprintf(stderr, "line: a message of %zu octets arrived wrong\n", expected.size());
    std::exit(1);
}

/// Returns when all ranks are here.
void meet(ulc_endpoint* ep) {
    Octets nothing;
    if (ulc_rank(ep) != 0) {
        send(ep, 0, kWord, nothing);
        receive(ep, 0, kWord, nothing);
        return;
    }
    for (std::uint16_t rank = 1; rank < ulc_size(ep); ++rank)
        receive(ep, rank, kWord, nothing);
    for (std::uint16_t rank = 1; rank < ulc_size(ep); ++rank)
        send(ep, rank, kWord, nothing);
}

long long since(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

void pingpong(ulc_endpoint* ep, std::size_t octets, unsigned turns) {
    if (ulc_rank(ep) > 1) return;
    const bool first = ulc_rank(ep) == 0;
    const auto peer = static_cast<std::uint16_t>(first ? 1 : 0);
    const Octets mine = payload(octets, 3);
    Octets got(octets);
    std::vector<long long> times;
    for (unsigned turn = 0; turn < turns + 1; ++turn) {
        const auto start = Clock::now();
        if (first) send(ep, peer, kData, mine);
        receive(ep, peer, kData, got);
        if (!first) send(ep, peer, kData, mine);
        if (turn > 0) times.push_back(since(start) / 2);  // the first warms up
        same(got, mine);
    }
    std::sort(times.begin(), times.end());
    if (first)
        std::printf("pingpong %zu least %lld median %lld longest %lld\n", octets, times.front(),
                    times[times.size() / 2], times.back());
}

void stream(ulc_endpoint* ep, std::size_t octets) {
    if (ulc_rank(ep) > 1) return;
    const std::size_t messages = std::max<std::size_t>(octets / kMessage, 1);
    const Octets data = payload(kMessage, 5);
    std::vector<ulc_request> requests(kUnderWay);
    Octets nothing;
    if (ulc_rank(ep) == 0) {
        receive(ep, 1, kWord, nothing);
        const auto start = Clock::now();
        for (std::size_t number = 0; number < messages; ++number) {
            ulc_request* request = &requests[number % kUnderWay];
            ulc_status status{};
            if (number >= kUnderWay) need("wait", ulc_wait_for(ep, request, &status, kLimit));
            submit(ep, [&] { return ulc_send(ep, 1, kData, data.data(), data.size(), request); });
        }
        receive(ep, 1, kWord, nothing);
        std::printf("stream %zu took %lld\n", messages * kMessage, since(start));
        for (std::size_t i = 0; i < std::min(messages, kUnderWay); ++i) {
            ulc_status status{};
            need("wait", ulc_wait_for(ep, &requests[i], &status, kLimit));
        }
        return;
    }
    std::vector<Octets> memory(kUnderWay, Octets(kMessage));
    const auto post = [&](std::size_t number) {
        Octets& into = memory[number % kUnderWay];
        if (number < messages)
            need("receive", ulc_receive(ep, 0, kData, ~std::uint64_t{0}, into.data(), into.size(),
                                        &requests[number % kUnderWay]));
    };
    for (std::size_t number = 0; number < kUnderWay; ++number)
        post(number);
    send(ep, 0, kWord, nothing);
    for (std::size_t number = 0; number < messages; ++number) {
        wait_for(ep, &requests[number % kUnderWay], kMessage);
        same(memory[number % kUnderWay], data);
        post(number + kUnderWay);
    }
    send(ep, 0, kWord, nothing);
}

void multicast(ulc_endpoint* ep, std::size_t octets, unsigned turns) {
    const Octets data = payload(octets, 9);
    Octets nothing;
    std::vector<long long> times;
    for (unsigned turn = 0; turn < turns; ++turn) {
        meet(ep);
        if (ulc_rank(ep) != 0) {
            Octets got(octets);
            receive(ep, 0, kData, got);
            send(ep, 0, kWord, nothing);
            same(got, data);
            continue;
        }
        const auto start = Clock::now();
        ulc_request request;
        submit(ep, [&] {
            return ulc_multicast(ep, ulc_world(ep), ULC_SUBSET_ALL, kData, data.data(), data.size(),
                                 &request);
        });
        for (std::uint16_t rank = 1; rank < ulc_size(ep); ++rank)
            receive(ep, rank, kWord, nothing);
        times.push_back(since(start));
        ulc_status status{};
        need("wait", ulc_wait_for(ep, &request, &status, kLimit));
    }
    std::sort(times.begin(), times.end());
    if (ulc_rank(ep) == 0)
        std::printf("multicast %zu median %lld\n", octets, times[times.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) {
    ulc_endpoint* ep = nullptr;
    need("open", ulc_open(nullptr, &ep));
    need("join", ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kLimit));
    for (int i = 1; i + 1 < argc;) {
        const std::string what = argv[i];
        const auto octets = static_cast<std::size_t>(std::atoll(argv[i + 1]));
        const bool has_turns = what != "stream" && i + 2 < argc;
        const auto turns = has_turns ? static_cast<unsigned>(std::atoi(argv[i + 2])) : 1U;
        if (what == "pingpong") pingpong(ep, octets, turns);
        if (what == "stream") stream(ep, octets);
        if (what == "multicast") multicast(ep, octets, turns);
        std::fflush(stdout);
        i += has_turns ? 3 : 2;
    }
    meet(ep);
    need("leave", ulc_leave_wait(ep, kLimit));
    ulc_close(ep);
    return 0;
}
