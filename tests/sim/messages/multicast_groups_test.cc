// SPDX-License-Identifier: BSD-3-Clause
// Tests groups on interfaces that compare few multicast addresses: every message arrives, however
// addresses are shared, and nodes get few unwanted frames (URTP §3.2.1).
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/prng.h"
#include "tests/sim/programs/group_traffic.h"

namespace ulc::sim {
namespace {

using Ranks = GroupTraffic::Ranks;

ClusterConfig config_of(std::uint16_t nodes, std::uint16_t filters) {
    ClusterConfig config;
    config.net.ports = nodes;
    config.net.multicast_filters = filters;
    return config;
}

/// Returns the sum over all nodes.
std::uint64_t count(LibCluster& lib, Counter counter) { return lib.cluster().count(counter); }

// F-12, G-10, G-11, G-16
TEST(MulticastGroups, nobody_else_gets_the_frames_while_there_is_room) {
    LibCluster lib(config_of(6, 4));
    ASSERT_TRUE(lib.form());
    GroupTraffic traffic(lib, {{0, 1}, {2, 3}, {4, 5}, {1, 0}, {0, 2, 4}, {1, 3, 5}});
    ASSERT_TRUE(traffic.create());
    ASSERT_TRUE(traffic.exchange(3));
    EXPECT_EQ(traffic.unwanted(), 0U);
    // At each node: the job, its pair, its three. {1, 0} is on the nodes of {0, 1}.
    EXPECT_EQ(count(lib, Counter::multicast_addresses), 6U * 3);
    EXPECT_EQ(count(lib, Counter::multicast_groups_sharing), 0U);
    EXPECT_EQ(lib.shut_down(), 0U);
}

// G-12, G-16, G-18, G-19
TEST(MulticastGroups, without_room_one_shares_with_those_that_want_most_of_it) {
    LibCluster lib(config_of(8, 2));  // the job, and one more address
    ASSERT_TRUE(lib.form());
    GroupTraffic traffic(lib, {{0, 1, 2}, {4, 5, 6}, {0, 1, 2, 3}, {0, 7}});
    ASSERT_TRUE(traffic.create());
    // The third group joins the first, and node 3 listens there too. So does the last one, which 7
    // joins: three nodes get unwanted frames; with the job's address it would be six.
    EXPECT_EQ(count(lib, Counter::multicast_groups_sharing), 4U + 2U) << "a group at each node";
    ASSERT_TRUE(traffic.exchange(2));
    EXPECT_EQ(count(lib, Counter::drop_unfiltered), 0U);
    EXPECT_EQ(count(lib, Counter::drop_unknown_handle), 0U) << "nothing is broadcast";
    const std::uint64_t data = 3 * 2 + 4 * 3 + (3 * 2 + 4 * 2);  // at 3; of the last; at 7
    EXPECT_GE(traffic.unwanted(), data);
    EXPECT_LE(traffic.unwanted(), data + data / 2) << "probes besides";
    EXPECT_EQ(lib.shut_down(), 0U);
}

// G-13, G-15
TEST(MulticastGroups, an_address_that_is_free_again_is_given_to_the_next) {
    LibCluster lib(config_of(4, 2));
    ASSERT_TRUE(lib.form());
    GroupTraffic traffic(lib, {{0, 1}, {0, 2}});
    ASSERT_TRUE(traffic.create());
    EXPECT_EQ(count(lib, Counter::multicast_groups_sharing), 2U);
    traffic.free(0);
    traffic.free(1);
    EXPECT_EQ(count(lib, Counter::multicast_addresses), 4U) << "the job's";
    EXPECT_EQ(count(lib, Counter::multicast_groups_sharing), 0U);
    GroupTraffic again(lib, {{0, 3}});
    ASSERT_TRUE(again.create());
    EXPECT_EQ(count(lib, Counter::multicast_addresses), 4U + 2U);
    ASSERT_TRUE(again.exchange(3));
    EXPECT_EQ(again.unwanted(), 0U);
}

// There are more jobs than addresses that the interface compares: it passes all frames, but only
// that long.
// G-14
TEST(MulticastGroups, a_job_without_room_is_heard_all_the_same) {
    LibCluster lib(config_of(4, 0));
    ASSERT_TRUE(lib.form());
    EXPECT_EQ(count(lib, Counter::multicast_overflows), 4U);
    GroupTraffic traffic(lib, {{0, 1, 2, 3}, {0, 1}});
    ASSERT_TRUE(traffic.create());
    ASSERT_TRUE(traffic.exchange(3));
    EXPECT_EQ(lib.shut_down(), 0U);
}

// G-21
TEST(MulticastGroups, random_ones_get_everything_under_loss_whoever_comes_and_goes) {
    for (const std::uint16_t filters : {1, 3, 5}) {
        ClusterConfig config = config_of(7, filters);
        config.net.faults = {.loss = 0.02, .duplicate = 0.01, .reorder = 0.02};
        LibCluster lib(config, 14);  // two ranks a node
        ASSERT_TRUE(lib.form());
        Prng prng(filters);
        std::vector<Ranks> groups;
        for (unsigned n = 0; n < 12; ++n) {
            Ranks ranks;
            while (ranks.size() < 2)
                for (std::uint16_t rank = 0; rank < 14; ++rank)
                    if (prng.chance(0.3) && std::ranges::count(ranks, rank) == 0)
                        ranks.push_back(rank);
            groups.push_back(ranks);
        }
        GroupTraffic traffic(lib, groups);
        ASSERT_TRUE(traffic.create()) << filters;
        EXPECT_TRUE(traffic.exchange(4)) << filters;
        for (const std::size_t gone : {1U, 5U, 6U})
            traffic.free(gone);
        EXPECT_TRUE(traffic.exchange(4)) << filters;
        EXPECT_EQ(lib.shut_down(), 0U);
    }
}

TEST(MulticastGroups, a_client_chooses_addresses_of_its_own_groups_only) {
    SimCluster cluster(config_of(3, 2));
    ASSERT_TRUE(cluster.form(3, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    RingClient& client = cluster.client(0);
    constexpr GroupHandle kMine = kGroupBit | 5;
    const Rank ranks[] = {0, 1};
    const auto look = [&] {
        cluster.touch(0);
        const Nanos until = cluster.now() + kMillisecond;
        static_cast<void>(cluster.run(
            2 * kMillisecond, [&] { return cluster.now() >= until; }, [&] { client.poll(); }));
    };
    ASSERT_TRUE(client.add_group(kMine, ranks));
    look();
    ASSERT_EQ(client.groups.at(kMine), 0);
    const auto say = [&](abi::SubmitKind kind, GroupHandle group, std::uint32_t address) {
        abi::SubmissionRecord record{};
        record.kind = kind;
        record.stream = group;
        record.cookie = address;
        ASSERT_TRUE(client.submit(record));
        look();
    };
    constexpr auto kListen = abi::SubmitKind::kListenGroup;
    constexpr auto kUse = abi::SubmitKind::kUseAddress;
    say(kListen, client.world, 7);
    say(kListen, kGroupBit | 6, 7);
    say(kListen, kMine, kAddressIdMax + 1);
    say(kUse, kMine, 7);  // to which it does not listen
    say(kUse, client.world, 0);
    EXPECT_EQ(cluster.count(Counter::client_bad_record), 5U);
    EXPECT_EQ(client.listens.at(kMine), static_cast<int>(Err::kInvalid));
    say(kListen, kMine, 7);  // in place of its address
    EXPECT_EQ(client.listens.at(kMine), 0);
    say(kUse, kMine, 7);
    EXPECT_EQ(cluster.count(Counter::multicast_groups_sharing), 1U);
    say(kListen, kMine, 8);  // too late: a member uses the other
    EXPECT_EQ(client.listens.at(kMine), static_cast<int>(Err::kInvalid));
    EXPECT_EQ(cluster.count(Counter::client_bad_record), 6U);
    EXPECT_EQ(client.closed(), 0);
}

}  // namespace
}  // namespace ulc::sim
