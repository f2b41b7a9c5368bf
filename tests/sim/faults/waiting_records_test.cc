// SPDX-License-Identifier: BSD-3-Clause
// Short messages whose receiver takes none wait in their client's ring (endpoint/inlet.h), and hold
// up nothing but themselves. Three ranks on three nodes.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {
namespace {

class WaitingRecords : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(
            cluster_.form(3, [](std::size_t n) { return static_cast<std::uint16_t>(n % 3); }));
        ASSERT_TRUE(send(0, 1));
        ASSERT_TRUE(send(0, 2));
        ASSERT_TRUE(send(1, 0));
        finish();
    }
    void TearDown() override { EXPECT_EQ(cluster_.shut_down(), 0U) << "segments leaked"; }

    /// Submits a message that carries its number among those between the two.
    bool send(Rank from, Rank to) {
        std::uint32_t& number = sent_[from][to];
        const auto octets = std::as_bytes(std::span(&number, 1));
        if (!cluster_.client(from).send(to, to, octets)) return false;
        ++number;
        return true;
    }
    /// Takes what has come. Messages of each source come in order.
    void take(Rank rank) {
        RingClient& client = cluster_.client(rank);
        client.poll();
        for (const auto& message : client.messages) {
            std::uint32_t number = 0;
            ASSERT_EQ(message.payload.size(), sizeof number);
            std::memcpy(&number, message.payload.data(), sizeof number);
            EXPECT_EQ(number, came_[message.source][rank]++);
        }
        client.messages.clear();
    }
    /// Runs for a while, in which the ranks of `takers` take messages.
    void run(Nanos span, std::initializer_list<Rank> takers) {
        cluster_.run(
            span, [] { return false; },
            [&] {
                for (const Rank rank : takers)
                    take(rank);
            });
    }
    void finish() {
        const bool all = cluster_.run(
            kSecond, [&] { return std::memcmp(sent_, came_, sizeof sent_) == 0; },
            [&] {
                for (const Rank rank : {Rank{0}, Rank{1}, Rank{2}})
                    take(rank);
            });
        EXPECT_TRUE(all);
    }
    /// Fills the way from rank 0 to rank 1, which takes nothing.
    void fill() {
        for (int quiet = 0; quiet < 20; ++quiet) {
            while (send(0, 1))
                quiet = 0;
            run(100 * kMicrosecond, {0, 2});
        }
    }

    static ClusterConfig config() {
        ClusterConfig config;
        config.net.ports = 3;
        return config;
    }

    SimCluster cluster_{config()};
    std::uint32_t sent_[3][3] = {};
    std::uint32_t came_[3][3] = {};
};

TEST_F(WaitingRecords, what_has_no_window_stays_in_the_ring) {
    for (int n = 0; n < 100; ++n)
        (void)send(0, 1);
    run(10 * kMillisecond, {0, 2});
    EXPECT_LT(cluster_.count(Counter::messages_sent), 3U + sent_[0][1]);
    EXPECT_EQ(cluster_.count(Counter::submissions) - 3, cluster_.count(Counter::messages_sent))
        << "three joined, and no other record was taken before its message could be sent";
    finish();
}

TEST_F(WaitingRecords, an_engine_with_waiting_records_sleeps) {
    fill();
    const std::uint64_t rounds = cluster_.count(Counter::rounds_busy);
    run(10 * kMillisecond, {0, 2});
    EXPECT_LT(cluster_.count(Counter::rounds_busy) - rounds, 100U);
    finish();
}

TEST_F(WaitingRecords, a_message_to_another_rank_passes_them) {
    for (const int messages : {100, 300}) {  // those fill the ring
        for (int n = 0; n < messages; ++n) {
            (void)send(0, 1);
            if (n % 20 == 0) run(20 * kMicrosecond, {0, 2});
        }
        const std::uint32_t before = came_[0][2];
        EXPECT_TRUE(cluster_.run(
            100 * kMillisecond, [&] { return send(0, 2); }, [&] { take(0), take(2); }));
        run(kMillisecond, {0, 2});
        EXPECT_EQ(came_[0][2], before + 1);
    }
    finish();
}

TEST_F(WaitingRecords, a_message_to_another_rank_passes_those_of_a_closed_window) {
    cluster_.pause_node(1, cluster_.now() + 20 * kMillisecond);
    while (cluster_.count(Counter::messages_sent) == sent_[0][1] + 2U) {  // all but what waits
        ASSERT_TRUE(send(0, 1));
        run(20 * kMicrosecond, {0, 2});
    }
    for (int n = 0; n < 5; ++n)
        ASSERT_TRUE(send(0, 1));
    run(100 * kMicrosecond, {0, 2});
    ASSERT_TRUE(send(0, 2));
    run(kMillisecond, {0, 2});
    EXPECT_EQ(came_[0][2], sent_[0][2]);
    finish();
}

TEST_F(WaitingRecords, they_go_on_while_both_sides_send) {
    for (int turn = 0; turn < 300; ++turn) {
        for (int n = 0; n < 100; ++n) {
            (void)send(0, 1);
            (void)send(1, 0);
        }
        run(20 * kMicrosecond, {0, 1, 2});
    }
    EXPECT_GT(sent_[0][1], 2000U);
    finish();
}

TEST_F(WaitingRecords, a_death_of_the_receiver_ends_the_wait) {
    fill();
    EXPECT_FALSE(send(0, 2));
    cluster_.kill_client(1);
    const bool drained = cluster_.run(
        20 * kSecond, [&] { return send(0, 2); }, [&] { take(0), take(2); });
    EXPECT_TRUE(drained) << "records to the dead rank fill the ring";
    run(kMillisecond, {0, 2});
    EXPECT_EQ(came_[0][2], sent_[0][2]);
}

}  // namespace
}  // namespace ulc::sim
