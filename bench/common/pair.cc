// SPDX-License-Identifier: BSD-3-Clause
#include "bench/common/pair.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bench/common/driver.h"
#include "bench/common/job.h"

namespace ulc::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTag = 1;
constexpr int kRoundTrips = 500;
constexpr int kCheckedRoundTrips = 8;
constexpr unsigned kPollsBeforeYield = 2000;
constexpr int kJoinSeconds = 20;

}  // namespace

Pair::Pair(const char* a, const char* b) {
    require(ulc_open(a, &ends_[0]), "open a");
    require(ulc_open(b, &ends_[1]), "open b");
    static int pairs = 0;  // a name that is reused too soon may still be known at an engine
    const std::string job = "pair-" + std::to_string(getpid()) + "-" + std::to_string(pairs++);
    for (std::uint16_t rank = 0; rank < 2; ++rank)
        require(ulc_join(ends_[rank], job.c_str(), rank, 2, nullptr), "join");
    const auto limit = Clock::now() + std::chrono::seconds(kJoinSeconds);
    while (ulc_job_state(ends_[0]) != ULC_OK || ulc_job_state(ends_[1]) != ULC_OK) {
        poll();
        if (Clock::now() > limit) require(ULC_ERR_TIMEOUT, "join");
    }
}

Pair::~Pair() {
    for (ulc_endpoint* end : ends_)
        static_cast<void>(ulc_leave(end));
    const auto limit = Clock::now() + std::chrono::seconds(1);
    const auto closed = [&](int i) { return ulc_job_state(ends_[i]) == ULC_ERR_CLOSED; };
    while (Clock::now() < limit && !(closed(0) && closed(1))) {
        for (ulc_endpoint* end : ends_)
            static_cast<void>(ulc_poll(end));  // says CLOSED in the end
    }
    for (ulc_endpoint* end : ends_)
        ulc_close(end);
}

void Pair::settle(std::chrono::nanoseconds time) {
    for (const auto limit = Clock::now() + time; Clock::now() < limit;)
        poll();
}

void Pair::move(std::uint16_t from, const void* out, void* in, std::size_t octets) {
    const auto to = static_cast<std::uint16_t>(1 - from);
    ulc_request receive;
    ulc_request send;
    require(ulc_receive(ends_[to], from, kTag, UINT64_MAX, in, octets, &receive), "receive");
    require(ulc_send(ends_[from], to, kTag, out, octets, &send), "send");
    wait(ends_[to], receive, "receive");
    wait(ends_[from], send, "send");
}

void Pair::poll() {
    for (ulc_endpoint* end : ends_) {
        if (const int events = ulc_poll(end); events < 0) require(-events, "poll");
    }
}

void Pair::wait(ulc_endpoint* end, ulc_request& request, const char* what) {
    ulc_status status;
    int state = ULC_ERR_AGAIN;
    for (unsigned tries = 0; (state = ulc_test(end, &request, &status)) == ULC_ERR_AGAIN; ++tries) {
        poll();
        // The engine may want this very core.
        if (tries > kPollsBeforeYield) std::this_thread::yield();
    }
    require(state, what);
    require(status.error, what);
}

void one_way(benchmark::State& state, Pair& pair) {
    const auto octets = static_cast<std::size_t>(state.range(0));
    std::vector<unsigned char> there(octets);
    std::vector<unsigned char> back(octets);
    for (auto _ : state) {
        bool right = true;
        for (int i = 0; i < kCheckedRoundTrips; ++i) {
            const std::vector<unsigned char> out =
                payload_of(static_cast<std::uint64_t>(i), octets);
            pair.move(0, out.data(), there.data(), octets);
            pair.move(1, there.data(), back.data(), octets);
            right = right && there == out && back == out;
        }
        const std::vector<unsigned char> out = payload_of(77, octets);
        const auto start = Clock::now();
        for (int i = 0; i < kRoundTrips; ++i) {
            pair.move(0, out.data(), there.data(), octets);
            pair.move(1, there.data(), back.data(), octets);
        }
        const std::chrono::duration<double> spent = Clock::now() - start;
        state.SetIterationTime(spent.count() / (2.0 * kRoundTrips));
        if (right && back == out) continue;
        state.SkipWithError("octets arrived wrong");
        break;
    }
}

}  // namespace ulc::bench
