// SPDX-License-Identifier: BSD-3-Clause
// Tests coll/mpi/pace.h: how a waiting rank divides its thread between ULC, the MPI and the
// processes that share its core.
#include "coll/mpi/pace.h"

#include <gtest/gtest.h>

namespace ulc::mpi {
namespace {

constexpr Nanos kQuick = 400;
constexpr Nanos kSlow = 3 * kMicrosecond;

struct Rank {
    Pace pace;
    Nanos now = kSecond;

    void yield(Nanos took) {
        pace.yielded(now, now + took);
        now += took;
    }
    void share_the_core() {
        for (int n = 0; n < 4; ++n)
            yield(kSlow);
    }
};

TEST(Pace, alone_polls_often_and_drives_the_mpi_each_round) {
    Rank rank;
    rank.pace.begin();
    for (int round = 0; round < 100; ++round) {
        EXPECT_EQ(rank.pace.polls(), 16u);
        EXPECT_TRUE(rank.pace.mpi_is_due(rank.now));
        rank.now += kQuick;
    }
}

TEST(Pace, alone_spins_before_it_yields) {
    Rank rank;
    rank.pace.begin();
    EXPECT_FALSE(rank.pace.yields(Pace::Found::kNothing, rank.now));
    EXPECT_TRUE(rank.pace.yields(Pace::Found::kNothing, rank.now + 50 * kMicrosecond));
}

TEST(Pace, alone_spins_on_while_frames_come) {
    Rank rank;
    rank.pace.begin();
    for (int round = 0; round < 100; ++round, rank.now += 40 * kMicrosecond)
        EXPECT_FALSE(rank.pace.yields(Pace::Found::kFrames, rank.now)) << round;
    EXPECT_TRUE(rank.pace.yields(Pace::Found::kNothing, rank.now + 10 * kMicrosecond));
}

TEST(Pace, on_a_shared_core_polls_little_and_yields_at_once) {
    Rank rank;
    rank.share_the_core();
    rank.pace.begin();
    EXPECT_EQ(rank.pace.polls(), 2u);
    EXPECT_TRUE(rank.pace.yields(Pace::Found::kNothing, rank.now));
    EXPECT_TRUE(rank.pace.yields(Pace::Found::kFrames, rank.now));
    EXPECT_FALSE(rank.pace.yields(Pace::Found::kCompletion, rank.now));
}

TEST(Pace, on_a_shared_core_the_mpi_has_its_turn_in_each_fourth_round) {
    Rank rank;
    rank.share_the_core();
    rank.pace.begin();
    for (unsigned round = 1; round <= 100; ++round) {
        rank.yield(kSlow);
        EXPECT_EQ(rank.pace.mpi_is_due(rank.now), round % Pace::kMpiApart == 0) << round;
    }
}

// Rounds of several waits count together, or waits of one round would never drive the MPI.
TEST(Pace, short_waits_give_the_mpi_its_turn_too) {
    Rank rank;
    rank.share_the_core();
    unsigned turns = 0;
    for (int wait = 0; wait < 100; ++wait) {
        rank.pace.begin();
        rank.yield(kSlow);
        turns += rank.pace.mpi_is_due(rank.now) ? 1 : 0;
    }
    EXPECT_EQ(turns, 100 / Pace::kMpiApart);
}

}  // namespace
}  // namespace ulc::mpi
