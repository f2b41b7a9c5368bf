// SPDX-License-Identifier: BSD-3-Clause
// Both ends of a relation come to one view of it: a rank that is held for dead, and comes back,
// learns it, whatever the cause was (docs/PROTOCOL.md §8).
#include <gtest/gtest.h>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr Nanos kDead = 2 * kSecond;  ///< node_dead and peer_dead of the default configuration
constexpr Nanos kAgree = 2 * kDead;   ///< both ends agree within this

/// Two nodes of one rank each, or more ranks on the second.
struct Pair {
    explicit Pair(std::size_t ranks = 2)
        : cluster([] {
              ClusterConfig config;
              config.net.ports = 2;
              return config;
          }()) {
        formed = cluster.form(
            ranks, [](std::size_t n) { return static_cast<std::uint16_t>(n == 0 ? 0 : 1); });
    }
    /// Runs, with clients that look at their rings while their node is not paused.
    bool run(Nanos limit, const std::function<bool()>& done) {
        return cluster.run(limit, done, [this] {
            for (std::size_t n = 0; n < cluster.size(); ++n)
                if (!cluster.gone(n) && (cluster.node_of(n) == 0 || cluster.now() >= paused_until))
                    cluster.client(n).poll();
        });
    }
    void pause(Nanos lasts) {
        paused_until = cluster.now() + lasts;
        cluster.pause_node(1, paused_until);
    }
    SimCluster cluster;
    Nanos paused_until = 0;
    bool formed = false;
};

// N-15
TEST(Relations, a_stopped_rank_that_comes_back_and_sends_learns_that_it_is_held_for_dead) {
    Pair pair;
    ASSERT_TRUE(pair.formed);
    pair.pause(2 * kDead);
    ASSERT_TRUE(pair.run(2 * kDead, [&] { return !pair.cluster.client(0).peers_died.empty(); }));
    ASSERT_FALSE(pair.run(pair.paused_until - pair.cluster.now(), [] { return false; }));
    const std::uint64_t cookie = pair.cluster.client(1).cookie_next();
    ASSERT_TRUE(pair.cluster.client(1).send(0, 7, Oracle::payload(7, 3000)));
    pair.cluster.touch(1);
    EXPECT_TRUE(pair.run(kAgree, [&] { return !pair.cluster.client(1).peers_died.empty(); }));
    EXPECT_TRUE(pair.run(kSecond, [&] {
        return pair.cluster.client(1).sends_done.contains(static_cast<std::uint32_t>(cookie));
    }));
    EXPECT_GT(pair.cluster.engine(1).counters().get(Counter::expelled), 0U);
    EXPECT_EQ(pair.cluster.shut_down(), 0U);
}

// N-2
TEST(Relations, a_stopped_rank_that_comes_back_and_only_waits_learns_it_as_well) {
    Pair pair(3);
    ASSERT_TRUE(pair.formed);
    pair.pause(2 * kDead);
    ASSERT_FALSE(pair.run(2 * kDead, [] { return false; }));
    ASSERT_EQ(pair.cluster.client(0).peers_died.size(), 2U);
    EXPECT_TRUE(pair.run(kAgree, [&] {
        return !pair.cluster.client(1).peers_died.empty() &&
               !pair.cluster.client(2).peers_died.empty();
    }));
    // The two ranks of the node that came back still have each other.
    ASSERT_TRUE(pair.cluster.client(1).send(2, 8, Oracle::payload(8, 100)));
    pair.cluster.touch(1);
    EXPECT_TRUE(pair.run(kSecond, [&] { return pair.cluster.client(2).messages.size() == 1; }));
    EXPECT_EQ(pair.cluster.client(1).peers_died.size(), 1U);
    EXPECT_EQ(pair.cluster.shut_down(), 0U);
}

// N-10
TEST(Relations, a_short_stop_ends_nothing) {
    Pair pair;
    ASSERT_TRUE(pair.formed);
    pair.pause(kDead / 2);
    ASSERT_FALSE(pair.run(3 * kDead, [] { return false; }));
    ASSERT_TRUE(pair.cluster.client(1).send(0, 7, Oracle::payload(7, 100)));
    pair.cluster.touch(1);
    EXPECT_TRUE(pair.run(kSecond, [&] { return pair.cluster.client(0).messages.size() == 1; }));
    EXPECT_TRUE(pair.cluster.client(0).peers_died.empty());
    EXPECT_TRUE(pair.cluster.client(1).peers_died.empty());
    EXPECT_EQ(pair.cluster.shut_down(), 0U);
}

// All frames from rank 1 to rank 0 are lost; the other way all arrives. Each end asks.
// N-9
TEST(Relations, loss_in_one_direction_ends_the_relation_at_both_ends) {
    Pair pair;
    ASSERT_TRUE(pair.formed);
    pair.cluster.net().faults().cut(1, 0, true);
    ASSERT_TRUE(pair.cluster.client(1).send(0, 7, Oracle::payload(7, 100)));
    pair.cluster.touch(1);
    EXPECT_TRUE(pair.run(kAgree + kDead / 8, [&] {
        return !pair.cluster.client(0).peers_died.empty() &&
               !pair.cluster.client(1).peers_died.empty();
    }));
    EXPECT_EQ(pair.cluster.shut_down(), 0U);
}

// The node that does not hear rank 1 goes on to multicast, so rank 1 hears it all the time.
// N-9
TEST(Relations, a_node_that_is_heard_and_never_answers_is_dead) {
    Pair pair(3);
    ASSERT_TRUE(pair.formed);
    pair.cluster.net().faults().cut(1, 0, true);
    Nanos next = 0;
    const bool agreed = pair.run(kAgree, [&] {
        if (pair.cluster.now() >= next) {
            next = pair.cluster.now() + 10 * kMillisecond;
            (void)pair.cluster.client(0).send(pair.cluster.client(0).world, 1,
                                              Oracle::payload(1, 100));
            pair.cluster.touch(0);
        }
        return pair.cluster.client(0).peers_died.size() == 2 &&
               pair.cluster.client(1).peers_died.size() == 1 &&
               pair.cluster.client(2).peers_died.size() == 1;
    });
    EXPECT_TRUE(agreed);
    EXPECT_EQ(pair.cluster.shut_down(), 0U);
}

// N-3
TEST(Relations, the_death_of_a_rank_is_not_that_of_its_node) {
    Pair pair(3);
    ASSERT_TRUE(pair.formed);
    pair.cluster.kill_client(1);
    pair.cluster.touch(1);
    ASSERT_FALSE(pair.run(kDead, [] { return false; }));
    EXPECT_EQ(pair.cluster.client(0).peers_died.size(), 1U);
    ASSERT_TRUE(pair.cluster.client(2).send(0, 8, Oracle::payload(8, 100)));
    pair.cluster.touch(1);
    EXPECT_TRUE(pair.run(kSecond, [&] { return pair.cluster.client(0).messages.size() == 1; }));
    EXPECT_EQ(pair.cluster.shut_down(), 0U);
}

// All four BYEs are lost, and the peer sends nothing that would be answered: its pings ask.
// N-3, N-7
TEST(Relations, a_rank_that_left_unheard_is_found_by_a_question) {
    Pair pair(3);
    ASSERT_TRUE(pair.formed);
    pair.cluster.net().faults().cut(1, 0, true);
    ASSERT_TRUE(pair.cluster.client(1).leave());
    pair.cluster.touch(1);
    ASSERT_FALSE(pair.run(kSecond / 2, [] { return false; }));
    pair.cluster.net().faults().cut(1, 0, false);
    EXPECT_TRUE(pair.run(kAgree, [&] { return !pair.cluster.client(0).peers_left.empty(); }));
    EXPECT_TRUE(pair.cluster.client(0).peers_died.empty()) << "its node lives, and rank 2";
    EXPECT_EQ(pair.cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
