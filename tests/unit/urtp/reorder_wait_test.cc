// SPDX-License-Identifier: BSD-3-Clause
// The wait for late packets (urtp/receiver/reorder_wait.h): it grows with their lateness and with
// spurious requests, and shrinks with needed repairs.
#include "urtp/receiver/reorder_wait.h"

#include <gtest/gtest.h>

namespace ulc::urtp {
namespace {

constexpr Nanos kLeast = 20 * kMicrosecond;
constexpr Nanos kMost = 100 * kMillisecond;
constexpr Nanos kStart = 3 * kSecond;

Nanos wait_of(const ReorderWait& reorder) { return reorder.wait(kLeast, kMost); }

/// A packet that was asked for comes `late` after it was missed, and comes again.
void ask_needlessly(ReorderWait& reorder, Nanos late) {
    reorder.missed(kStart);
    reorder.came_asked(kStart + late);
    reorder.repaired();
    reorder.came_again();
}

TEST(ReorderWait, begins_with_the_least) {
    EXPECT_EQ(wait_of(ReorderWait()), kLeast);
    EXPECT_EQ(ReorderWait().wait(kMost, kLeast), kMost) << "the least counts, if they contradict";
}

// S-57
TEST(ReorderWait, is_twice_the_lateness_of_packets) {
    ReorderWait reorder;
    reorder.missed(kStart);
    reorder.came_late(kStart + 300 * kMicrosecond);
    EXPECT_EQ(wait_of(reorder), 600 * kMicrosecond);
    reorder.came_late(kStart + 5 * kMillisecond);
    EXPECT_EQ(wait_of(reorder), 10 * kMillisecond);
    reorder.came_late(kStart + kSecond);
    EXPECT_EQ(wait_of(reorder), kMost);
}

TEST(ReorderWait, forgets_one_packet_that_was_late_as_others_come) {
    ReorderWait reorder;
    reorder.missed(kStart);
    reorder.came_late(kStart + 10 * kMillisecond);
    for (int n = 0; n < 400; ++n)
        reorder.came_late(kStart + 100 * kMicrosecond);
    EXPECT_GE(wait_of(reorder), 200 * kMicrosecond);
    EXPECT_LE(wait_of(reorder), 300 * kMicrosecond);
}

// S-57
TEST(ReorderWait, grows_after_a_spurious_request_and_not_after_one_that_was_needed) {
    ReorderWait reorder;
    reorder.missed(kStart);
    reorder.came_asked(kStart + kMillisecond);
    EXPECT_EQ(wait_of(reorder), kLeast) << "perhaps the repair";
    reorder.came_again();
    EXPECT_GE(wait_of(reorder), 2 * kMillisecond);
    EXPECT_LE(wait_of(reorder), 2 * kMillisecond + 2 * kMicrosecond);
    const Nanos grown = wait_of(reorder);
    reorder.came_again();
    EXPECT_EQ(wait_of(reorder), grown) << "a frame that the network doubled";
}

// S-57
TEST(ReorderWait, halves_after_sixteen_needed_repairs_in_a_row) {
    ReorderWait reorder;
    ask_needlessly(reorder, 4 * kMillisecond);
    const Nanos grown = wait_of(reorder);
    for (int n = 2; n < ReorderWait::kRepairs; ++n)
        reorder.repaired();
    EXPECT_EQ(wait_of(reorder), grown);
    ask_needlessly(reorder, kMicrosecond);
    for (int n = 1; n < ReorderWait::kRepairs; ++n)
        reorder.repaired();
    EXPECT_EQ(wait_of(reorder), grown) << "they begin again after a spurious one";
    reorder.repaired();
    EXPECT_NEAR(static_cast<double>(wait_of(reorder)), static_cast<double>(grown) / 2, 1000);
    for (int n = 0; n < 40 * ReorderWait::kRepairs; ++n)
        reorder.repaired();
    EXPECT_EQ(wait_of(reorder), kLeast);
}

TEST(ReorderWait, measures_across_the_wrap_of_its_stamps) {
    constexpr Nanos kWrap = (Nanos{1} << 32U) * kMicrosecond;
    ReorderWait reorder;
    reorder.missed(kWrap - kMillisecond);
    reorder.came_late(kWrap + kMillisecond);
    EXPECT_EQ(wait_of(reorder), 4 * kMillisecond);
}

}  // namespace
}  // namespace ulc::urtp
