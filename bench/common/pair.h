// SPDX-License-Identifier: BSD-3-Clause
// Two ranks of a job in one thread: the latency of the path between them, without a scheduler's
// delays.
#pragma once

#include <benchmark/benchmark.h>
#include <ulc.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ulc::bench {

/// Both ends of a separate job. Failures end the program with a message.
class Pair {
public:
    /// The engines of rank 0 and 1, as ulc_open() takes them.
    Pair(const char* a, const char* b);
    ~Pair();  ///< leaves
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    /// Polls both ends for a time: how a job settles after it formed is not in the figures then.
    void settle(std::chrono::nanoseconds time);

    /// One message from rank `from` to the other one.
    void move(std::uint16_t from, const void* out, void* in, std::size_t octets);

private:
    void poll();
    void wait(ulc_endpoint* end, ulc_request& request, const char* what);

    ulc_endpoint* ends_[2] = {nullptr, nullptr};
};

/// Half a round trip of state.range(0) bytes, as manual time. Every byte of messages with other
/// stamps is compared in a pass without a clock; in the timed one, the last.
void one_way(benchmark::State& state, Pair& pair);

}  // namespace ulc::bench
