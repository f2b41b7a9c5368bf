// SPDX-License-Identifier: BSD-3-Clause
// Compares the engine's clock with the system's.
#include "main/clock.h"

#include <gtest/gtest.h>

namespace ulc::daemon {
namespace {

/// Returns the time of a reading of the counter.
Nanos time_of(EngineClock& clock, Nanos reading) {
    return clock.correct([reading] { return reading; });
}

TEST(EngineClock, by_the_measured_frequency_keeps_pace_with_the_system) {
    EngineClock clock(measure_tsc_hz());
    const Nanos began = clock.now();
    const Nanos system_began = monotonic_now();
    while (monotonic_now() - system_began < 100 * kMillisecond) {
    }
    // Reads the clocks in the order in which they began, so that a pause between two readings
    // affects both intervals alike.
    const Nanos passed = clock.now() - began;
    const Nanos system_passed = monotonic_now() - system_began;
    EXPECT_NEAR(static_cast<double>(passed) / static_cast<double>(system_passed), 1.0, 0.01);
}

TEST(EngineClock, frequencies_measured_one_after_another_agree) {
    const auto first = static_cast<double>(measure_tsc_hz());
    if (first == 0) GTEST_SKIP() << "no time stamp counter here";
    for (int n = 0; n < 5; ++n)
        EXPECT_NEAR(static_cast<double>(measure_tsc_hz()) / first, 1.0, 0.002);
}

TEST(EngineClock, goes_on_where_the_counter_went_backwards) {
    EngineClock clock(0);
    EXPECT_EQ(time_of(clock, 5 * kSecond), 5 * kSecond);
    EXPECT_EQ(time_of(clock, 2 * kSecond), 5 * kSecond);
    EXPECT_EQ(time_of(clock, 2 * kSecond + 7), 5 * kSecond + 7);
    EXPECT_EQ(time_of(clock, kSecond), 5 * kSecond + 7) << "again";
    EXPECT_EQ(time_of(clock, 2 * kSecond), 6 * kSecond + 7);
}

TEST(EngineClock, ignores_the_small_differences_of_two_cores) {
    EngineClock clock(0);
    EXPECT_EQ(time_of(clock, 1000), 1000);
    EXPECT_EQ(time_of(clock, 900), 1000);
    EXPECT_EQ(time_of(clock, 1100), 1100) << "the counter was taken for one that went backwards";
}

TEST(EngineClock, keeps_its_pace_when_a_thread_loses_the_processor_behind_its_reading) {
    EngineClock clock(0);
    EXPECT_EQ(time_of(clock, kSecond), kSecond);
    static_cast<void>(clock.correct([&] {
        EXPECT_EQ(time_of(clock, 18 * kSecond), 18 * kSecond) << "another thread";
        return kSecond + 1;
    }));
    EXPECT_EQ(time_of(clock, 19 * kSecond), 19 * kSecond)
        << "the counter was taken for one that went backwards";
}

TEST(EngineClock, jumps_once_where_two_threads_see_the_counter_go_backwards) {
    EngineClock clock(0);
    EXPECT_EQ(time_of(clock, 5 * kSecond), 5 * kSecond);
    EXPECT_EQ(clock.correct([&] {
        EXPECT_EQ(time_of(clock, 2 * kSecond), 5 * kSecond) << "another thread";
        return 2 * kSecond;
    }),
              5 * kSecond);
    EXPECT_EQ(time_of(clock, 3 * kSecond), 6 * kSecond);
}

TEST(EngineClock, knows_suspensions_where_its_thread_loses_the_processor) {
    Nanos now = kSecond;
    unsigned readings = 0;
    const auto read = [&](clockid_t clock) {
        ++readings;
        // A second passes behind the first reading, then behind the fifth.
        now += readings == 2 || readings == 6 ? kSecond : 100;
        return clock == CLOCK_BOOTTIME ? now + 3 * kSecond : now;
    };
    EXPECT_NEAR(static_cast<double>(EngineClock::suspended(read)), 3e9, 1e3);
    EXPECT_EQ(readings, 9U) << "of three tries the third counts";
}

/// A clock without a counter, a wall clock, and the time for which the machine was suspended.
class Suspends : public testing::Test {
protected:
    Suspends() { clock.begin(suspended); }
    Nanos tick(Nanos before, Nanos wall, Nanos after) {
        const Nanos first = time_of(clock, before);  // the order of arguments is the compiler's
        const Nanos last = time_of(clock, after);
        return clock.compare(first, wall, last, [this] {
            ++questions;
            return suspended;
        });
    }
    EngineClock clock{0};
    Nanos suspended = 3 * kSecond;  ///< before the clock began
    unsigned questions = 0;
};

TEST_F(Suspends, it_jumps_ahead_by_the_time_that_it_missed) {
    EXPECT_EQ(tick(kSecond, 100 * kSecond, kSecond + 50), kSecond + 50) << "nothing to compare";
    EXPECT_EQ(
        tick(kSecond + kMillisecond, 100 * kSecond + kMillisecond, kSecond + kMillisecond + 50),
        kSecond + kMillisecond + 50);
    EXPECT_EQ(questions, 0U);
    suspended += 5 * kSecond;
    const Nanos after = tick(kSecond + 2 * kMillisecond, 105 * kSecond + 2 * kMillisecond,
                             kSecond + 2 * kMillisecond + 50);
    EXPECT_NEAR(static_cast<double>(after), 6.002e9, 1e3);
    EXPECT_NEAR(static_cast<double>(time_of(clock, kSecond + 3 * kMillisecond)), 6.003e9, 1e3);
    // The counter began again at 0 meanwhile.
    suspended += 3 * kSecond;
    const Nanos reset = tick(0, 108 * kSecond + 3 * kMillisecond, 50);
    EXPECT_NEAR(static_cast<double>(reset), 9.003e9, 1e6);
}

TEST_F(Suspends, it_goes_on_where_the_counter_went_on) {
    EXPECT_EQ(tick(kSecond, 100 * kSecond, kSecond), kSecond);
    suspended += 5 * kSecond;
    EXPECT_EQ(tick(6 * kSecond, 105 * kSecond, 6 * kSecond), 6 * kSecond);
}

TEST_F(Suspends, it_goes_on_where_the_wall_clock_was_set) {
    EXPECT_EQ(tick(kSecond, 100 * kSecond, kSecond), kSecond);
    EXPECT_EQ(tick(2 * kSecond, 3701 * kSecond, 2 * kSecond), 2 * kSecond);
    EXPECT_EQ(questions, 1U);
    EXPECT_EQ(tick(3 * kSecond, 102 * kSecond, 3 * kSecond), 3 * kSecond) << "and back";
    EXPECT_EQ(tick(4 * kSecond, 103 * kSecond, 4 * kSecond), 4 * kSecond);
    EXPECT_EQ(questions, 1U);
}

TEST_F(Suspends, it_asks_nothing_when_its_thread_loses_the_processor) {
    EXPECT_EQ(tick(1000, 5 * kSecond, 1100), 1100);
    // Before the wall clock is read, and behind it.
    EXPECT_EQ(tick(2000, 7 * kSecond, 2 * kSecond), 2 * kSecond);
    EXPECT_EQ(tick(2 * kSecond, 7 * kSecond, 4 * kSecond), 4 * kSecond);
    EXPECT_EQ(tick(4 * kSecond + 10, 9 * kSecond, 4 * kSecond + 20), 4 * kSecond + 20);
    EXPECT_EQ(questions, 0U);
}

}  // namespace
}  // namespace ulc::daemon
