// SPDX-License-Identifier: BSD-3-Clause
// Compares the engine's clock with the system's.
#include "main/clock.h"

#include <gtest/gtest.h>

namespace ulc::daemon {
namespace {

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
    EXPECT_EQ(clock.correct(5 * kSecond), 5 * kSecond);
    EXPECT_EQ(clock.correct(2 * kSecond), 5 * kSecond);
    EXPECT_EQ(clock.correct(2 * kSecond + 7), 5 * kSecond + 7);
    EXPECT_EQ(clock.correct(kSecond), 5 * kSecond + 7) << "again";
    EXPECT_EQ(clock.correct(2 * kSecond), 6 * kSecond + 7);
}

TEST(EngineClock, ignores_the_small_differences_of_two_cores) {
    EngineClock clock(0);
    EXPECT_EQ(clock.correct(1000), 1000);
    EXPECT_EQ(clock.correct(900), 1000);
    EXPECT_EQ(clock.correct(1100), 1100) << "the counter was taken for one that went backwards";
}

TEST(EngineClock, jumps_ahead_by_the_time_for_which_the_machine_was_suspended) {
    EngineClock clock(0);
    const auto tick = [&](Nanos reading, Nanos since_boot) {
        return clock.compare(clock.correct(reading), since_boot, clock.correct(reading + 50));
    };
    EXPECT_EQ(tick(kSecond, 100 * kSecond), kSecond + 50) << "nothing to compare with yet";
    EXPECT_EQ(tick(kSecond + kMillisecond, 100 * kSecond + kMillisecond),
              kSecond + kMillisecond + 50);
    // It stood still for 5 s.
    const Nanos after = tick(kSecond + 2 * kMillisecond, 105 * kSecond + 2 * kMillisecond);
    EXPECT_NEAR(static_cast<double>(after), 6.002e9, 1e3);
    EXPECT_NEAR(static_cast<double>(clock.correct(kSecond + 3 * kMillisecond)), 6.003e9, 1e3);
    // The counter began again at 0 meanwhile.
    const Nanos reset = tick(0, 108 * kSecond + 3 * kMillisecond);
    EXPECT_NEAR(static_cast<double>(reset), 9.003e9, 1e6);
}

TEST(EngineClock, takes_no_loss_of_the_processor_for_a_suspended_machine) {
    EngineClock clock(0);
    EXPECT_EQ(clock.compare(1000, 5 * kSecond, 1100), 1100);
    // Before CLOCK_BOOTTIME is read, and behind it.
    EXPECT_EQ(clock.compare(2000, 7 * kSecond, 2 * kSecond), 2 * kSecond);
    EXPECT_EQ(clock.compare(2 * kSecond, 7 * kSecond, 4 * kSecond), 4 * kSecond);
    EXPECT_EQ(clock.compare(4 * kSecond + 10, 9 * kSecond, 4 * kSecond + 20), 4 * kSecond + 20);
    // Two clocks drift, here in a long nap.
    EXPECT_EQ(clock.compare(104 * kSecond, 109 * kSecond + 500 * kMillisecond, 104 * kSecond),
              104 * kSecond);
}

}  // namespace
}  // namespace ulc::daemon
