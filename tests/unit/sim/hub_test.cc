// SPDX-License-Identifier: BSD-3-Clause
// Compares CSMA/CD with the standard's own figures: exact times at 10 and 100 Mb/s, the collisions
// until two stations separate, discarded frames, and the share of the medium that saturated
// stations get.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/sim/media/hub_medium.h"
#include "tests/unit/sim/media_host.h"

namespace ulc::test {
namespace {

using sim::HubConfig;
using sim::HubCounts;
using sim::HubMedium;

constexpr Nanos kBit = 10;  // at 100 Mb/s
constexpr double kSlot = 512 * kBit;
constexpr Nanos kGap = 96 * kBit;
constexpr Nanos kDelay = 25 + 460 + 25;
constexpr Nanos kShort = (8 + 60 + 4) * 8 * kBit;

HubConfig hub_of(std::uint16_t stations, std::uint64_t seed = 1) {
    HubConfig config;
    config.macs = media_macs(stations);
    config.seed = seed;
    return config;
}

TEST(sim_hub, a_frame_takes_its_wire_time_and_the_next_waits_for_the_gap) {
    HubMedium hub(hub_of(3));
    MediaLog log;
    hub.transmit(0, media_frame(0, 1, 60, 7), 1000);
    hub.transmit(0, media_frame(0, 1, 18, 8), 1000);    // padded to 60
    hub.transmit(0, media_frame(0, 1, 1514, 9), 1000);  // the longest frame
    log.drain(hub);
    const Nanos first = 1000 + kShort;
    const Nanos second = first + kGap + kShort;
    const Nanos third = second + kGap + (8 + 1514 + 4) * 8 * kBit;
    EXPECT_EQ(log.sent,
              (std::vector<MediaLog::Sent>{{0, true, first}, {0, true, second}, {0, true, third}}));
    EXPECT_EQ(log.arrivals, (std::vector<MediaLog::Arrival>{{1, 0, 7, first + kDelay},
                                                            {1, 0, 8, second + kDelay},
                                                            {1, 0, 9, third + kDelay}}));
    EXPECT_EQ(hub.total().collisions, 0U);
    EXPECT_EQ(hub.total().deferred, 0U);
}

TEST(sim_hub, ten_megabits_take_ten_times_as_long) {
    HubConfig config = hub_of(2);
    config.bits_per_second = 10'000'000;
    HubMedium hub(config);
    MediaLog log;
    hub.transmit(0, media_frame(0, 1, 1514), 0);
    log.drain(hub);
    EXPECT_EQ(log.sent.at(0).at, (8 + 1514 + 4) * 8 * 100);
}

TEST(sim_hub, a_multicast_reaches_all_others_each_after_its_own_cable) {
    HubConfig config = hub_of(4);
    config.port_cable = {10, 20, 30, 40};
    HubMedium hub(config);
    MediaLog log;
    hub.transmit(2, media_frame(2, kToAll, 60), 0);
    log.drain(hub);
    std::map<std::uint16_t, Nanos> at;
    for (const auto& arrival : log.arrivals)
        at[arrival.port] = arrival.at - kShort;
    EXPECT_EQ(at, (std::map<std::uint16_t, Nanos>{{0, 500}, {1, 510}, {3, 530}}));
}

TEST(sim_hub, a_station_that_hears_another_waits_for_it_and_the_gap) {
    HubMedium hub(hub_of(2));
    MediaLog log;
    hub.transmit(0, media_frame(0, 1, 60), 0);
    hub.advance(2000, log);
    hub.transmit(1, media_frame(1, 0, 60), 2000);
    log.drain(hub);
    EXPECT_EQ(log.sent.at(1).at, kShort + kDelay + kGap + kShort);
    EXPECT_EQ(hub.counts(1).deferred, 1U);
    EXPECT_EQ(hub.total().collisions, 0U);
}

/// Station 0 sends again after its gap, station 1 after the gap behind the frame that it heard: 0's
/// new carrier reaches 1 when 1's gap ends, to the nanosecond. In the second part of the gap a
/// station ignores the carrier (4.2.8), so they collide at any distance.
TEST(sim_hub, who_waited_collides_with_who_sends_again_at_any_distance) {
    for (const Nanos cable : {Nanos{0}, Nanos{25}, Nanos{1000}}) {
        HubConfig config = hub_of(2);
        config.cable = cable;
        HubMedium hub(config);
        MediaLog log;
        hub.transmit(0, media_frame(0, 1, 60), 0);
        hub.transmit(0, media_frame(0, 1, 60), 0);
        hub.advance(4000, log);
        hub.transmit(1, media_frame(1, 0, 60), 4000);
        log.drain(hub);
        EXPECT_GE(hub.counts(0).collisions, 1U) << cable;
        EXPECT_EQ(hub.counts(0).collisions, hub.counts(1).collisions) << cable;
        EXPECT_EQ(hub.total().sent, 3U);
    }
}

TEST(sim_hub, colliding_stations_finish_the_preamble_and_jam) {
    constexpr Nanos kJamEnd = (64 + 32) * kBit;
    int won_by_0 = 0;
    int won_by_1 = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        HubMedium hub(hub_of(3, seed));
        MediaLog log;
        hub.transmit(0, media_frame(0, 2, 60, 1), 0);
        hub.transmit(1, media_frame(1, 2, 60, 2), 0);
        log.drain(hub);
        ASSERT_EQ(log.arrivals.size(), 2U);
        if (hub.counts(0).collisions > 1) continue;
        // One station drew 0: it waits for the end of the other's jam and the gap. The other, at
        // one slot, found it sending.
        EXPECT_EQ(log.sent[0].at, kJamEnd + kDelay + kGap + kShort);
        EXPECT_EQ(log.sent[1].at, log.sent[0].at + kDelay + kGap + kShort);
        ++(log.sent[0].port == 0 ? won_by_0 : won_by_1);
    }
    EXPECT_GT(won_by_0, 3);
    EXPECT_GT(won_by_1, 3);
}

/// Two stations have one frame each. The n-th retry collides with probability 2^-n, so that
/// Σ 2^(−n(n+1)/2) = 1.6416… attempts collide until the stations have separated.
TEST(sim_hub, two_stations_part_after_1_64_collisions_on_average) {
    constexpr int kTrials = 20'000;
    double expected = 0;
    for (int n = 0; n < 10; ++n)
        expected += std::exp2(-n * (n + 1) / 2.0);
    HubMedium hub(hub_of(2, 3));
    MediaLog log;
    Nanos now = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
        now += 100 * kMillisecond;
        hub.advance(now, log);
        hub.transmit(0, media_frame(0, 1, 60), now);
        hub.transmit(1, media_frame(1, 0, 60), now);
        log.drain(hub);
    }
    EXPECT_EQ(hub.total().sent, 2U * kTrials);
    const double mean = static_cast<double>(hub.counts(0).collisions) / kTrials;
    EXPECT_NEAR(mean, expected, 0.03);
    EXPECT_EQ(hub.counts(0).collisions, hub.counts(1).collisions);
}

TEST(sim_hub, back_off_is_uniform_over_two_to_the_n_slots_up_to_1024) {
    for (const unsigned collisions : {1U, 3U, 15U}) {
        double sum = 0;
        constexpr int kTrials = 2000;
        Nanos longest = 0;
        HubMedium hub(hub_of(2, collisions));
        MediaLog log;
        Nanos now = 0;
        for (int trial = 0; trial < kTrials; ++trial) {
            now += kSecond;
            hub.advance(now, log);
            hub.force_collisions(0, collisions);
            hub.transmit(0, media_frame(0, 1, 60), now);
            log.drain(hub);
            const Nanos waited = log.sent.back().at - kShort - now;
            sum += static_cast<double>(waited);
            longest = std::max(longest, waited);
        }
        double slots = 0;
        double slots_max = 0;
        for (unsigned n = 1; n <= collisions; ++n) {
            const double range = std::exp2(std::min(n, 10U));
            slots += (range - 1) / 2;
            slots_max += range - 1;
        }
        // Each collision costs 96 bits, and an immediate retry the gap.
        const double mean_slots = sum / kTrials / kSlot;
        EXPECT_GT(mean_slots, slots * 0.97);
        EXPECT_LT(mean_slots, slots * 1.03 + 0.4 * collisions);
        EXPECT_LE(static_cast<double>(longest), (slots_max + collisions) * kSlot);
        EXPECT_EQ(hub.counts(0).after_collisions[collisions], std::uint64_t{kTrials});
    }
}

TEST(sim_hub, after_sixteen_collisions_the_frame_is_given_up_and_the_next_goes) {
    HubMedium hub(hub_of(2));
    MediaLog log;
    hub.force_collisions(0, 16);
    hub.transmit(0, media_frame(0, 1, 60, 1), 0);
    hub.transmit(0, media_frame(0, 1, 60, 2), 0);
    log.drain(hub);
    ASSERT_EQ(log.sent.size(), 2U);
    EXPECT_FALSE(log.sent[0].sent);
    EXPECT_TRUE(log.sent[1].sent);
    ASSERT_EQ(log.arrivals.size(), 1U);
    EXPECT_EQ(log.arrivals[0].number, 2U);
    EXPECT_EQ(hub.counts(0).given_up, 1U);
    EXPECT_EQ(hub.counts(0).after_collisions[0], 1U);
}

/// Returns the efficiency by Metcalfe and Boggs 1976, §6. With Q stations always ready, a
/// contention slot is won with A = (1 − 1/Q)^(Q−1), W = (1 − A)/A slots are lost before each frame,
/// and P/C of useful time is followed by W slots of the worst length. A short cable loses less, so
/// the medium must lie between that and no loss at all.
double metcalfe_boggs(unsigned stations, double frame_bits) {
    const double won = std::pow(1 - 1.0 / stations, stations - 1.0);
    return frame_bits / (frame_bits + 96 + (1 - won) / won * 512);
}

TEST(sim_hub, saturated_stations_share_between_the_analytic_floor_and_the_wire) {
    for (const std::uint16_t stations : {2, 5, 16}) {
        double smaller = 0;
        for (const std::size_t octets : {60U, 256U, 1514U}) {
            HubMedium hub(hub_of(stations, 11));
            MediaLoad load(hub, stations, octets);
            hub.advance(100 * kMillisecond, load);
            const double bits = static_cast<double>(8 + octets + 4) * 8;
            const double share = hub.utilisation();
            EXPECT_GT(share, metcalfe_boggs(stations, bits)) << stations << " x " << octets;
            EXPECT_LT(share, bits / (bits + 96)) << stations << " x " << octets;
            EXPECT_GT(share, smaller) << "larger frames, more use";
            smaller = share;
        }
        EXPECT_GT(smaller, 0.9) << "full frames use most of it (Shoch and Hupp 1980)";
    }
}

TEST(sim_hub, the_winner_of_a_collision_tends_to_win_again) {
    HubMedium hub(hub_of(2, 5));
    MediaLoad load(hub, 2, 1514);
    hub.advance(kSecond, load);
    std::size_t again = 0;
    for (std::size_t n = 1; n < load.sent.size(); ++n)
        again += load.sent[n].port == load.sent[n - 1].port ? 1 : 0;
    // Once the loser has collided twice, the winner of {0,1} against {0…3} wins 5 of 6 contests
    // that are decided, later more.
    EXPECT_GT(static_cast<double>(again) / static_cast<double>(load.sent.size()), 0.75);
    EXPECT_GT(hub.counts(0).sent, 500U) << "and yet each has its turns";
    EXPECT_GT(hub.counts(1).sent, 500U);
}

TEST(sim_hub, every_frame_is_sent_or_given_up_and_those_of_a_pair_stay_in_order) {
    HubMedium hub(hub_of(20, 8));
    MediaLoad load(hub, 20, 60);
    hub.advance(200 * kMillisecond, load);
    const HubCounts total = hub.total();
    EXPECT_GT(total.collisions, 1000U);
    EXPECT_EQ(total.sent + total.given_up, load.sent.size());
    std::map<std::uint16_t, std::int64_t> last;
    for (const auto& arrival : load.arrivals) {
        const std::int64_t before = last.contains(arrival.from) ? last[arrival.from] : -1;
        EXPECT_GT(std::int64_t{arrival.number}, before);
        last[arrival.from] = arrival.number;
        EXPECT_EQ(arrival.port, (arrival.from + 1) % 20);
    }
    EXPECT_EQ(last.size(), 20U);
    EXPECT_NEAR(static_cast<double>(load.arrivals.size()), static_cast<double>(total.sent), 1);
}

TEST(sim_hub, an_unplugged_station_disturbs_nobody_and_hears_nothing) {
    HubMedium hub(hub_of(3));
    MediaLog log;
    hub.faults().unplug(2);
    for (std::uint32_t n = 0; n < 50; ++n) {
        hub.transmit(2, media_frame(2, kToAll, 1514, n), 0);
        hub.transmit(0, media_frame(0, kToAll, 60, n), 0);
    }
    log.drain(hub);
    EXPECT_EQ(hub.total().collisions, 0U);
    EXPECT_EQ(log.sent.size(), 100U);
    ASSERT_EQ(log.arrivals.size(), 50U);
    for (const auto& arrival : log.arrivals)
        EXPECT_EQ(arrival.port, 1);
}

TEST(sim_hub, the_same_seed_gives_the_same_run_and_another_does_not) {
    const auto run = [](std::uint64_t seed) {
        HubMedium hub(hub_of(6, seed));
        sim::FaultRates rates;
        rates.loss = 0.05;
        rates.duplicate = 0.05;
        rates.reorder = 0.1;
        hub.faults().set(rates);
        MediaLoad load(hub, 6, 100);
        hub.advance(20 * kMillisecond, load);
        return std::pair(load.sent, load.arrivals);
    };
    EXPECT_EQ(run(1), run(1));
    EXPECT_NE(run(1), run(2));
}

TEST(sim_hub, a_configuration_that_cannot_be_says_why) {
    EXPECT_EQ(sim::problem_of(hub_of(2)), "");
    HubConfig config = hub_of(1);
    EXPECT_NE(sim::problem_of(config), "");
    config = hub_of(2);
    config.bits_per_second = 1'000'000'000;
    EXPECT_NE(sim::problem_of(config).find("10 or 100"), std::string::npos);
    config = hub_of(2);
    config.port_cable = {1, 2, 3};
    EXPECT_NE(sim::problem_of(config), "");
    config = hub_of(2);
    config.cable = -1;
    EXPECT_NE(sim::problem_of(config), "");
    config = hub_of(3);
    config.port_cable = {1100, 0, 1010};  // 2 · (1100 + 1010 + 460) > 5120
    EXPECT_NE(sim::problem_of(config).find("slot time"), std::string::npos);
    config.port_cable = {1100, 0, 1000};
    EXPECT_EQ(sim::problem_of(config), "");
}

}  // namespace
}  // namespace ulc::test
