// SPDX-License-Identifier: BSD-3-Clause
// Tests base/idle_ladder.h: what a poller does while nothing moves, and when it concludes that it
// shares its core.
#include "base/idle_ladder.h"

#include <gtest/gtest.h>

namespace ulc {
namespace {

constexpr Nanos kQuick = 400;
constexpr Nanos kSlow = 3 * kMicrosecond;

struct Poller {
    IdleLadder ladder{IdleLadder::Limits{}};
    Nanos now = kSecond;

    void yield(Nanos took) {
        ladder.yielded(now, now + took);
        now += took;
    }
    [[nodiscard]] bool shared() const { return ladder.shares_its_core(now); }
};

TEST(IdleLadder, spins_then_yields_then_naps) {
    const IdleLadder::Limits limits;
    IdleLadder ladder(limits);
    EXPECT_EQ(ladder.idle(1000), IdleLadder::Step::kSpin);
    EXPECT_EQ(ladder.idle(1000 + limits.spin - 1), IdleLadder::Step::kSpin);
    EXPECT_EQ(ladder.idle(1000 + limits.spin), IdleLadder::Step::kYield);
    EXPECT_EQ(ladder.idle(1000 + limits.nap_after), IdleLadder::Step::kNap);
    ladder.busy();
    EXPECT_EQ(ladder.idle(1000 + 2 * limits.nap_after), IdleLadder::Step::kSpin);
}

TEST(IdleLadder, spins_on_while_parts_of_the_awaited_come_and_naps_as_before) {
    const IdleLadder::Limits limits;
    IdleLadder ladder(limits);
    (void)ladder.idle(1000);
    const Nanos later = 1000 + limits.spin - 1;
    ladder.moved(later);
    EXPECT_EQ(ladder.idle(later + limits.spin - 1), IdleLadder::Step::kSpin);
    EXPECT_EQ(ladder.idle(later + limits.spin), IdleLadder::Step::kYield);
    ladder.moved(999 + limits.nap_after);
    EXPECT_EQ(ladder.idle(1000 + limits.nap_after), IdleLadder::Step::kNap);
}

TEST(IdleLadder, yields_on_a_shared_core_though_parts_of_the_awaited_come) {
    Poller poller;
    poller.yield(kSlow);
    poller.yield(kSlow);
    poller.ladder.moved(poller.now);
    EXPECT_EQ(poller.ladder.idle(poller.now), IdleLadder::Step::kYield);
}

TEST(IdleLadder, naps_double_up_to_the_longest) {
    const IdleLadder::Limits limits;
    IdleLadder ladder(limits);
    (void)ladder.idle(0);
    Nanos expected = limits.nap;
    for (int n = 0; n < 6; ++n) {
        EXPECT_EQ(ladder.next_nap(), expected);
        expected = std::min(2 * expected, limits.nap_max);
    }
    ladder.stirred();
    EXPECT_EQ(ladder.next_nap(), limits.nap);
}

TEST(IdleLadder, yields_first_after_a_nap_since_somebody_may_have_been_displaced) {
    IdleLadder ladder{IdleLadder::Limits{}};
    (void)ladder.idle(0);
    (void)ladder.next_nap();
    ladder.busy();
    EXPECT_EQ(ladder.idle(kSecond), IdleLadder::Step::kYield);
    ladder.busy();
    EXPECT_EQ(ladder.idle(2 * kSecond), IdleLadder::Step::kSpin);
}

TEST(IdleLadder, one_slow_yield_proves_nothing) {
    Poller poller;
    poller.yield(kSlow);
    EXPECT_FALSE(poller.shared());
}

TEST(IdleLadder, believes_two_slow_yields_in_a_row_and_does_not_spin_then) {
    Poller poller;
    poller.yield(kSlow);
    poller.yield(kSlow);
    EXPECT_TRUE(poller.shared());
    EXPECT_EQ(poller.ladder.idle(poller.now), IdleLadder::Step::kYield);
    poller.now += IdleLadder::Limits{}.shared_for;
    EXPECT_FALSE(poller.shared());
    poller.ladder.busy();
    EXPECT_EQ(poller.ladder.idle(poller.now), IdleLadder::Step::kSpin);
}

// Alone on a core, one yield in a few hundred is slow: an interrupt, or a helper thread that sleeps
// briefly.
TEST(IdleLadder, rare_slow_yields_never_add_up) {
    Poller poller;
    for (int n = 0; n < 10'000; ++n) {
        poller.yield(n % 300 == 0 ? kSlow : kQuick);
        ASSERT_FALSE(poller.shared()) << "after yield " << n;
    }
}

// The scheduler lets some yields return at once although other threads wait. One slow yield in
// three is enough.
TEST(IdleLadder, a_third_of_slow_yields_keeps_the_finding_alive) {
    Poller poller;
    for (int n = 0; n < 30; ++n)
        poller.yield(n % 3 == 0 ? kSlow : kQuick);
    EXPECT_TRUE(poller.shared());
    for (int n = 0; n < 100'000; ++n) {
        poller.yield(n % 3 == 0 ? kSlow : kQuick);
        ASSERT_TRUE(poller.shared()) << "after yield " << n;
    }
}

TEST(IdleLadder, forgets_a_shared_core_by_quick_yields) {
    Poller poller;
    for (int n = 0; n < 100; ++n)
        poller.yield(kSlow);
    for (int n = 0; n < 20; ++n)
        poller.yield(kQuick);
    poller.now += IdleLadder::Limits{}.shared_for;
    poller.yield(kSlow);
    EXPECT_FALSE(poller.shared());
}

}  // namespace
}  // namespace ulc
