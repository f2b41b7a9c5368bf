// SPDX-License-Identifier: BSD-3-Clause
// Tests the faults of frames at a receiver: random shares lie within five standard deviations of
// the configured ones, scripted faults hit the exact frame.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/sim/media/faults.h"
#include "tests/sim/media/switch_medium.h"
#include "tests/unit/sim/media_host.h"

namespace ulc::test {
namespace {

using sim::FaultRates;
using sim::Faults;

constexpr int kFrames = 200'000;

/// Returns five standard deviations of a share of kFrames.
double bound(double p) { return 5 * std::sqrt(p * (1 - p) / kFrames); }

/// Returns which of kFrames arrived at `to`.
std::vector<bool> arrived(Faults& faults, std::uint16_t to = 1) {
    const auto frame = media_frame(0, to, 60);
    std::vector<bool> pattern;
    pattern.reserve(kFrames);
    for (int n = 0; n < kFrames; ++n)
        pattern.push_back(!faults.judge(0, to, frame).empty());
    return pattern;
}

double lost_share(const std::vector<bool>& pattern) {
    return static_cast<double>(std::count(pattern.begin(), pattern.end(), false)) /
           static_cast<double>(pattern.size());
}

TEST(sim_faults, independent_loss_has_its_share_and_no_memory) {
    for (const double p : {1e-3, 1e-2, 0.3}) {
        Faults faults(2, 7);
        FaultRates rates;
        rates.loss = p;
        faults.set(rates);
        const auto pattern = arrived(faults);
        EXPECT_NEAR(lost_share(pattern), p, bound(p));
        int pairs = 0;
        for (std::size_t n = 1; n < pattern.size(); ++n)
            pairs += !pattern[n] && !pattern[n - 1] ? 1 : 0;
        EXPECT_NEAR(pairs / static_cast<double>(kFrames), p * p, bound(p * p));
        EXPECT_EQ(faults.counts(1).lost,
                  static_cast<std::uint64_t>(std::count(pattern.begin(), pattern.end(), false)));
    }
}

TEST(sim_faults, bursts_have_their_share_and_their_mean_length) {
    Faults faults(2, 7);
    FaultRates rates;
    rates.burst = {.enter = 0.002, .leave = 0.1, .loss = 1};
    faults.set(rates);
    const auto pattern = arrived(faults);
    const double share = 0.002 / 0.102;
    // The variance comes from the number of bursts, not of frames: about 390 bursts, each of 10 ±
    // 10 frames.
    const double bursts_expected = kFrames * share * 0.1;
    EXPECT_NEAR(lost_share(pattern), share, 5 * share * std::sqrt(2 / bursts_expected));
    int bursts = 0;
    for (std::size_t n = 1; n < pattern.size(); ++n)
        bursts += !pattern[n] && pattern[n - 1] ? 1 : 0;
    const double length = lost_share(pattern) * kFrames / bursts;
    EXPECT_NEAR(length, 10, 5 * 10 / std::sqrt(bursts_expected));
}

TEST(sim_faults, a_bad_state_that_loses_half_loses_half) {
    Faults faults(2, 3);
    FaultRates rates;
    rates.burst = {.enter = 1, .leave = 0, .loss = 0.5};
    faults.set(rates);
    EXPECT_NEAR(lost_share(arrived(faults)), 0.5, bound(0.5));
}

TEST(sim_faults, duplicates_and_late_ones_have_their_shares_and_limits) {
    Faults faults(2, 5);
    FaultRates rates;
    rates.duplicate = 0.01;
    rates.reorder = 0.05;
    rates.reorder_delay = 1000;
    faults.set(rates);
    const auto frame = media_frame(0, 1, 60);
    int copies = 0;
    int late = 0;
    Nanos latest = 0;
    for (int n = 0; n < kFrames; ++n) {
        for (const auto& copy : faults.judge(0, 1, frame)) {
            ++copies;
            late += copy.late > 0 ? 1 : 0;
            latest = std::max(latest, copy.late);
            EXPECT_EQ(copy.frame, frame) << "shared, not copied";
        }
    }
    EXPECT_NEAR(copies / double{kFrames}, 1.01, bound(0.01));
    EXPECT_NEAR(late / double{kFrames}, 0.05 * 1.01, 2 * bound(0.05));
    EXPECT_LE(latest, 1000);
    EXPECT_GT(latest, 900);
    EXPECT_EQ(faults.counts(1).late, static_cast<std::uint64_t>(late));
    EXPECT_EQ(faults.counts(1).duplicated, static_cast<std::uint64_t>(copies - kFrames));
}

TEST(sim_faults, corruption_changes_one_to_four_octets_of_a_copy_and_not_the_destination) {
    Faults faults(2, 5);
    FaultRates rates;
    rates.corrupt = 1;
    faults.set(rates);
    const auto frame = media_frame(0, 1, 64);
    const std::vector<std::byte> original(frame->begin(), frame->end());
    std::vector<int> differing(6, 0);
    for (int n = 0; n < 5000; ++n) {
        const auto copies = faults.judge(0, 1, frame);
        ASSERT_EQ(copies.size(), 1U);
        const auto& octets = *copies[0].frame;
        ASSERT_EQ(octets.size(), original.size());
        std::size_t count = 0;
        for (std::size_t at = 0; at < octets.size(); ++at) {
            if (octets[at] == original[at]) continue;
            EXPECT_GE(at, 6U);
            ++count;
        }
        ASSERT_GE(count, 1U);
        ASSERT_LE(count, 4U);
        ++differing[count];
    }
    for (std::size_t count = 1; count <= 4; ++count)
        EXPECT_GT(differing[count], 800) << count;
    EXPECT_EQ(*frame, original) << "others share it";
}

TEST(sim_faults, what_is_done_to_one_receiver_changes_nothing_for_another) {
    FaultRates rates;
    rates.loss = 0.1;
    Faults alone(3, 5);
    alone.set_receiver(2, rates);
    Faults beside(3, 5);
    beside.set(rates);
    (void)arrived(beside, 1);
    EXPECT_EQ(arrived(alone, 2), arrived(beside, 2));
    EXPECT_EQ(lost_share(arrived(alone, 1)), 0);
}

TEST(sim_faults, a_script_loses_the_next_n_of_that_pair_only) {
    Faults faults(3, 1);
    faults.lose_next(0, 1, 3);
    faults.lose_next(0, 1, 0);
    const auto frame = media_frame(0, kToAll, 60);
    for (int n = 0; n < 5; ++n) {
        EXPECT_EQ(faults.judge(0, 1, frame).empty(), n < 3);
        EXPECT_FALSE(faults.judge(2, 1, frame).empty());
        EXPECT_FALSE(faults.judge(0, 2, frame).empty());
    }
    faults.lose_next(0, 1, 1);
    faults.heal();
    EXPECT_FALSE(faults.judge(0, 1, frame).empty());
}

TEST(sim_faults, islands_cuts_and_pulled_cables_separate_until_healed) {
    Faults faults(4, 1);
    const auto frame = media_frame(0, kToAll, 60);
    const auto hears = [&](std::uint16_t from, std::uint16_t to) {
        return !faults.judge(from, to, frame).empty();
    };
    faults.partition(std::vector<std::uint16_t>{0, 0, 1, 1});
    EXPECT_TRUE(hears(0, 1) && hears(3, 2));
    EXPECT_FALSE(hears(0, 2) || hears(2, 0) || hears(3, 1));
    EXPECT_EQ(faults.counts(2).cut, 1U);
    faults.heal();
    EXPECT_TRUE(hears(0, 2));
    faults.cut(0, 1, true);
    EXPECT_FALSE(hears(0, 1));
    EXPECT_TRUE(hears(1, 0)) << "one direction";
    faults.cut(0, 1, false);
    EXPECT_TRUE(hears(0, 1));
    faults.unplug(3);
    EXPECT_FALSE(hears(0, 3));
    faults.heal(true);
    EXPECT_FALSE(hears(0, 3));
    faults.heal();
    EXPECT_TRUE(hears(0, 3));
}

TEST(sim_faults, on_a_medium_they_may_change_while_frames_are_under_way) {
    sim::SwitchConfig config;
    config.macs = media_macs(3);
    sim::SwitchMedium medium(config);
    MediaLog log;
    const auto send = [&](Nanos now) {
        for (std::uint16_t from = 0; from < 3; ++from)
            medium.transmit(from, media_frame(from, kToAll, 60), now);
    };
    send(0);
    medium.faults().partition(std::vector<std::uint16_t>{0, 0, 1});
    log.drain(medium);
    EXPECT_EQ(log.arrivals.size(), 2U) << "0 and 1 hear each other";
    medium.faults().heal();
    medium.faults().unplug(1);
    send(kMillisecond);
    log.drain(medium);
    EXPECT_EQ(log.arrivals.size(), 2U + 2U) << "0 and 2 do, 1 neither speaks nor hears";
    FaultRates rates;
    rates.reorder = 1;
    medium.faults().set(rates);
    send(2 * kMillisecond);
    medium.advance(2 * kMillisecond + 10 * kMicrosecond, log);
    medium.faults().unplug(0);
    medium.faults().unplug(2);
    const std::size_t so_far = log.arrivals.size();
    log.drain(medium);
    EXPECT_EQ(log.arrivals.size(), so_far) << "a late one finds the cable out";
    medium.faults().heal();
    send(3 * kMillisecond);
    log.drain(medium);
    EXPECT_EQ(log.arrivals.size(), so_far + 6U);
}

}  // namespace
}  // namespace ulc::test
