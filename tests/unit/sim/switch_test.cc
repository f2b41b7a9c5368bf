// SPDX-License-Identifier: BSD-3-Clause
// The simulated switch: exact times, what fits its buffers, who hears what.
#include <gtest/gtest.h>

#include <map>

#include "base/prng.h"
#include "tests/sim/media/switch_medium.h"
#include "tests/unit/sim/media_host.h"

namespace ulc::test {
namespace {

using sim::Forwarding;
using sim::SwitchConfig;
using sim::SwitchMedium;

constexpr Nanos kOctet = 80;  // at 100 Mb/s
constexpr Nanos kShort = (8 + 60 + 4) * kOctet;
constexpr Nanos kLong = (8 + 1514 + 4) * kOctet;
constexpr Nanos kGap = 12 * kOctet;
constexpr Nanos kCable = 25;
constexpr Nanos kLatency = 2000;

SwitchConfig switch_of(std::uint16_t ports) {
    SwitchConfig config;
    config.macs = media_macs(ports);
    config.bits_per_second = 100'000'000;
    return config;
}

TEST(sim_switch, store_and_forward_pays_the_frame_twice) {
    SwitchMedium medium(switch_of(2));
    MediaLog log;
    medium.transmit(0, media_frame(0, 1, 60, 1), 500);
    medium.transmit(0, media_frame(0, 1, 1514, 2), 500);
    log.drain(medium);
    const Nanos first = 500 + kShort;
    const Nanos second = first + kGap + kLong;
    EXPECT_EQ(log.sent, (std::vector<MediaLog::Sent>{{0, true, first}, {0, true, second}}));
    EXPECT_EQ(log.arrivals, (std::vector<MediaLog::Arrival>{
                                {1, 0, 1, first + kCable + kLatency + kShort + kCable},
                                {1, 0, 2, second + kCable + kLatency + kLong + kCable}}));
}

TEST(sim_switch, cut_through_waits_for_the_header_only) {
    SwitchConfig config = switch_of(2);
    config.forwarding = Forwarding::kCutThrough;
    SwitchMedium medium(config);
    MediaLog log;
    medium.transmit(0, media_frame(0, 1, 1514), 0);
    log.drain(medium);
    EXPECT_EQ(log.arrivals.at(0).at, 22 * kOctet + kCable + kLatency + kLong + kCable);
}

TEST(sim_switch, without_header_and_latency_it_is_a_cable) {
    SwitchConfig config = switch_of(2);
    config.forwarding = Forwarding::kCutThrough;
    config.cut_through_octets = 0;
    config.latency = 0;
    SwitchMedium medium(config);
    MediaLog log;
    medium.transmit(0, media_frame(0, 1, 1514), 0);
    medium.transmit(1, media_frame(1, 0, 1514), 0);
    log.drain(medium);
    EXPECT_EQ(log.arrivals.at(0).at, kLong + 2 * kCable);
    EXPECT_EQ(log.arrivals.at(1).at, kLong + 2 * kCable) << "both directions at once";
}

TEST(sim_switch, to_a_faster_port_even_cut_through_stores) {
    SwitchConfig config = switch_of(3);
    config.forwarding = Forwarding::kCutThrough;
    config.port_bits_per_second = {100'000'000, 1'000'000'000, 10'000'000};
    SwitchMedium medium(config);
    MediaLog log;
    medium.transmit(0, media_frame(0, kToAll, 1514), 0);
    log.drain(medium);
    ASSERT_EQ(log.arrivals.size(), 2U);
    EXPECT_EQ(log.arrivals[0].port, 1);
    EXPECT_EQ(log.arrivals[0].at, kLong + kCable + kLatency + kLong / 10 + kCable);
    EXPECT_EQ(log.arrivals[1].port, 2);
    EXPECT_EQ(log.arrivals[1].at, 22 * kOctet + kCable + kLatency + kLong * 10 + kCable);
}

TEST(sim_switch, rates_are_exact_where_an_octet_is_less_than_a_nanosecond) {
    constexpr int kFrames = 100'000;
    SwitchConfig config = switch_of(2);
    config.bits_per_second = 100'000'000'000;
    SwitchMedium medium(config);
    MediaLog log;
    for (int n = 0; n < kFrames; ++n)
        medium.transmit(0, media_frame(0, 1, 60), 0);
    log.drain(medium);
    // 84 octets each with the gap, 6.72 ns; the last has no gap to wait for.
    const Nanos expected = (kFrames * Nanos{84} - 12) * 8 / 100 + 1;
    EXPECT_EQ(log.sent.back().at, expected);
    EXPECT_NEAR(static_cast<double>(log.arrivals.back().at),
                static_cast<double>(expected + 2 * kCable + kLatency + 6), 2);
}

TEST(sim_switch, what_does_not_fit_an_outputs_buffer_is_dropped_and_counted) {
    constexpr std::uint16_t kSenders = 9;
    SwitchConfig config = switch_of(kSenders + 1);
    config.buffer_octets = 4 * 1518 + 100;  // four full frames, and one being too many
    SwitchMedium medium(config);
    MediaLog log;
    for (std::uint16_t port = 1; port <= kSenders; ++port)
        medium.transmit(port, media_frame(port, 0, 1514), 0);
    log.drain(medium);
    EXPECT_EQ(log.arrivals.size(), 4U) << "all come at once: four fit";
    EXPECT_EQ(medium.counts(0).overflows, 5U);
    EXPECT_EQ(medium.counts(0).buffer_octets_max, 4U * 1518);
    EXPECT_EQ(medium.buffered_octets(0), 0U);
    // A second burst: a slot is free again for each frame that has left.
    const Nanos now = log.arrivals.back().at;
    for (std::uint16_t port = 1; port <= kSenders; ++port)
        medium.transmit(port, media_frame(port, 0, 60), now);
    log.drain(medium);
    EXPECT_EQ(log.arrivals.size(), 4U + kSenders) << "short ones fit";
}

TEST(sim_switch, an_incast_loses_what_the_link_and_the_buffer_cannot_take) {
    constexpr std::uint16_t kSenders = 16;
    constexpr std::uint32_t kEach = 100;
    SwitchConfig config = switch_of(kSenders + 1);
    config.buffer_octets = 64 << 10;
    SwitchMedium medium(config);
    MediaLog log;
    for (std::uint16_t port = 1; port <= kSenders; ++port)
        for (std::uint32_t n = 0; n < kEach; ++n)
            medium.transmit(port, media_frame(port, 0, 1514, n), 0);
    log.drain(medium);
    // While the senders send, the output takes one frame for sixteen; the buffer's 43 come on top.
    EXPECT_EQ(log.arrivals.size() + medium.counts(0).overflows, kSenders * kEach);
    EXPECT_NEAR(static_cast<double>(log.arrivals.size()), kEach + (64 << 10) / 1518.0, 2);
    EXPECT_LE(medium.counts(0).buffer_octets_max, 64U << 10);
}

TEST(sim_switch, a_multicast_takes_room_at_each_output_and_once_in_the_shared_memory) {
    SwitchConfig config = switch_of(5);
    config.shared_octets = 1518;
    SwitchMedium medium(config);
    MediaLog log;
    medium.transmit(0, media_frame(0, kToAll, 1514, 1), 0);
    medium.transmit(1, media_frame(1, kToAll, 1514, 2), 0);
    log.drain(medium);
    EXPECT_EQ(log.arrivals.size(), 4U);
    for (std::uint16_t port = 0; port < 5; ++port) {
        // Port 0's reaches all; 1's finds the memory taken at each output.
        EXPECT_EQ(medium.counts(port).out_frames, port == 0 ? 0U : 1U);
        EXPECT_EQ(medium.counts(port).overflows, port == 1 ? 0U : 1U);
    }
    medium.transmit(2, media_frame(2, 3, 1514, 3), log.arrivals.back().at);
    log.drain(medium);
    EXPECT_EQ(log.arrivals.back().number, 3U) << "it is free again";
}

TEST(sim_switch, a_frame_for_nobody_or_for_its_sender_goes_nowhere) {
    SwitchMedium medium(switch_of(3));
    MediaLog log;
    medium.transmit(0, media_frame(0, 77, 60), 0);
    medium.transmit(0, media_frame(0, 0, 60), 0);
    log.drain(medium);
    EXPECT_TRUE(log.arrivals.empty());
    EXPECT_EQ(log.sent.size(), 2U);
    EXPECT_EQ(medium.unknown_destinations(), 2U);
}

TEST(sim_switch, a_thousand_ports_hear_a_multicast_at_once_but_not_its_source) {
    SwitchMedium medium(switch_of(1000));
    MediaLog log;
    medium.transmit(500, media_frame(500, kToAll, 60), 0);
    log.drain(medium);
    EXPECT_EQ(log.arrivals.size(), 999U);
    for (const auto& arrival : log.arrivals) {
        EXPECT_NE(arrival.port, 500);
        EXPECT_EQ(arrival.at, log.arrivals[0].at);
    }
}

/// Random traffic of all to all, to groups too.
MediaLog random_run(Forwarding forwarding, std::uint64_t seed, const sim::FaultRates& rates) {
    constexpr std::uint16_t kPorts = 7;
    SwitchConfig config = switch_of(kPorts);
    config.forwarding = forwarding;
    config.seed = seed;
    config.port_bits_per_second = {100'000'000, 100'000'000,   10'000'000, 1'000'000'000,
                                   100'000'000, 1'000'000'000, 10'000'000};
    SwitchMedium medium(config);
    medium.faults().set(rates);
    MediaLog log;
    Prng prng(seed);
    Nanos now = 0;
    for (std::uint32_t n = 0; n < 3000; ++n) {
        now += static_cast<Nanos>(prng.below(20'000));
        medium.advance(now, log);
        const auto from = static_cast<std::uint16_t>(prng.below(kPorts));
        const auto hop = static_cast<std::uint16_t>(prng.below(kPorts));
        const auto to = hop == 0 ? kToAll : static_cast<std::uint16_t>((from + hop) % kPorts);
        medium.transmit(from, media_frame(from, to, 18 + prng.below(1490), n), now);
    }
    log.drain(medium);
    return log;
}

TEST(sim_switch, frames_of_a_pair_stay_in_order_and_none_is_lost) {
    for (const Forwarding forwarding : {Forwarding::kStoreAndForward, Forwarding::kCutThrough}) {
        const MediaLog log = random_run(forwarding, 4, {});
        std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint32_t> last;
        Nanos before = 0;
        for (const auto& arrival : log.arrivals) {
            auto& number = last[{arrival.from, arrival.port}];
            EXPECT_GE(arrival.number, number);
            number = arrival.number;
            EXPECT_GE(arrival.at, before);
            before = arrival.at;
        }
        EXPECT_EQ(log.sent.size(), 3000U);
        EXPECT_GT(log.arrivals.size(), 3000U) << "a multicast arrives six times";
    }
}

TEST(sim_switch, the_same_seed_gives_the_same_run_and_another_does_not) {
    sim::FaultRates rates;
    rates.loss = 0.02;
    rates.duplicate = 0.02;
    rates.reorder = 0.2;
    const MediaLog one = random_run(Forwarding::kCutThrough, 9, rates);
    const MediaLog same = random_run(Forwarding::kCutThrough, 9, rates);
    const MediaLog other = random_run(Forwarding::kCutThrough, 10, rates);
    EXPECT_EQ(one.arrivals, same.arrivals);
    EXPECT_EQ(one.sent, same.sent);
    EXPECT_NE(one.arrivals, other.arrivals);
}

TEST(sim_switch, a_configuration_that_cannot_be_says_why) {
    EXPECT_EQ(sim::problem_of(switch_of(2)), "");
    EXPECT_NE(sim::problem_of(switch_of(1)), "");
    SwitchConfig config = switch_of(2);
    config.bits_per_second = 0;
    EXPECT_NE(sim::problem_of(config).find("rate"), std::string::npos);
    config = switch_of(2);
    config.port_bits_per_second = {1'000'000};
    EXPECT_NE(sim::problem_of(config), "");
    config = switch_of(2);
    config.latency = -1;
    EXPECT_NE(sim::problem_of(config), "");
}

}  // namespace
}  // namespace ulc::test
