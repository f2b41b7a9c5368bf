// SPDX-License-Identifier: BSD-3-Clause
// The attach server's budgets of processor time and of lines in the log (main/attach/budget.h).
#include "main/attach/budget.h"

#include <gtest/gtest.h>

namespace ulc::daemon {
namespace {

constexpr Nanos kStart = 7 * kSecond;

TEST(TimeBudget, allows_a_burst_and_then_its_share) {
    TimeBudget budget(10, 100 * kMillisecond, kSecond);
    EXPECT_EQ(budget.wait(kStart), 0);
    EXPECT_TRUE(budget.full());
    budget.charge(99 * kMillisecond);
    EXPECT_EQ(budget.wait(kStart), 0);
    EXPECT_FALSE(budget.full());
    budget.charge(6 * kMillisecond);
    EXPECT_EQ(budget.wait(kStart), 500 * kMillisecond + kMicrosecond);
    EXPECT_GT(budget.wait(kStart + 500 * kMillisecond), 0);
    EXPECT_EQ(budget.wait(kStart + 501 * kMillisecond), 0);
    EXPECT_EQ(budget.wait(kStart + 3600 * kSecond), 0);
    EXPECT_TRUE(budget.full());
}

// A client gives up after 5 s. On a machine where each attach takes 0.2 s it must not wait that
// long for the debts of those before it.
TEST(TimeBudget, never_asks_for_more_than_the_longest_wait) {
    TimeBudget budget(10, 100 * kMillisecond, kSecond);
    EXPECT_EQ(budget.wait(kStart), 0);
    for (int n = 0; n < 10; ++n)
        budget.charge(200 * kMillisecond);
    EXPECT_EQ(budget.wait(kStart), kSecond + kMicrosecond);
    EXPECT_EQ(budget.wait(kStart + kSecond + kMillisecond), 0);
}

TEST(TimeBudget, a_clock_that_goes_back_earns_nothing) {
    TimeBudget budget(10, 100 * kMillisecond, kSecond);
    EXPECT_EQ(budget.wait(kStart), 0);
    budget.charge(105 * kMillisecond);
    EXPECT_EQ(budget.wait(kStart - kSecond), 500 * kMillisecond + kMicrosecond);
}

TEST(LineBudget, counts_the_lines_left_out) {
    LineBudget budget(2, kSecond);
    std::uint64_t untold = 9;
    EXPECT_TRUE(budget.allows(kStart, untold));
    EXPECT_EQ(untold, 0U);
    EXPECT_TRUE(budget.allows(kStart, untold));
    EXPECT_FALSE(budget.allows(kStart, untold));
    EXPECT_FALSE(budget.allows(kStart + kSecond - 1, untold));
    EXPECT_TRUE(budget.allows(kStart + kSecond, untold));
    EXPECT_EQ(untold, 2U);
}

}  // namespace
}  // namespace ulc::daemon
