// SPDX-License-Identifier: BSD-3-Clause
// Real engines and one lost multicast, which is repaired once, for the member that lost it alone. A
// short multicast reaches both members of a node without a repair.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {
namespace {

std::vector<std::byte> octets_of(std::string_view text) {
    std::vector<std::byte> out(text.size());
    std::memcpy(out.data(), text.data(), text.size());
    return out;
}

TEST(MulticastRepair, two_engines_repair_one_lost_multicast) {
    ClusterConfig config;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    cluster.net().faults().lose_next(0, 1, 1);
    const Nanos start = cluster.now();
    ASSERT_TRUE(cluster.client(0).send(cluster.client(0).world, 7, octets_of("once on the wire")));
    ASSERT_TRUE(cluster.run(
        kSecond, [&] { return cluster.client(1).messages.size() == 1; },
        [&] { cluster.client(1).poll(); }));
    EXPECT_EQ(cluster.client(1).messages[0].payload, octets_of("once on the wire"));
    EXPECT_EQ(cluster.client(1).messages[0].tag, 7U);
    EXPECT_EQ(cluster.client(1).messages[0].source, 0);
    EXPECT_EQ(cluster.net().faults().counts(1).lost, 1U);
    EXPECT_EQ(cluster.net().stats(0).mcast_frames, 2U) << "the message and one repair";
    EXPECT_LT(cluster.now() - start, 10 * kMillisecond);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(MulticastRepair, three_members_only_the_loser_is_sent_again_and_once) {
    ClusterConfig config;
    config.net.ports = 3;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(3, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    cluster.net().faults().lose_next(0, 2, 1);
    for (int n = 0; n < 20; ++n)
        ASSERT_TRUE(
            cluster.client(0).send(cluster.client(0).world, 1, octets_of(std::to_string(n))));
    ASSERT_TRUE(cluster.run(
        kSecond,
        [&] {
            return cluster.client(1).messages.size() == 20 &&
                   cluster.client(2).messages.size() == 20;
        },
        [&] {
            cluster.client(1).poll();
            cluster.client(2).poll();
        }));
    for (std::size_t n = 0; n < 20; ++n) {
        EXPECT_EQ(cluster.client(1).messages[n].payload, octets_of(std::to_string(n)));
        EXPECT_EQ(cluster.client(2).messages[n].payload, octets_of(std::to_string(n)));
    }
    EXPECT_EQ(cluster.net().stats(0).mcast_frames, 21U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// Two members of a node: a short multicast from the wire is for both, not for the first alone. A
// repair would hide it.
TEST(MulticastRepair, short_multicasts_reach_both_members_of_a_node_at_first) {
    SimCluster cluster(ClusterConfig{});
    ASSERT_TRUE(cluster.form(3, [](std::size_t n) { return static_cast<std::uint16_t>(n / 2); }));
    const std::uint64_t sent = cluster.net().stats(0).mcast_frames;
    for (std::size_t n = 1; n <= 100; ++n) {
        ASSERT_TRUE(cluster.client(2).send(cluster.client(2).world, n, octets_of("short")));
        ASSERT_TRUE(cluster.run(
            kSecond,
            [&] {
                return cluster.client(0).messages.size() == n &&
                       cluster.client(1).messages.size() == n;
            },
            [&] {
                cluster.client(0).poll();
                cluster.client(1).poll();
            }));
    }
    EXPECT_EQ(cluster.net().stats(1).mcast_frames, 100U);
    EXPECT_EQ(cluster.net().stats(0).mcast_frames, sent);
    EXPECT_EQ(cluster.count(Counter::req_sent), 0U);
    EXPECT_EQ(cluster.count(Counter::repair_unicast) + cluster.count(Counter::repair_multicast),
              0U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
