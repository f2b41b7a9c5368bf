// SPDX-License-Identifier: BSD-3-Clause
// Times every collective over sizes, on all ranks of a job, each with the table's choice and with
// named algorithms, including the tree over unicast for reference. The last word of the name
// selects one of five measurements:
//
//   broadcast/1024           calls back to back; the root rotates (URTP §4.1), so that one
//                            broadcast cannot run ahead of the next. Time: of a call, at the last
//                            rank
//   broadcast/1024/single    a barrier before each; from a rank's leaving the barrier until it has
//                            returned. Time: of the slowest rank, mean over the calls; counter
//                            mean_us: the mean over ranks
//   broadcast/1024/skewed    as single, but each rank computes first, for a time drawn uniformly
//                            from 0 to 100 µs (seeded by rank and call). Time: from the last rank's
//                            arrival to the last rank's end
//   broadcast/1024/last      [NN97] (GAMMA §2.4): rank 0 is the root, a loop finds the rank that
//                            ends last, then calls alone are timed at it by rank 0's clock
//                            (common/last_process.h). Counters: last_rank; ahead_us, by which the
//                            second last ended before it
//   broadcast/1024/counted   as the first, and the traffic of a call at the switch: payload_octets
//                            next to least_octets, the minimum for a broadcast medium, packets with
//                            payload, control packets. Needs ULC_BENCH_SWITCH
//                            (bench/counted_switch)
//
//   ulc run -n 8 --nodes 8 ulc-bench-collective
//   mpirun -np 8 --mca btl tcp,self ulc-bench-collective-mpi        (the reference)
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "base/prng.h"
#include "bench/collective_operations.h"
#include "bench/common/last_process.h"
#include "bench/common/switch_counts.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

enum Mode : std::uint32_t { kBackToBack, kSingle, kSkewed, kLast, kCounted };
constexpr const char* kModeSuffix[] = {"", "/single", "/skewed", "/last", "/counted"};

constexpr std::uint64_t kSkewNsMax = 100'000;
/// Time after which all is quiet: acknowledgements wait at most 800 µs.
constexpr std::chrono::milliseconds kQuiet{30};
constexpr int kLooksMax = 100;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

Outcome back_to_back(Transport& transport, const Command& command, const Operation& operation) {
    transport.barrier(nullptr);
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < command.rounds; ++i)
        operation.once(static_cast<std::uint16_t>(i % transport.size()));
    return {.seconds = seconds_since(start)};
}

/// Time that a rank computes before a call, in seconds.
double arrive_late(std::uint16_t rank, std::uint32_t call) {
    ulc::Prng random((std::uint64_t{rank} << 32) + call + 1);
    const std::chrono::nanoseconds late(random.below(kSkewNsMax));
    const auto start = Clock::now();
    while (Clock::now() - start < late) {
    }
    return seconds_since(start);
}

/// Sums over calls of the longest time and of the mean time; if the calls were skewed, of the time
/// after the last arrival.
Outcome one_by_one(Transport& transport, const Command& command, const Operation& operation) {
    struct Times {
        double late = 0, done = 0;
    };
    const std::uint32_t calls = command.rounds;
    std::vector<Times> own(calls);
    for (std::uint32_t i = 0; i < calls; ++i) {
        transport.barrier(nullptr);
        const auto start = Clock::now();
        if (command.mode == kSkewed) own[i].late = arrive_late(transport.rank(), i);
        operation.once(static_cast<std::uint16_t>(i % transport.size()));
        own[i].done = seconds_since(start);
    }
    std::vector<Times> all(std::size_t{calls} * transport.size());
    transport.allgather(own.data(), all.data(), calls * sizeof(Times), nullptr);
    Outcome outcome;
    double mean = 0;
    for (std::uint32_t i = 0; i < calls; ++i) {
        double late = 0;
        double done = 0;
        for (std::size_t at = i; at < all.size(); at += calls) {
            late = std::max(late, all[at].late);
            done = std::max(done, all[at].done);
            mean += (all[at].done - all[at].late) / transport.size();
        }
        outcome.seconds += std::max(0.0, done - late);
    }
    outcome.values[0] = 1e6 * mean / calls;
    return outcome;
}

/// Calls whose root is rank 0, then one with each root, so that the bytes can be judged.
Outcome at_the_last(Transport& transport, const Command& command, const Operation& operation) {
    const LastProcess last = time_to_last(
        transport, [&] { operation.once(0); }, command.rounds, command.rounds);
    for (std::uint16_t root = 0; root < transport.size(); ++root)
        operation.once(root);
    Outcome outcome{.seconds = last.seconds * command.rounds};
    outcome.values = {double{1} * last.rank, 1e6 * last.ahead_seconds};
    return outcome;
}

Outcome counted(Transport& transport, const Command& command, const Operation& operation) {
    SwitchCounts before;
    SwitchCounts after;
    transport.barrier(nullptr);
    std::this_thread::sleep_for(kQuiet);
    const bool counts = transport.rank() == 0;
    bool answered = !counts || read_switch_counts(before);
    std::this_thread::sleep_for(kQuiet);
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < command.rounds; ++i)
        operation.once(static_cast<std::uint16_t>(i % transport.size()));
    Outcome outcome{.seconds = seconds_since(start)};
    // Others may be at it still; then they wait for rank 0's word, and say nothing themselves.
    SwitchCounts last;
    for (int looks = 0; counts && answered && looks < kLooksMax; ++looks) {
        std::this_thread::sleep_for(kQuiet);
        answered = read_switch_counts(after);
        if (after == last) break;
        last = after;
    }
    unsigned char word = 1;
    transport.broadcast(0, &word, sizeof word, nullptr);
    const auto each = [&](std::uint64_t SwitchCounts::*of) {
        return static_cast<double>(after.*of - before.*of) / command.rounds;
    };
    outcome.right = answered;
    outcome.values = {each(&SwitchCounts::payload_octets),
                      static_cast<double>(octets_at_least(static_cast<Collective>(command.what),
                                                          command.octets, transport.size())),
                      each(&SwitchCounts::packets), each(&SwitchCounts::control)};
    return outcome;
}

Outcome execute(Transport& transport, const Command& command) {
    const Operation operation = make_operation(transport, static_cast<Collective>(command.what),
                                               command.octets, command.algorithm_or_null());
    Outcome outcome;
    switch (static_cast<Mode>(command.mode)) {
        case kBackToBack:
            outcome = back_to_back(transport, command, operation);
            break;
        case kSingle:
        case kSkewed:
            outcome = one_by_one(transport, command, operation);
            break;
        case kLast:
            outcome = at_the_last(transport, command, operation);
            break;
        case kCounted:
            outcome = counted(transport, command, operation);
            break;
    }
    outcome.right = operation.right() && outcome.right;
    return outcome;
}

void add(std::vector<Case>& all, Collective what, const std::string& algorithm,
         std::uint64_t octets, std::uint16_t ranks, Mode mode) {
    Case one;
    one.name = name_of(what);
    if (!algorithm.empty()) one.name += '/' + algorithm;
    if (what != Collective::kBarrier) one.name += '/' + std::to_string(octets);
    one.name += kModeSuffix[mode];
    one.command.what = static_cast<std::uint32_t>(what);
    one.command.mode = mode;
    one.command.octets = octets;
    // Every rank is the root at least once. Long enough that a clock's reading and the first call's
    // surprises are a small part.
    one.rounds_min = ranks;
    one.command.rounds = std::max<std::uint32_t>(ranks, octets <= 4096 ? 200 : 50);
    if (mode == kSingle || mode == kSkewed) one.value_names = {"mean_us"};
    if (mode == kLast) one.value_names = {"last_rank", "ahead_us"};
    if (mode == kCounted) {
        one.value_names = {"payload_octets", "least_octets", "packets", "control"};
        one.iterations = 1;
    }
    set_algorithm(one.command, algorithm);
    all.push_back(one);
}

std::vector<Case> cases(const Transport& transport) {
    std::vector<Case> all;
    const auto with = [&](Collective what, std::uint64_t octets,
                          std::initializer_list<const char*> algorithms) {
        for (const Mode mode : {kBackToBack, kSingle, kSkewed, kLast})
            add(all, what, "", octets, transport.size(), mode);
        if (has_switch_counts()) add(all, what, "", octets, transport.size(), kCounted);
        if (!transport.has_algorithms()) return;
        for (const char* algorithm : algorithms) {
            add(all, what, algorithm, octets, transport.size(), kBackToBack);
            if (has_switch_counts()) add(all, what, algorithm, octets, transport.size(), kCounted);
        }
    };
    using enum Collective;
    with(kBarrier, 0, {"gather_broadcast", "chain:2", "dissemination", "dissemination:3"});
    for (const std::uint64_t octets : {8U, 1024U, 16384U, 65536U, 1048576U}) {
        with(kBroadcast, octets, {"multicast", "binomial"});
        with(kReduce, octets, {"flat", "chain@16384", "binomial"});
        with(kAllreduce, octets,
             {"multicast", "binomial_multicast", "pairwise_multicast:4", "binomial"});
        with(kScan, octets, {"multicast", "chain@16384", "doubling"});
        with(kExscan, octets, {"multicast", "chain@16384", "doubling"});
    }
    for (const std::uint64_t octets : {8U, 1024U, 16384U, 65536U}) {
        with(kAllgather, octets, {"round_robin", "concurrent:1", "concurrent:4", "ring"});
        with(kGather, octets, {"direct", "token:2", "binomial"});
        with(kScatter, octets, {"packed", "direct", "binomial"});
        with(kAlltoall, octets, {"multicast", "pairwise:4"});
        with(kReduceScatter, octets, {"multicast", "pairwise:4", "binomial"});
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) { return run_benchmarks(argc, argv, 2, cases, execute); }
