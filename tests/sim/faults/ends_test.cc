// SPDX-License-Identifier: BSD-3-Clause
// Tests how clients and engines leave, close and die; full rings; sleeping clients.
#include <gtest/gtest.h>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"
#include "wire/build.h"

namespace ulc::sim {
namespace {

std::uint16_t own_node(std::size_t n) { return static_cast<std::uint16_t>(n); }
std::uint16_t one_node(std::size_t) { return 0; }

ClusterConfig lossy(std::uint16_t ports) {
    ClusterConfig config;
    config.net.ports = ports;
    config.net.faults = {.loss = 0.1};
    return config;
}

// J-24
TEST(Ends, leaving_delivers_first_and_the_peer_is_told_after) {
    SimCluster cluster(lossy(2));
    ASSERT_TRUE(cluster.form(2, own_node));
    for (std::uint64_t n = 0; n < 40; ++n)
        ASSERT_TRUE(cluster.client(0).send(1, n, Oracle::payload(n, 2000)));
    ASSERT_TRUE(cluster.client(0).leave());
    ASSERT_TRUE(cluster.run(
        5 * kSecond, [&] { return cluster.client(0).left; },
        [&] {
            cluster.client(0).poll();
            cluster.client(1).poll();
            if (!cluster.client(1).peers_left.empty()) {
                EXPECT_EQ(cluster.client(1).messages.size(), 40U);
            }
        }));
    EXPECT_EQ(cluster.client(0).left_status, 0);
    EXPECT_TRUE(cluster.run(
        5 * kSecond, [&] { return !cluster.client(1).peers_left.empty(); },
        [&] { cluster.client(1).poll(); }));
    EXPECT_EQ(cluster.client(1).messages.size(), 40U);
    EXPECT_TRUE(cluster.client(1).peers_died.empty());
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(Ends, a_client_that_leaves_in_the_round_in_which_its_job_forms_has_left) {
    SimCluster cluster({});
    RingClient& client = cluster.client(cluster.add_client(0));
    ASSERT_TRUE(client.join("alone", 0, 1));
    ASSERT_TRUE(client.leave());  // both are taken before the job reports that it has formed
    cluster.touch(0);
    ASSERT_TRUE(cluster.run(kSecond, [&] { return client.poll() > 0 && client.left; }));
    EXPECT_EQ(client.left_status, 0);
    EXPECT_FALSE(client.formed());
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// A frame of an earlier incarnation names no endpoint: the same place in the table has another
// handle.
// H-3
TEST(Ends, an_endpoint_that_takes_a_dead_ones_place_has_another_handle) {
    ClusterConfig config;
    config.engine.endpoints_max = 1;  // else its place is assigned again only after all others
    SimCluster cluster(config);
    const std::size_t first = cluster.add_client(0);
    const auto before = cluster.endpoint(first);
    cluster.kill_client(first);
    cluster.touch(0);
    ASSERT_TRUE(cluster.run(kSecond, [&] { return cluster.engine(0).detached(before); }));
    const auto after = cluster.endpoint(cluster.add_client(0));
    EXPECT_EQ(after & kHandleIndexMask, before & kHandleIndexMask);
    EXPECT_NE(after, before);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// J-13
TEST(Ends, data_for_a_rank_that_has_not_formed_is_dropped) {
    SimCluster cluster({});
    const std::size_t client = cluster.add_client(0);
    std::byte frame[64] = {};
    wire::FrameHead head;
    head.destination = SimNet::mac_of(0);
    head.source = SimNet::mac_of(1);
    head.type = wire::FrameType::kData;
    head.flags = wire::kFlagFirst | wire::kFlagLast;
    head.handle = cluster.endpoint(client);
    head.rank = 1;
    const std::size_t octets = wire::build_data(frame, head, {}, 1);
    cluster.net().inject(0, frame, static_cast<std::uint32_t>(octets));
    (void)cluster.run(10 * kMillisecond, [] { return false; });
    EXPECT_EQ(cluster.count(Counter::drop_not_formed), 1U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(Ends, closing_without_leaving_delivers_what_was_submitted) {
    SimCluster cluster(lossy(2));
    ASSERT_TRUE(cluster.form(2, own_node));
    for (std::uint64_t n = 0; n < 40; ++n)
        ASSERT_TRUE(cluster.client(0).send(1, n, Oracle::payload(n, 2000)));
    const auto id = cluster.endpoint(0);
    cluster.close_client(0);  // not one round since
    EXPECT_FALSE(cluster.engine(0).detached(id));
    ASSERT_TRUE(cluster.run(
        5 * kSecond, [&] { return cluster.engine(0).detached(id); },
        [&] { cluster.client(1).poll(); }));
    EXPECT_TRUE(cluster.run(
        5 * kSecond, [&] { return !cluster.client(1).peers_left.empty(); },
        [&] { cluster.client(1).poll(); }));
    EXPECT_EQ(cluster.client(1).messages.size(), 40U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// J-22
TEST(Ends, a_client_killed_in_mid_message_frees_its_endpoint_and_its_peers_are_told) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        ClusterConfig config = lossy(3);
        config.seed = config.net.seed = seed;
        config.net.bits_per_second = 100'000'000;
        SimCluster cluster(config);
        ASSERT_TRUE(cluster.form(3, own_node));
        const auto id = cluster.endpoint(1);
        // Sends the first of two chunks, of which only a part leaves.
        ASSERT_TRUE(cluster.client(1).send_chunk(0, 1, Oracle::payload(1, 100'000), 0, 200'000));
        ASSERT_TRUE(cluster.client(1).send_chunk(cluster.client(1).world, 2,
                                                 Oracle::payload(1, 20'000), 0, 40'000));
        const auto poll = [&] {
            cluster.client(0).poll();
            cluster.client(2).poll();
        };
        const Nanos die_at = cluster.now() + kMillisecond * static_cast<Nanos>(seed);
        (void)cluster.run(
            kSecond, [&] { return cluster.now() >= die_at; }, poll);
        cluster.kill_client(1);
        ASSERT_TRUE(cluster.run(
            15 * kSecond,
            [&] {
                return cluster.engine(1).detached(id) && !cluster.client(0).peers_died.empty() &&
                       !cluster.client(2).peers_died.empty();
            },
            poll))
            << "seed " << seed;
        EXPECT_TRUE(cluster.client(0).messages.empty());
        // The others continue.
        ASSERT_TRUE(cluster.client(0).send(cluster.client(0).world, 3, Oracle::payload(3, 100)));
        EXPECT_TRUE(cluster.run(
            kSecond, [&] { return cluster.client(2).messages.size() == 1; }, poll));
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

// The chunks for the dead rank end together with the messages that waited behind them. No later
// frame makes the engine look at those again.
TEST(Ends, what_waited_behind_a_message_to_the_dead_goes_on) {
    ClusterConfig config;
    config.net.ports = 3;
    config.sizes = {64, 64, 256U << 10, 16U << 10};
    config.engine.params.window = 32;
    config.engine.params.rx_pool_packets = 16;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(3, own_node));
    constexpr std::size_t kChunk = 16384;
    constexpr std::size_t kOctets =
        12 * kChunk;  // more than rank 1, which takes nothing, has space for
    for (std::size_t at = 0; at < kOctets; at += kChunk)
        ASSERT_TRUE(cluster.client(0).send_chunk(1, 1, Oracle::payload(1, kChunk), at, kOctets));
    const std::uint32_t world = cluster.client(0).world;
    ASSERT_TRUE(cluster.client(0).send(world, 2, Oracle::payload(2, 100)));
    const auto poll = [&] {
        cluster.client(0).poll();
        cluster.client(2).poll();
    };
    (void)cluster.run(
        200 * kMillisecond, [] { return false; }, poll);
    ASSERT_TRUE(cluster.client(2).messages.empty()) << "it shares a receiver with what waits";
    cluster.kill_client(1);
    EXPECT_TRUE(cluster.run(
        10 * kSecond, [&] { return cluster.client(2).messages.size() == 1; }, poll));
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// H-1
TEST(Ends, the_death_of_an_engine_is_noticed_by_every_peer) {
    ClusterConfig config;
    config.net.ports = 3;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(4, [](std::size_t n) { return static_cast<std::uint16_t>(n % 3); }));
    const Nanos died = cluster.now();
    cluster.kill_node(0);  // ranks 0 and 3
    const auto poll = [&] {
        cluster.client(1).poll();
        cluster.client(2).poll();
    };
    EXPECT_TRUE(cluster.run(
        20 * kSecond,
        [&] {
            return cluster.client(1).peers_died.size() == 2 &&
                   cluster.client(2).peers_died.size() == 2;
        },
        poll));
    EXPECT_LT(cluster.now() - died, 6 * kSecond);
    ASSERT_TRUE(cluster.client(1).send(cluster.client(1).world, 3, Oracle::payload(3, 100)));
    EXPECT_TRUE(cluster.run(
        kSecond, [&] { return cluster.client(2).messages.size() == 1; }, poll));
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(Ends, a_silent_client_whose_engine_lives_is_not_dead) {
    ClusterConfig config;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, own_node));
    ASSERT_TRUE(cluster.client(0).send(1, 1, Oracle::payload(1, 100)));
    // Client 1 computes for a minute.
    (void)cluster.run(
        60 * kSecond, [] { return false; }, [&] { cluster.client(0).poll(); });
    EXPECT_TRUE(cluster.client(0).peers_died.empty());
    cluster.client(1).poll();
    EXPECT_EQ(cluster.client(1).messages.size(), 1U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(BackPressure, a_full_ring_says_again_and_loses_nothing) {
    ClusterConfig config;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, own_node));
    std::uint64_t sent = 0;
    // The receiver does not poll: credit, send queue and ring fill up in turn.
    (void)cluster.run(
        kSecond / 10, [] { return false; },
        [&] {
            cluster.client(0).poll();
            while (sent < 100'000 && cluster.client(0).send(1, sent, Oracle::payload(sent, 500)))
                ++sent;
        });
    EXPECT_LT(sent, 5'000U);
    EXPECT_GT(cluster.count(Counter::client_stalled), 0U);
    EXPECT_TRUE(cluster.run(
        10 * kSecond, [&] { return cluster.client(1).messages.size() == sent; },
        [&] {
            cluster.client(0).poll();
            cluster.client(1).poll();
        }));
    for (std::uint64_t n = 0; n < cluster.client(1).messages.size(); ++n)
        ASSERT_EQ(cluster.client(1).messages[n].tag, n);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(BackPressure, unconsumed_data_of_one_source_do_not_stop_another) {
    ClusterConfig config;
    config.net.ports = 3;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(3, own_node));
    // Client 2 has learned of both, then keeps every block of source 0 and gives none back.
    RingClient& receiver = cluster.client(2);
    ASSERT_TRUE(cluster.client(1).send(2, 1, Oracle::payload(1, 1000)));
    ASSERT_TRUE(cluster.run(
        kSecond, [&] { return receiver.messages.size() == 1; }, [&] { receiver.poll(); }));
    receiver.keep_blocks();
    std::uint64_t sent = 0;
    (void)cluster.run(
        kSecond / 20, [] { return false; },
        [&] {
            cluster.client(0).poll();
            receiver.poll();
            while (cluster.client(0).send(2, sent, Oracle::payload(sent, 1000)))
                ++sent;
        });
    const std::size_t before = receiver.messages.size();
    ASSERT_GT(sent, before) << "the arena must be full by now";
    ASSERT_TRUE(cluster.client(1).send(2, 77, Oracle::payload(77, 1000)));
    EXPECT_TRUE(cluster.run(
        kSecond, [&] { return receiver.messages.back().source == 1; }, [&] { receiver.poll(); }));
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(BackPressure, releases_pass_waiting_sends_in_a_ring_of_8) {
    ClusterConfig config;
    config.sizes = {8, 64, 64U << 10, 64U << 10};
    config.engine.pending_sends = 8;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, own_node));
    constexpr std::size_t kMessages = 500;
    std::uint64_t sent[2] = {0, 0};
    EXPECT_TRUE(cluster.run(
        10 * kSecond,
        [&] {
            return cluster.client(0).messages.size() == kMessages &&
                   cluster.client(1).messages.size() == kMessages;
        },
        [&] {
            for (std::uint32_t n = 0; n < 2; ++n) {
                RingClient& client = cluster.client(n);
                client.poll();
                while (sent[n] < kMessages &&
                       client.send(1 - n, sent[n], Oracle::payload(sent[n], 3000)))
                    ++sent[n];
            }
        }));
    EXPECT_EQ(cluster.client(0).closed(), 0);
    EXPECT_EQ(cluster.client(1).closed(), 0);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// A rank that has sent may compute, or wait for something else, for as long as it likes, although
// its completion ring is full.
TEST(BackPressure, sends_leave_while_their_client_takes_nothing) {
    constexpr std::size_t kMessages = 200;
    for (const bool same_node : {false, true}) {
        for (const std::uint32_t octets : {105U, 1000U, 4000U}) {
            ClusterConfig config;
            config.sizes = {256, 8, 1U << 20, 1U << 20};
            SimCluster cluster(config);
            ASSERT_TRUE(cluster.form(2, same_node ? one_node : own_node));
            RingClient& receiver = cluster.client(1);
            constexpr std::size_t kUntaken = 10;
            for (std::uint64_t n = 0; n < kUntaken; ++n)
                ASSERT_TRUE(receiver.send(0, n, Oracle::payload(n, 8)));
            (void)cluster.run(kMillisecond, [] { return false; });
            for (std::uint64_t n = 0; n < kMessages; ++n)
                ASSERT_TRUE(cluster.client(0).send(1, n, Oracle::payload(n, octets)));
            EXPECT_TRUE(cluster.run(
                kSecond, [&] { return receiver.messages.size() == kMessages; },
                [&] { receiver.poll(); }))
                << octets << " octets, " << receiver.messages.size() << " came";
            EXPECT_TRUE(cluster.run(
                kSecond,
                [&] {
                    return cluster.client(0).sends_done.size() == kMessages &&
                           cluster.client(0).messages.size() == kUntaken;
                },
                [&] { cluster.client(0).poll(); }));
            EXPECT_EQ(cluster.shut_down(), 0U);
        }
    }
}

TEST(Wake, a_sleeping_client_is_woken_once_and_a_polling_one_never) {
    ClusterConfig config;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, own_node));
    const auto send_one = [&] {
        ASSERT_TRUE(cluster.client(0).send(1, 1, Oracle::payload(1, 10)));
        (void)cluster.run(kMillisecond, [] { return false; });
    };
    send_one();
    EXPECT_EQ(cluster.wakes(), 0U);
    abi::EndpointControl& control = cluster.client(1).region().control();
    const std::uint32_t sequence = abi::client_going_to_sleep(control);
    send_one();
    EXPECT_EQ(cluster.wakes(), 1U);
    EXPECT_NE(control.wake_sequence.load(), sequence);
    send_one();
    EXPECT_EQ(cluster.wakes(), 1U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(Wake, a_client_that_sleeps_until_its_send_is_done_is_woken) {
    ClusterConfig config;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, own_node));
    ASSERT_TRUE(cluster.client(0).send(1, 1, Oracle::payload(1, 1000)));
    static_cast<void>(abi::client_going_to_sleep(cluster.client(0).region().control()));
    (void)cluster.run(kMillisecond, [] { return false; });
    EXPECT_EQ(cluster.wakes(), 1U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
