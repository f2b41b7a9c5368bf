// SPDX-License-Identifier: BSD-3-Clause
// Tests the profile `pack`: short messages that wait behind each other for one destination share a
// packet, and each arrives as it would alone (docs/protocol/MESSAGES.md §6.7).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "abi/records.h"
#include "base/prng.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/messages/flood.h"

namespace ulc::sim {
namespace {

ClusterConfig config_of(std::uint16_t ports, const char* profile) {
    ClusterConfig config;
    config.net.ports = ports;
    config.net.bits_per_second = 100'000'000;
    config.engine.profile = profile;
    return config;
}

std::uint64_t packets_of_a_flood(const char* profile) {
    SimCluster cluster(config_of(2, profile));
    flood(cluster, 2, 20, 2000);
    const std::uint64_t packets = cluster.count(Counter::data_sent);
    EXPECT_EQ(cluster.shut_down(), 0U);
    return packets;
}

// M-17
TEST(Packing, a_flood_of_short_messages_shares_packets) {
    const std::uint64_t alone = packets_of_a_flood("urtp");
    EXPECT_GE(alone, 4000U);
    EXPECT_LE(packets_of_a_flood("urtp+pack") * 8, alone);
}

// M-17
TEST(Packing, a_message_that_nothing_waits_behind_goes_alone_and_at_once) {
    const auto arrival = [](const char* profile) {
        SimCluster cluster(config_of(2, profile));
        EXPECT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
        const Nanos begin = cluster.now();
        EXPECT_TRUE(cluster.client(0).send(1, 5, std::vector<std::byte>(20)));
        EXPECT_TRUE(cluster.run(
            kSecond, [&] { return !cluster.client(1).messages.empty(); },
            [&] { cluster.client(1).poll(); }));
        EXPECT_EQ(cluster.count(Counter::messages_packed), 0U);
        return cluster.now() - begin;
    };
    // Two octets and the tag's eight are a head in both.
    EXPECT_NEAR(static_cast<double>(arrival("urtp+pack")), static_cast<double>(arrival("urtp")),
                500);
}

/// Sends from rank 0 as long as `next` gives messages (to, payload), and returns what each rank got
/// as text. Clients are slow: they take `each` completions at a time.
struct Sent {
    std::uint32_t to;
    std::uint64_t tag;
    std::vector<std::byte> payload;
    std::uint64_t subset = 0;
};
void exchange(SimCluster& cluster, const std::vector<Sent>& list, unsigned each,
              const std::vector<std::vector<std::size_t>>& expected) {
    std::size_t sent = 0;
    std::size_t wanted = 0;
    for (const auto& ranks : expected)
        wanted += ranks.size();
    const auto came = [&] {
        std::size_t sum = 0;
        for (std::size_t rank = 1; rank < expected.size(); ++rank)
            sum += cluster.client(rank).messages.size();
        return sum >= wanted;
    };
    EXPECT_TRUE(cluster.run(3 * kSecond, came, [&] {
        for (; sent < list.size(); ++sent) {
            const Sent& one = list[sent];
            if (!cluster.client(0).send(one.to, one.tag, one.payload, one.subset)) break;
        }
        cluster.client(0).poll();
        for (std::size_t rank = 1; rank < expected.size(); ++rank)
            cluster.client(rank).poll(each);
    }));
    for (std::size_t rank = 1; rank < expected.size(); ++rank) {
        const auto& got = cluster.client(rank).messages;
        ASSERT_EQ(got.size(), expected[rank].size()) << "rank " << rank;
        for (std::size_t n = 0; n < got.size(); ++n) {
            const Sent& one = list[expected[rank][n]];
            EXPECT_EQ(got[n].tag, one.tag) << "rank " << rank << ", message " << n;
            EXPECT_EQ(got[n].payload, one.payload) << "rank " << rank << ", message " << n;
        }
    }
    EXPECT_EQ(cluster.count(Counter::drop_pack), 0U);
}

std::vector<std::byte> octets(Prng& random, std::size_t length) {
    std::vector<std::byte> payload(length);
    for (std::byte& octet : payload)
        octet = static_cast<std::byte>(random.below(256));
    return payload;
}

// M-14, M-15
TEST(Packing, random_lengths_reach_a_small_slow_client_once_and_in_order) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        SCOPED_TRACE(seed);
        Prng random(seed);
        ClusterConfig config = config_of(2, "urtp+pack");
        config.sizes = {32, 8, 64U << 10, 16U << 10};
        config.net.faults = {.loss = 0.02, .duplicate = 0.01, .reorder = 0.01};
        config.net.seed = seed;
        config.seed = seed;
        SimCluster cluster(config);
        ASSERT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
        std::vector<Sent> list;
        std::vector<std::vector<std::size_t>> expected(2);
        for (std::size_t n = 0; n < 400; ++n) {
            const std::size_t most = random.below(8) == 0 ? 4000 : 160;
            expected[1].push_back(n);
            list.push_back({1, n, octets(random, random.below(most))});
        }
        exchange(cluster, list, 3, expected);
        EXPECT_GT(cluster.count(Counter::messages_packed), 100U);
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

// M-15
TEST(Packing, messages_share_a_packet_only_with_others_to_the_same_ranks) {
    SimCluster cluster(config_of(3, "urtp+pack"));
    ASSERT_TRUE(cluster.form(3, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    Prng random(1);
    const std::uint32_t world = cluster.client(0).world;
    std::vector<Sent> list;
    std::vector<std::vector<std::size_t>> expected(3);
    for (std::size_t n = 0; n < 400; ++n) {
        // Unicasts to one, to the other, multicasts to all, and to one of the group alone.
        const std::uint64_t kind = random.below(5);
        const bool to_group = kind >= 2;
        const std::uint64_t subset = kind == 3 ? 2 : kind == 4 ? 4 : 0;
        list.push_back({to_group ? world : static_cast<std::uint32_t>(1 + kind), n,
                        octets(random, abi::kInlineOctetsMax + 1 + random.below(20)), subset});
        const bool first = kind == 0 || kind == 2 || kind == 3;
        const bool second = kind == 1 || kind == 2 || kind == 4;
        if (first) expected[1].push_back(n);
        if (second) expected[2].push_back(n);
    }
    exchange(cluster, list, UINT32_MAX, expected);
    EXPECT_GT(cluster.count(Counter::messages_packed), 10U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
