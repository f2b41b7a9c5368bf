// SPDX-License-Identifier: BSD-3-Clause
// Tests rings and memory of the smallest sizes, with more messages pending than they hold: a
// process that waits must wait for an action of another one, and not in a circle.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/messages/flood.h"
#include "tests/sim/programs/message_programs.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kOctets = 1000;  ///< one packet, one block
constexpr std::uint64_t kMessages = 200;

// Each rank floods all others, and takes messages as they come. A rank receives more than it sends,
// so its receive blocks must come back while its own sends wait for the memory of the others, which
// wait likewise.
void flood(SimCluster& cluster, std::uint16_t ranks) { flood(cluster, ranks, kOctets, kMessages); }

void flood(std::uint16_t ranks, const ClusterConfig& config) {
    SimCluster cluster(config);
    flood(cluster, ranks);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

ClusterConfig smallest(std::uint16_t ranks) {
    ClusterConfig config;
    config.net.ports = ranks;
    config.sizes = {8, 16, 64U << 10, 16U << 10};
    config.engine.pending_sends = 8;
    config.engine.params.window = 32;
    config.engine.params.rx_pool_packets = 16;
    return config;
}

TEST(SmallRings, ranks_that_flood_each_other_get_all_across) {
    for (const std::uint16_t ranks : {2, 3, 4, 8}) {
        SCOPED_TRACE(ranks);
        flood(ranks, smallest(ranks));
    }
}

// In an earlier version, every frame of both nodes held unacknowledged data, and an acknowledgement
// needs a frame. With alpha this large, one user may hold every frame: only those reserved for
// control are left.
TEST(SmallRings, two_nodes_with_few_frames_can_still_acknowledge) {
    ClusterConfig config;
    config.net.ports = 2;
    config.net.bits_per_second = 1'000'000'000;
    // So that both fill their pools before they learn of it
    config.net.latency = 200 * kMicrosecond;
    config.net.segments = 64;
    config.engine.profile = "urtp+open";
    config.engine.accounts.frames_alpha = 1'000'000;
    flood(2, config);
}

// Frames that the NIC dropped for lack of buffers: the engine reads the NIC's counter once a
// second, and `ulc stat` shows them.
TEST(SmallRings, what_a_nic_misses_is_counted) {
    constexpr std::uint16_t kRanks = 4;
    ClusterConfig config;
    config.net.ports = kRanks;
    config.hosts.resize(1);
    config.hosts[0].rx_ring_frames = 2;
    config.hosts[0].receive_frame = 10 * kMicrosecond;
    SimCluster cluster(config);
    flood(cluster, kRanks);
    EXPECT_FALSE(cluster.run(2 * kSecond, [] { return false; }));
    for (std::uint16_t node = 0; node < kRanks; ++node) {
        EXPECT_GT(cluster.net().stats(node).overruns, 0U);
        EXPECT_EQ(cluster.engine(node).counters().get(Counter::port_missed),
                  cluster.net().stats(node).overruns);
    }
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// In an earlier version, packets that waited for a lost one took all frames into which a node
// receives, and the retransmission could never arrive: the pools of several endpoints, or senders,
// together exceed the port's.
TEST(SmallRings, a_node_full_of_packets_that_wait_still_receives_what_they_wait_for) {
    constexpr Rank kSenders = 3;
    constexpr std::uint64_t kEach = 80;
    ClusterConfig config;
    config.net.ports = kSenders + 1;
    config.net.segments = 128;
    config.engine.profile = "urtp+open";
    config.engine.params.rx_pool_packets = 1024;
    SimCluster cluster(config);
    ASSERT_TRUE(
        cluster.form(kSenders + 1, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    const std::vector<std::byte> payload(20);
    for (Rank from = 0; from < kSenders; ++from)
        cluster.net().faults().lose_next(from, kSenders, 1);
    std::uint64_t sent[kSenders] = {};
    const auto tick = [&] {
        for (Rank from = 0; from < kSenders; ++from) {
            while (sent[from] < kEach && cluster.client(from).send(kSenders, sent[from], payload))
                ++sent[from];
            cluster.client(from).poll();
        }
        cluster.client(kSenders).poll();
    };
    EXPECT_TRUE(cluster.run(
        2 * kSecond, [&] { return cluster.client(kSenders).messages.size() == kSenders * kEach; },
        tick))
        << cluster.client(kSenders).messages.size();
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// In an earlier version, messages without a posted receive kept the last blocks of the arena, and
// those with a posted receive never came. Each source must have a way through, and no source may
// keep it.
TEST(SmallRings, awaited_messages_pass_those_that_nobody_asks_for) {
    constexpr std::uint16_t kRanks = 30;
    constexpr std::size_t kLength = 1400;
    ClusterConfig config;
    config.net.ports = 3;
    config.sizes = {64, 64, 64U << 10, 64U << 10};
    LibCluster lib(config, kRanks);
    ASSERT_TRUE(lib.form());
    const std::vector<unsigned char> octets(kLength, 1);
    std::vector<std::vector<unsigned char>> got(kRanks, std::vector<unsigned char>(kLength));
    std::vector<ulc_request> receives(kRanks);
    for (std::uint16_t rank = 1; rank < kRanks; ++rank)
        ASSERT_EQ(ulc_receive(lib.endpoint(0), rank, 2, UINT64_MAX, got[rank].data(), kLength,
                              &receives[rank]),
                  ULC_OK);
    std::vector<ulc_request> sends(kRanks * 2U);
    std::vector<unsigned> sent(kRanks, 0);
    std::vector<bool> done(kRanks, false);
    done[0] = true;
    const auto all_done = [&] { return std::ranges::count(done, false) == 0; };
    const auto act = [&](std::uint16_t rank, Nanos now) {
        ulc_status status{};
        for (std::uint16_t from = 1; rank == 0 && from < kRanks; ++from)
            if (!done[from])
                done[from] = ulc_test(lib.endpoint(0), &receives[from], &status) == ULC_OK;
        for (; rank != 0 && sent[rank] < 2; ++sent[rank])  // tag 1, then tag 2
            if (ulc_send(lib.endpoint(rank), 0, sent[rank] + 1, octets.data(), kLength,
                         &sends[2U * rank + sent[rank]]) != ULC_OK)
                break;
        return now + kMillisecond;
    };
    EXPECT_TRUE(lib.run(5 * kSecond, all_done, act))
        << std::ranges::count(done, false) << " have not come";
}

// In an earlier version, sends of the engine for a collective waited, in the queue of the client's
// sends, for the end of a message in chunks, and kept the slots that the rest of the message needed
// (seeds 6054, 8788 and 9605 of `ulc-sim check`).
TEST(SmallRings, a_long_message_ends_beside_collectives_that_the_engine_carries_out) {
    constexpr std::uint16_t kRanks = 12;
    constexpr std::size_t kLong = 160'000;  // 20 chunks
    ClusterConfig config = smallest(kRanks);
    config.sizes.sq_slots = 32;  // so that all of it is in the engine at once
    const auto offloading = [](std::uint16_t) {
        client::Limits limits;
        limits.offload = 1;
        return limits;
    };
    LibCluster lib(config, 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<std::vector<unsigned char>> octets(kRanks, std::vector<unsigned char>(kLong));
    std::vector<ulc_request> requests(kRanks);
    std::vector<std::vector<ulc_coll*>> running(kRanks);
    std::vector<bool> begun(kRanks, false);
    std::vector<bool> done(kRanks, false);
    const auto start = [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        unsigned char* memory = octets[rank].data();
        const int error = rank == 0
                              ? ulc_multicast(ep, ulc_world(ep), ULC_SUBSET_ALL, 1, memory, kLong,
                                              &requests[rank])
                              : ulc_receive(ep, 0, 1, UINT64_MAX, memory, kLong, &requests[rank]);
        ASSERT_EQ(error, ULC_OK);
        running[rank].resize(3);  // each sends to four others from rank 0
        for (ulc_coll*& each : running[rank])
            ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), 0, nullptr, 0, "binomial", &each),
                      ULC_OK);
    };
    const auto act = [&](std::uint16_t rank, Nanos now) {
        if (!begun[rank]) {
            start(rank);
            lib.cluster().pause_client(rank, now + kMillisecond);  // its engine continues
        }
        begun[rank] = true;
        std::erase_if(running[rank], [&](ulc_coll* each) {
            return ulc_coll_test(lib.endpoint(rank), each) == ULC_OK;
        });
        ulc_status status{};
        if (!done[rank])
            done[rank] = ulc_test(lib.endpoint(rank), &requests[rank], &status) == ULC_OK;
        return now + kMillisecond;
    };
    const auto all_done = [&] {
        return std::ranges::count(done, false) == 0 &&
               std::ranges::all_of(running, [](const auto& of_rank) { return of_rank.empty(); });
    };
    EXPECT_TRUE(lib.run(5 * kSecond, all_done, act))
        << std::ranges::count(done, false) << " have not got it";
    EXPECT_GT(lib.cluster().count(Counter::offload_taken), 0U);
    EXPECT_EQ(lib.shut_down(), 0U);
}

// In an earlier version, sends to a rank 64 above that of a message in chunks waited for its end,
// in the queue that its next chunks needed.
TEST(SmallRings, sends_to_other_ranks_pass_a_message_in_chunks_however_many_ranks_there_are) {
    constexpr std::uint16_t kRanks = 66;
    constexpr std::size_t kLong = 160'000;  // 40 chunks, of which two are in the engine at a time
    constexpr std::size_t kShorts = 200;    // more than ring and queue hold
    ClusterConfig config = smallest(2);
    LibCluster lib(config, kRanks);
    ASSERT_TRUE(lib.form());
    const std::vector<unsigned char> octets(kLong);
    std::vector<unsigned char> got(kLong);
    ulc_request longer{};
    ulc_request received{};
    std::vector<ulc_request> shorts(kShorts);
    bool begun[2] = {};
    bool done = false;
    const auto act = [&](std::uint16_t rank, Nanos now) {
        ulc_endpoint* ep = lib.endpoint(rank);
        ulc_status status{};
        if (rank == 0 && !begun[0]) {
            begun[0] = true;
            EXPECT_EQ(ulc_send(ep, 1, 1, octets.data(), kLong, &longer), ULC_OK);
            for (ulc_request& each : shorts)
                EXPECT_EQ(ulc_send(ep, 65, 1, nullptr, 0, &each), ULC_OK);
        } else if (rank == 1 && !done) {
            if (!begun[1]) {
                EXPECT_EQ(ulc_receive(ep, 0, 1, UINT64_MAX, got.data(), kLong, &received), ULC_OK);
            }
            begun[1] = true;
            done = ulc_test(ep, &received, &status) == ULC_OK;
        }
        return now + kMillisecond;
    };
    EXPECT_TRUE(lib.run(
        2 * kSecond, [&] { return done; }, act))
        << "it stopped itself";
    EXPECT_EQ(lib.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
