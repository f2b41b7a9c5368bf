// SPDX-License-Identifier: BSD-3-Clause
// Tests of the congestion controllers and the pacer, each alone.
#include "urtp/sender/congestion.h"

#include <gtest/gtest.h>

#include "urtp/sender/pacer.h"

namespace ulc::urtp {
namespace {

constexpr CongestionLimits kLimits{.most = 256, .first = 10};
constexpr Nanos kShort = 40 * kMicrosecond;
constexpr Nanos kQueue = 400 * kMicrosecond;

// S-50
TEST(LossBased, doubles_until_the_first_loss_then_adds_one_a_round_trip) {
    LossBased control(kLimits);
    EXPECT_EQ(control.window(), 10);
    control.on_acked(10);
    EXPECT_EQ(control.window(), 20);
    control.on_lost(true);
    EXPECT_EQ(control.window(), 10);
    for (int i = 0; i < 10; ++i)
        control.on_acked(1);
    EXPECT_NEAR(control.window(), 11, 0.1);
}

TEST(LossBased, halves_once_a_round_trip_and_stays_within_its_limits) {
    LossBased control(kLimits);
    control.on_lost(true);
    control.on_lost(false);
    EXPECT_EQ(control.window(), 5);
    for (int i = 0; i < 50; ++i)
        control.on_lost(true);
    EXPECT_EQ(control.window(), kLeastWindow);
    for (int i = 0; i < 100'000; ++i)
        control.on_acked(8);
    EXPECT_EQ(control.window(), kLimits.most);
}

// S-51
TEST(AdaptiveBackoff, takes_a_lone_loss_without_a_queue_for_a_bit_error) {
    AdaptiveBackoff control(kLimits);
    control.on_acked(90, kShort);
    const float before = control.window();
    control.on_lost(1, true);
    EXPECT_EQ(control.window(), before);
    control.on_acked(0, kShort + 19 * kMicrosecond);  // as much as the own ring may hold
    control.on_lost(1, true);
    EXPECT_EQ(control.window(), before);
}

// S-54
TEST(AdaptiveBackoff, grows_by_half_a_packet_a_round_trip_after_a_cut) {
    AdaptiveBackoff window({.most = 256, .first = 32});
    (void)window.on_acked(1, 100 * kMicrosecond);
    (void)window.on_acked(1, kMillisecond);
    window.on_lost(1, true);
    const float cut = window.window();
    EXPECT_FLOAT_EQ(cut, 17);
    (void)window.on_acked(cut, kMillisecond);
    EXPECT_FLOAT_EQ(window.window(), cut + 0.5F);
}

// S-51, S-52
TEST(AdaptiveBackoff, halves_when_the_path_is_full_as_well) {
    AdaptiveBackoff control(kLimits);
    control.on_acked(90, kShort);
    control.on_acked(0, kQueue);
    const float before = control.window();
    control.on_lost(1, false);
    EXPECT_EQ(control.window(), before) << "a round trip has not passed";
    control.on_lost(1, true);
    EXPECT_EQ(control.window(), before / 2);
}

// S-52
TEST(AdaptiveBackoff, takes_a_few_losses_for_late_packets_where_packets_overtake_each_other) {
    AdaptiveBackoff control(kLimits);
    control.on_acked(90, kShort);
    control.on_acked(0, kQueue);
    const float before = control.window();
    for (int n = 0; n < 4; ++n)
        control.on_lost(1, true, AdaptiveBackoff::kCut, true);
    EXPECT_EQ(control.window(), before);
    control.on_lost(1, true, AdaptiveBackoff::kCut, true);
    EXPECT_EQ(control.window(), before / 2) << "five of 95 are more than one in twenty";
}

// S-53
TEST(AdaptiveBackoff, halves_when_too_many_are_lost_for_bit_errors) {
    AdaptiveBackoff control(kLimits);
    control.on_acked(10, kShort);
    const float before = control.window();
    for (int i = 0; i < 5; ++i)
        control.on_lost(1, false);
    control.on_lost(1, true);
    EXPECT_EQ(control.window(), before / 2);
}

// S-53
TEST(AdaptiveBackoff, adds_up_losses_that_come_one_by_one) {
    AdaptiveBackoff control(kLimits);
    control.on_acked(10, kShort);
    const float before = control.window();
    for (int i = 0; i < 3; ++i) {
        control.on_acked(3, kShort);
        control.on_lost(1, true);
    }
    EXPECT_GE(control.window(), before) << "few";
    control.on_lost(1, true);
    EXPECT_LT(control.window(), before)
        << "one in five is no bit error, though each came in another round trip";
}

// S-53
TEST(AdaptiveBackoff, learns_from_many_losses_that_its_shortest_round_trip_had_a_queue) {
    AdaptiveBackoff control(kLimits);
    control.on_acked(10, kQueue);
    for (int i = 0; i < 4; ++i)
        control.on_lost(1, true);
    const float before = control.window();
    EXPECT_LT(before, 20) << "many";
    control.on_acked(1, kQueue);
    control.on_lost(1, true);
    EXPECT_LT(control.window(), before) << "the next one is congestion at once";
}

// S-51
TEST(AdaptiveBackoff, keeps_its_window_under_one_bit_error_in_fifty) {
    AdaptiveBackoff control(kLimits);
    for (int i = 0; i < 10'000; ++i) {
        control.on_acked(50, kShort);
        control.on_lost(1, true);
    }
    EXPECT_EQ(control.window(), kLimits.most);
}

TEST(DelayBased, holds_the_round_trip_at_three_times_the_shortest) {
    DelayBased control(kLimits);
    control.on_acked(10, kShort, true);
    EXPECT_EQ(control.window(), 20);
    control.on_acked(1, kQueue, true);
    EXPECT_LT(control.window(), 20);
    EXPECT_GE(control.window(), 10);
    const float cut = control.window();
    control.on_acked(1, kQueue, false);
    EXPECT_EQ(control.window(), cut) << "once a round trip";
    for (int i = 0; i < 200; ++i)
        control.on_acked(1, kQueue, true);
    EXPECT_EQ(control.window(), kLeastWindow);
    control.on_lost(true);
    EXPECT_EQ(control.window(), kLeastWindow);
}

// Seed 4131 of `ulc-sim check`: after all packets in flight had been retransmitted, the last sample
// stayed too long. Each acknowledgement reduced the window by it, and one packet went out every ten
// round trips.
TEST(DelayBased, acknowledgements_without_a_sample_cut_nothing) {
    DelayBased control(kLimits);
    control.on_acked(1, kShort, true);
    control.on_acked(1, kQueue, true);  // its packet was in a queue
    const float before = control.window();
    for (int i = 0; i < 10; ++i)
        control.on_acked(1, -1, true);
    EXPECT_NEAR(control.window(), before + 10 / before, 0.6);
    control.on_acked(1, kQueue, true);
    EXPECT_LT(control.window(), before + 10 / before);
}

// S-55
TEST(Pacer, spaces_packets_and_saves_up_only_a_short_burst) {
    Pacer pacer;
    Nanos now = kSecond;
    pacer.on_packet(now);
    EXPECT_LE(pacer.next(), now) << "nothing is paced";
    pacer.set_gap(1000, now);
    int burst = 0;
    for (; pacer.next() <= now; ++burst)
        pacer.on_packet(now);
    EXPECT_EQ(burst, Pacer::kBurst);
    EXPECT_EQ(pacer.next(), now + 1000);
    now += 1000;
    pacer.on_packet(now);
    EXPECT_EQ(pacer.next(), now + 1000);
    now += kSecond;
    for (burst = 0; pacer.next() <= now; ++burst)
        pacer.on_packet(now);
    EXPECT_EQ(burst, Pacer::kBurst);
}

TEST(Pacer, a_shorter_gap_shortens_the_wait_at_once) {
    Pacer pacer;
    pacer.set_gap(kMillisecond, kSecond);
    while (pacer.next() <= kSecond)
        pacer.on_packet(kSecond);
    pacer.set_gap(1000, kSecond);
    EXPECT_EQ(pacer.next(), kSecond + 1000);
    pacer.set_gap(0, kSecond);
    EXPECT_LE(pacer.next(), kSecond);
}

}  // namespace
}  // namespace ulc::urtp
