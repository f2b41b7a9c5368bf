// SPDX-License-Identifier: BSD-3-Clause
// Tests long payloads that a device reads in the arenas of a daemon's clients (Port::add_memory).
// The simulated device refuses memory that it was not told of. The copies are a budget. A block is
// the engine's until every receiver has it, also in chunks, under loss and over upgrades. A client
// that changes its payload or dies harms no other message.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kLong = 300'000;

std::uint16_t own_node(std::size_t n) { return static_cast<std::uint16_t>(n); }

ClusterConfig daemons(std::uint16_t ports, bool reads, double loss = 0) {
    ClusterConfig config;
    config.net.ports = ports;
    config.net.faults = {.loss = loss};
    config.net.reads_arenas = reads;
    config.sizes = {256, 512, 1U << 20, 1U << 20};
    return config;
}

void expect_message(const Message& message, std::uint64_t tag, std::size_t octets = kLong) {
    EXPECT_EQ(message.tag, tag);
    EXPECT_EQ(message.payload, Oracle::payload(tag, octets));
}

bool run_all(SimCluster& cluster, Nanos limit, const std::function<bool()>& done) {
    return cluster.run(limit, done, [&] {
        for (std::size_t n = 0; n < cluster.size(); ++n)
            if (!cluster.gone(n)) cluster.client(n).poll();
    });
}

TEST(Arena, long_payloads_are_not_copied_where_the_device_reads_them) {
    for (const bool reads : {false, true}) {
        SimCluster cluster(daemons(3, reads));
        ASSERT_TRUE(cluster.form(3, own_node));
        RingClient& source = cluster.client(0);
        ASSERT_TRUE(source.send(1, 7, Oracle::payload(7, kLong)));
        ASSERT_TRUE(source.send(source.world, 8, Oracle::payload(8, kLong)));
        ASSERT_TRUE(run_all(cluster, kSecond, [&] {
            return source.sends_done.size() == 2 && cluster.client(1).messages.size() == 2 &&
                   cluster.client(2).messages.size() == 1;
        }));
        expect_message(cluster.client(1).messages[0], 7);
        expect_message(cluster.client(1).messages[1], 8);
        expect_message(cluster.client(2).messages[0], 8);
        const std::uint64_t copied = cluster.count(Counter::tx_copied_bytes);
        const std::uint64_t gathered = cluster.count(Counter::tx_gathered_bytes);
        EXPECT_EQ(copied + gathered, 2 * kLong) << "each octet once, also of a multicast";
        EXPECT_EQ(gathered, reads ? 2 * kLong - copied : 0U);
        EXPECT_LE(copied, reads ? 2 * 256U : 2 * kLong) << "an end shorter than 256 is copied";
        EXPECT_EQ(cluster.net().nic(0).arenas(), reads ? 1U : 0U);
        EXPECT_EQ(cluster.net().nic(1).arenas(), 0U) << "it sent nothing long";
        EXPECT_EQ(cluster.shut_down(), 0U);
        EXPECT_EQ(cluster.net().nic(0).arenas(), 0U) << "its client is gone";
    }
}

TEST(Arena, shorter_payloads_are_copied) {
    SimCluster cluster(daemons(2, true));
    ASSERT_TRUE(cluster.form(2, own_node));
    RingClient& source = cluster.client(0);
    ASSERT_TRUE(source.send(1, 7, Oracle::payload(7, 65'535)));
    ASSERT_TRUE(run_all(cluster, kSecond, [&] { return !source.sends_done.empty(); }));
    EXPECT_EQ(cluster.count(Counter::tx_copied_bytes), 65'535U);
    EXPECT_EQ(cluster.net().nic(0).arenas(), 0U);
}

TEST(Arena, a_block_is_the_engines_until_every_receiver_has_it) {
    SimCluster cluster(daemons(3, true));
    ASSERT_TRUE(cluster.form(3, own_node));
    RingClient& source = cluster.client(0);
    const Nanos resumes = cluster.now() + 50 * kMillisecond;
    cluster.pause_node(2, resumes);
    ASSERT_TRUE(source.send(source.world, 7, Oracle::payload(7, kLong)));
    ASSERT_TRUE(run_all(cluster, kSecond, [&] { return !source.sends_done.empty(); }));
    EXPECT_GE(cluster.now(), resumes) << "one receiver did not have it yet";
    ASSERT_TRUE(run_all(cluster, kSecond, [&] { return !cluster.client(2).messages.empty(); }));
    expect_message(cluster.client(2).messages[0], 7);
}

// Each chunk is answered when its receivers have it: its block may be used again then.
TEST(Arena, chunks_through_a_small_arena_arrive_under_loss_and_over_upgrades) {
    constexpr std::size_t kChunk = 100'000;
    constexpr std::size_t kTotal = 20 * kChunk;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        ClusterConfig config = daemons(3, true, 0.02);
        config.sizes = {256, 512, 256U << 10, 4U << 20};
        config.seed = config.net.seed = seed;
        if (seed % 2 == 0) config.upgrade_every = 200;
        SimCluster cluster(config);
        ASSERT_TRUE(cluster.form(3, own_node));
        RingClient& source = cluster.client(0);
        const std::uint32_t stream = seed < 3 ? source.world : 1;
        const auto whole = Oracle::payload(seed, kTotal);
        const std::uint32_t first = source.cookie_next();
        std::size_t at = 0;
        const auto feed = [&] {  // a chunk takes the first block that is free
            for (std::size_t n = 0; n < 3; ++n)
                cluster.client(n).poll();
            while (at < kTotal) {
                const auto chunk = std::span(whole).subspan(at, kChunk);
                if (!source.send_chunk(stream, seed, chunk, at, kTotal)) break;
                at += kChunk;
            }
        };
        ASSERT_TRUE(cluster.run(
            60 * kSecond,
            [&] {
                return source.sends_done.size() == kTotal / kChunk &&
                       !cluster.client(1).messages.empty();
            },
            feed))
            << "seed " << seed << cluster.upgrade_error();
        EXPECT_EQ(source.sends_done.begin()->first, first);
        expect_message(cluster.client(1).messages[0], seed, kTotal);
        EXPECT_GT(cluster.count(Counter::tx_gathered_bytes), kTotal - 20 * 256);
        EXPECT_EQ(cluster.upgrades() > 0, config.upgrade_every != 0);
        EXPECT_EQ(cluster.client(1).broken, 0U);
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

// A client that scribbles over what is being sent changes its own payload, and nothing else.
TEST(Arena, a_client_that_changes_what_is_sent_changes_its_payload_alone) {
    SimCluster cluster(daemons(3, true, 0.02));
    ASSERT_TRUE(cluster.form(3, own_node));
    ASSERT_TRUE(cluster.form(3, own_node));  // neighbours on the same engines
    RingClient& source = cluster.client(0);
    RingClient& neighbour = cluster.client(3);
    ASSERT_TRUE(source.send(source.world, 7, Oracle::payload(7, kLong)));
    ASSERT_TRUE(neighbour.send(neighbour.world, 9, Oracle::payload(9, kLong)));
    unsigned ticks = 0;
    ASSERT_TRUE(cluster.run(
        10 * kSecond,
        [&] {
            return !source.sends_done.empty() && !cluster.client(4).messages.empty() &&
                   !cluster.client(5).messages.empty() && !cluster.client(1).messages.empty();
        },
        [&] {
            for (std::size_t n = 0; n < 6; ++n)
                cluster.client(n).poll();
            if (++ticks % 3 == 0)
                std::memset(source.region().tx(0, kLong), static_cast<int>(ticks), kLong);
        }));
    ASSERT_EQ(cluster.client(1).messages.size(), 1U);
    EXPECT_EQ(cluster.client(1).messages[0].payload.size(), kLong);
    EXPECT_EQ(cluster.client(1).messages[0].tag, 7U);
    for (const std::size_t n : {4U, 5U})
        expect_message(cluster.client(n).messages[0], 9);
    for (std::size_t n = 0; n < 6; ++n) {
        EXPECT_EQ(cluster.client(n).broken, 0U);
        EXPECT_EQ(cluster.client(n).closed(), 0);
    }
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(Arena, the_memory_of_a_dead_client_is_left_and_its_packets_are_repaired) {
    SimCluster cluster(daemons(2, true));
    ASSERT_TRUE(cluster.form(2, own_node));
    cluster.net().faults().lose_next(0, 1, 1);
    ASSERT_TRUE(cluster.client(0).send(1, 3, Oracle::payload(3, kLong)));
    cluster.touch(0);
    const std::uint64_t before = cluster.net().stats(0).tx_frames;
    ASSERT_TRUE(
        cluster.run(kSecond, [&] { return cluster.net().stats(0).tx_frames > before + 20; }));
    EXPECT_EQ(cluster.net().nic(0).arenas(), 1U);
    cluster.kill_client(0);  // its memory is lost with it
    ASSERT_TRUE(run_all(cluster, 5 * kSecond, [&] {
        return !cluster.client(1).peers_died.empty() && cluster.net().nic(0).arenas() == 0;
    }));
    EXPECT_EQ(cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
