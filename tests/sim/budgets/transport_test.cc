// SPDX-License-Identifier: BSD-3-Clause
// Budgets of the transport that virtual time can check: loss, multicast, retransmission, incast,
// and the cost limits of congestion control. Each figure has a counterpart that misses it, which
// proves that the check can fail.
#include <gtest/gtest.h>

#include "tests/sim/programs/goodput.h"
#include "tests/sim/programs/latency.h"

namespace ulc::sim {
namespace {

GoodputResult checked(const GoodputCase& c) {
    const GoodputResult result = measure_goodput(c);
    EXPECT_TRUE(result.formed);
    EXPECT_EQ(result.leaked, 0U);
    return result;
}

constexpr std::uint64_t kRates[] = {100'000'000, 1'000'000'000, 10'000'000'000};
/// No constant was chosen with one of these seeds.
constexpr std::uint64_t kSeedFirst = 101;
constexpr std::uint64_t kSeeds = 3;

/// 64 KiB at each output of the switch; the same number of packets at any rate.
GoodputCase through_buffers(const char* profile, std::uint64_t rate, std::uint64_t seed) {
    GoodputCase c;
    c.profile = profile;
    c.bits_per_second = rate;
    c.buffer_octets = 65536;
    c.warm_up = 20'000'000'000'000'000LL / static_cast<Nanos>(rate);
    c.span = 3 * c.warm_up + 20 * kMillisecond;
    c.seed = seed;
    return c;
}

GoodputCase incast(const char* profile, std::uint64_t rate = kRates[1], std::uint64_t seed = 1) {
    GoodputCase c = through_buffers(profile, rate, seed);
    c.senders = 16;
    return c;
}

TEST(Incast, of_16_through_64_kib_fills_the_link_and_is_fair) {
    for (const std::uint64_t rate : kRates) {
        for (std::uint64_t seed = kSeedFirst; seed < kSeedFirst + kSeeds; ++seed) {
            const GoodputResult r = checked(incast("urtp", rate, seed));
            EXPECT_GE(r.share * kPayloadShare, 0.90) << rate << ", seed " << seed;
            EXPECT_GE(r.jain, 0.95) << rate << ", seed " << seed;
            EXPECT_LE(r.control, 1.0)
                << "control packets a data packet, " << rate << ", seed " << seed;
        }
    }
}

/// 7 nodes multicast to 8.
GoodputCase all_to_all(const char* profile, std::uint64_t rate, std::uint64_t seed) {
    GoodputCase c = through_buffers(profile, rate, seed);
    c.senders = 7;
    c.all_multicast = true;
    return c;
}

TEST(Multicast, of_7_to_8_at_once_through_64_kib_fills_the_link) {
    for (const std::uint64_t rate : kRates) {
        for (std::uint64_t seed = kSeedFirst; seed < kSeedFirst + 2; ++seed) {
            const GoodputResult r = checked(all_to_all("urtp", rate, seed));
            EXPECT_GE(r.share, 0.90) << rate << ", seed " << seed;
            // At 100 Mb/s a sender has some 700 packets in the span, and half a dozen in its
            // window.
            EXPECT_GE(r.jain, rate == kRates[0] ? 0.85 : 0.95) << rate << ", seed " << seed;
            EXPECT_LE(r.control, 1.0) << rate << ", seed " << seed;
        }
    }
}

TEST(Multicast, of_7_to_8_at_once_misses_the_budget_without_congestion_control) {
    const GoodputResult r = checked(all_to_all("open", kRates[1], kSeedFirst));
    EXPECT_LT(r.share, 0.90);
    EXPECT_GT(r.control, 1.0);
}

TEST(Incast, misses_the_budget_without_congestion_control) {
    EXPECT_LT(checked(incast("open")).share * kPayloadShare, 0.85);
}

TEST(RandomLoss, costs_a_unicast_stream_what_is_lost) {
    for (const auto& [loss, budget] : {std::pair(1e-3, 0.98), std::pair(1e-2, 0.90)}) {
        const GoodputResult r = checked({.loss = loss});
        EXPECT_GE(r.share / (1 - loss), budget) << loss;
        EXPECT_LE(r.control, 1.0);
    }
}

TEST(RandomLoss, costs_go_back_n_more_than_the_budget) {
    EXPECT_LT(checked({.profile = "gbn+block", .loss = 5e-2}).share / 0.95, 0.90);
}

TEST(RandomLoss, costs_a_multicast_to_16_its_repairs) {
    for (const double loss : {1e-3, 1e-2}) {
        const GoodputResult r = checked({.receivers = 16, .loss = loss});
        EXPECT_GE(r.share * multicast_transmissions(loss, 16), 0.97) << loss;
    }
}

TEST(RandomLoss, expects_as_many_transmissions_as_the_textbook) {
    EXPECT_DOUBLE_EQ(multicast_transmissions(0, 16), 1);
    EXPECT_NEAR(multicast_transmissions(0.5, 1), 2, 1e-9);
    EXPECT_NEAR(multicast_transmissions(1e-2, 16), 1.1502, 1e-3);
}

TEST(Repair, of_a_lost_multicast_takes_two_round_trips_and_100_us) {
    const Nanos rtt = 2 * measure_ping_pong("urtp", 1000, 100);
    ASSERT_GT(rtt, 0);
    const Nanos repair = measure_multicast_repair("urtp", 15, 40);
    ASSERT_GT(repair, 0);
    EXPECT_LE(repair, 2 * rtt + 100 * kMicrosecond);
}

TEST(PingPong, is_as_fast_with_congestion_control_as_without) {
    for (const std::size_t octets : {8UL, 1000UL, 60000UL}) {
        const Nanos open = measure_ping_pong("open", octets, 200);
        ASSERT_GT(open, 0);
        EXPECT_LE(measure_ping_pong("urtp", octets, 200), open + open / 50) << octets;
    }
}

}  // namespace
}  // namespace ulc::sim
