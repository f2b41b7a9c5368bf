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

}  // namespace
}  // namespace ulc::daemon
