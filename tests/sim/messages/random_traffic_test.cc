// SPDX-License-Identifier: BSD-3-Clause
// N engines, many seeds, every kind of traffic, faults on the wire. The oracle checks that each
// message arrived exactly once, in order and whole; the pools show leaks. A failing case prints the
// seed that replays it. ULC_SIM_SEEDS: number of seeds; ULC_SIM_SEED: one seed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/random_traffic.h"

namespace ulc::sim {
namespace {

struct Case {
    const char* name;
    std::uint16_t nodes;
    std::uint16_t ranks_per_node;
    FaultRates faults;
    Nanos read_gap;
    std::uint64_t bits_per_second;
    std::uint16_t mtu;
};

const Case kCases[] = {
    {"two_clean", 2, 1, {}, 0, 10'000'000'000, 1500},
    {"two_loss_1", 2, 1, {.loss = 0.01}, 0, 10'000'000'000, 1500},
    {"three_loss_5_dup_reorder",
     3,
     1,
     {.loss = 0.05, .duplicate = 0.02, .reorder = 0.05},
     0,
     1'000'000'000,
     1500},
    {"four_loss_10",
     4,
     1,
     {.loss = 0.10, .duplicate = 0.02, .reorder = 0.02},
     0,
     1'000'000'000,
     1500},
    {"five_slow_readers",
     5,
     1,
     {.loss = 0.01, .reorder = 0.02},
     25 * kMicrosecond,
     10'000'000'000,
     1500},
    {"eight_loss_2",
     8,
     1,
     {.loss = 0.02, .duplicate = 0.01, .reorder = 0.01},
     0,
     10'000'000'000,
     1500},
    {"two_nodes_six_ranks",
     2,
     3,
     {.loss = 0.02, .duplicate = 0.01, .reorder = 0.02},
     0,
     10'000'000'000,
     1500},
    {"one_node_four_ranks", 1, 4, {}, 0, 10'000'000'000, 1500},
    {"three_fast_ethernet", 3, 1, {.loss = 0.01}, 0, 100'000'000, 1500},
    {"three_jumbo", 3, 1, {.loss = 0.02, .reorder = 0.02}, 0, 10'000'000'000, 9000},
};

std::uint64_t seeds() {
    const char* text = std::getenv("ULC_SIM_SEEDS");
    return text == nullptr ? 2 : std::strtoull(text, nullptr, 10);
}

class RandomTraffic : public testing::TestWithParam<Case> {};

std::string run_seed(const Case& c, std::uint64_t seed) {
    ClusterConfig config;
    config.seed = seed;
    config.net.ports = c.nodes;
    config.net.seed = seed;
    config.net.bits_per_second = c.bits_per_second;
    config.net.mtu = c.mtu;
    config.net.faults = c.faults;
    SimCluster cluster(config);
    const std::size_t ranks = std::size_t{c.nodes} * c.ranks_per_node;
    if (!cluster.form(ranks,
                      [&](std::size_t n) { return static_cast<std::uint16_t>(n % c.nodes); }))
        return "the job did not form";
    TrafficConfig traffic_config;
    traffic_config.messages = 100;
    traffic_config.read_gap = c.read_gap;
    Traffic traffic(cluster, ranks, traffic_config, seed);
    if (!traffic.make_groups()) return "groups were not made";
    std::string error = traffic.run(60 * kSecond);
    if (!error.empty()) return error;
    const std::uint32_t out = cluster.shut_down();
    return out == 0 ? "" : std::to_string(out) + " segments leaked";
}

TEST_P(RandomTraffic, arrives_exactly_once_in_order_and_whole) {
    const char* one = std::getenv("ULC_SIM_SEED");
    const std::uint64_t first = one == nullptr ? 1 : std::strtoull(one, nullptr, 10);
    const std::uint64_t last = one == nullptr ? seeds() : first;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        const std::string error = run_seed(GetParam(), seed);
        ASSERT_EQ(error, "") << "replay: ULC_SIM_SEED=" << seed << " --gtest_filter='*"
                             << GetParam().name << "'";
    }
}

INSTANTIATE_TEST_SUITE_P(All, RandomTraffic, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

// Seed 7749: 21 readers that polled once in 1.6 µs took fifty million turns before their 2.3 s were
// over.
TEST(Readers, that_lag_take_no_turns_while_nothing_comes) {
    ClusterConfig config;
    config.net.ports = 2;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    Traffic traffic(cluster, 2, {.messages = 20, .read_gap = kMicrosecond, .own_groups = false}, 1);
    ASSERT_EQ(traffic.run(kSecond), "");
    (void)cluster.run(10 * kMillisecond, [] { return false; });
    const std::uint64_t turns = cluster.turns();
    (void)cluster.run(100 * kMillisecond, [] { return false; });
    EXPECT_LT(cluster.turns() - turns, 1000U) << "that of the engines' timers";
}

TEST(Determinism, same_seed_same_run) {
    const auto fingerprint = [] {
        ClusterConfig config;
        config.net.ports = 3;
        config.net.faults = {.loss = 0.05, .duplicate = 0.02, .reorder = 0.05};
        SimCluster cluster(config);
        EXPECT_TRUE(cluster.form(3, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
        Traffic traffic(cluster, 3, {.messages = 60}, 9);
        EXPECT_TRUE(traffic.make_groups());
        EXPECT_EQ(traffic.run(60 * kSecond), "");
        std::vector<std::uint64_t> print{static_cast<std::uint64_t>(cluster.now())};
        for (std::uint16_t node = 0; node < 3; ++node) {
            print.push_back(cluster.net().stats(node).tx_frames);
            print.push_back(cluster.net().stats(node).tx_octets);
            print.push_back(cluster.net().faults().counts(node).lost);
        }
        return print;
    };
    EXPECT_EQ(fingerprint(), fingerprint());
}

}  // namespace
}  // namespace ulc::sim
