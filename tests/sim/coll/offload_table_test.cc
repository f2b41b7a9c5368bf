// SPDX-License-Identifier: BSD-3-Clause
// Lists which algorithm of which operation the engine runs while the application computes, by the
// library's decision and by the engine's actions, for every algorithm without reductions. The
// engine runs all; an exception must be named here, with its reason.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/prng.h"
#include "coll/algorithm.h"
#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/collective_data.h"

namespace ulc::sim {
namespace {

/// Long enough for the longest of these at 100 Mb/s with losses.
constexpr Nanos kComputation = kSecond;

std::vector<const coll::Algorithm*> without_reductions() {
    std::vector<const coll::Algorithm*> all;
    for (const coll::Algorithm& algorithm : coll::algorithms())
        if (kind_of(algorithm.op) < CollectiveKind::kReduce) all.push_back(&algorithm);
    return all;
}

ClusterConfig config_of(std::uint16_t ranks, std::uint64_t seed) {
    ClusterConfig config;
    config.seed = config.net.seed = seed;
    config.net.ports = ranks;
    config.net.bits_per_second = 100'000'000;
    config.net.faults = {.loss = 0.01, .duplicate = 0.005, .reorder = 0.01};
    config.sizes.tx_arena_octets = 8U << 20;  // half of it for the blocks of 13 ranks to 13
    return config;
}

Operation draw(const coll::Algorithm& algorithm, std::uint16_t ranks, std::size_t octets,
               bool in_place, Prng& prng) {
    Operation one;
    one.kind = kind_of(algorithm.op);
    one.algorithm = std::string(algorithm.name);
    if (algorithm.has_k) one.algorithm += ":" + std::to_string(1 + prng.below(4));
    if (prng.chance(0.5)) one.algorithm += "@" + std::to_string(500 + prng.below(5000));
    one.octets = octets;
    one.root = static_cast<std::uint16_t>(prng.below(ranks));
    one.in_place = in_place;
    one.uneven = operation_of(one.kind) != algorithm.op ||
                 (algorithm.op == coll::Op::kAllgather && prng.chance(0.5));
    return one;
}

std::string describe(const Operation& one, std::uint16_t ranks) {
    return std::string(coll::name_of(operation_of(one.kind))) + (one.uneven ? "v " : " ") +
           one.algorithm + ", " + std::to_string(ranks) + " ranks, root " +
           std::to_string(one.root) + ", " + std::to_string(one.octets) + " octets" +
           (one.in_place ? ", in place" : "");
}

/// Starts the operation everywhere; no rank polls until the computation is over. Returns the number
/// of ranks whose engine ran it.
std::size_t carried_out(const Operation& one, const ClusterConfig& config) {
    const std::uint16_t ranks = config.net.ports;
    LibCluster lib(config, 0, [](std::uint16_t) {
        client::Limits limits;
        limits.offload = 1;
        return limits;
    });
    EXPECT_TRUE(lib.form());
    std::vector<CollectiveData> data;
    std::vector<ulc_coll*> running(ranks);
    std::vector<bool> begun(ranks, false);
    for (std::uint16_t rank = 0; rank < ranks; ++rank)
        data.emplace_back(one, rank, ranks, config.seed);
    EXPECT_TRUE(lib.run(
        kSecond, [&] { return std::ranges::count(begun, false) == 0; },
        [&](std::uint16_t rank, Nanos) {
            if (!begun[rank]) {
                ulc_endpoint* ep = lib.endpoint(rank);
                EXPECT_EQ(data[rank].start(ep, ulc_world(ep), &running[rank]), ULC_OK);
            }
            begun[rank] = true;
            return kNever;
        }));
    const auto by_engines = [&] { return lib.cluster().count(Counter::offload_done); };
    static_cast<void>(lib.cluster().run(kComputation, [&] { return by_engines() == ranks; }));
    const std::size_t carried = by_engines();
    std::vector<int> states(ranks, ULC_ERR_AGAIN);
    static_cast<void>(lib.run(
        20 * kSecond, [&] { return std::ranges::count(states, ULC_ERR_AGAIN) == 0; },
        [&](std::uint16_t rank, Nanos now) {
            if (states[rank] == ULC_ERR_AGAIN)
                states[rank] = ulc_coll_test(lib.endpoint(rank), running[rank]);
            return states[rank] == ULC_ERR_AGAIN ? now + 100 * kMicrosecond : kNever;
        }));
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(states[rank], ULC_OK) << describe(one, ranks) << " rank " << rank;
        EXPECT_EQ(data[rank].wrong(), "") << describe(one, ranks) << " rank " << rank;
    }
    EXPECT_EQ(lib.shut_down(), 0U) << describe(one, ranks);
    return carried;
}

class OffloadTable : public testing::TestWithParam<const coll::Algorithm*> {};

TEST_P(OffloadTable, has_every_algorithm_without_reductions) {
    const coll::Algorithm& algorithm = *GetParam();
    const bool barrier = algorithm.op == coll::Op::kBarrier;
    const bool places = !barrier && algorithm.op != coll::Op::kBroadcast;
    Prng prng(static_cast<std::uint64_t>(algorithm.op) * 100 + algorithm.name.size());
    std::size_t runs = 0;
    std::size_t carried = 0;
    for (const std::uint16_t ranks : {2, 5, 13}) {
        for (const std::size_t octets : {0U, 40U, 9000U}) {
            for (const bool in_place : {false, true}) {
                if ((in_place && !places) || (octets > 0 && barrier)) continue;
                const Operation one = draw(algorithm, ranks, octets, in_place, prng);
                const std::size_t by_engines = carried_out(one, config_of(ranks, ++runs));
                EXPECT_EQ(by_engines, ranks) << describe(one, ranks);
                carried += by_engines == ranks ? 1 : 0;
            }
        }
    }
    std::printf("%-10s %-16s carried out by the engines of all ranks in %zu of %zu runs\n",
                std::string(coll::name_of(algorithm.op)).c_str(),
                std::string(algorithm.name).c_str(), carried, runs);
}

// Uses eight submissions, sixteen completions, eight sends that wait, and an arena of 16 KiB to
// receive in.
TEST_P(OffloadTable, has_every_algorithm_through_small_rings) {
    constexpr std::uint16_t kRanks = 5;
    ClusterConfig config = config_of(kRanks, 7);
    config.sizes = {8, 16, 64U << 10, 16U << 10};
    config.engine.pending_sends = 8;
    config.engine.params.window = 32;
    config.engine.params.rx_pool_packets = 16;
    Prng prng(1);
    const std::size_t octets = GetParam()->op == coll::Op::kBarrier ? 0 : 700;
    const Operation one = draw(*GetParam(), kRanks, octets, false, prng);
    EXPECT_EQ(carried_out(one, config), kRanks) << describe(one, kRanks);
}

INSTANTIATE_TEST_SUITE_P(Of, OffloadTable, testing::ValuesIn(without_reductions()),
                         [](const auto& of) {
                             return std::string(coll::name_of(of.param->op)) + "_" +
                                    std::string(of.param->name);
                         });

}  // namespace
}  // namespace ulc::sim
