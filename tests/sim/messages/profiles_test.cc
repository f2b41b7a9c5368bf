// SPDX-License-Identifier: BSD-3-Clause
// Tests every profile through real engines: the same traffic and oracle as random_traffic_test.cc,
// once for each policy that a job may be configured with; and the reports of the profile that
// retransmits nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/random_traffic.h"
#include "urtp/policy.h"

namespace ulc::sim {
namespace {

ClusterConfig config_of(const std::string& profile, double loss, std::uint64_t seed) {
    ClusterConfig config;
    config.seed = seed;
    config.engine.profile = profile;
    config.net.ports = 4;
    config.net.seed = seed;
    config.net.bits_per_second = 1'000'000'000;
    config.net.faults = {.loss = loss, .duplicate = loss / 2, .reorder = loss / 2};
    return config;
}

std::string run(const std::string& profile, double loss, std::uint64_t seed) {
    SimCluster cluster(config_of(profile, loss, seed));
    if (!cluster.form(5, [](std::size_t n) { return static_cast<std::uint16_t>(n % 4); }))
        return "the job did not form";
    TrafficConfig traffic_config;
    traffic_config.messages = 40;
    if (seed % 2 == 0) traffic_config.read_gap = 25 * kMicrosecond;
    Traffic traffic(cluster, 5, traffic_config, seed);
    if (!traffic.make_groups()) return "groups were not made";
    std::string error = traffic.run(120 * kSecond);
    if (!error.empty()) return error;
    const std::uint32_t out = cluster.shut_down();
    return out == 0 ? "" : std::to_string(out) + " segments leaked";
}

class EveryWord : public testing::TestWithParam<std::string> {};

// P-4
TEST_P(EveryWord, carries_random_traffic_through_engines) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed)
        EXPECT_EQ(run(GetParam(), 0.02, seed), "") << "seed " << seed;
}

std::vector<std::string> repairing_words() {
    std::vector<std::string> words;
    for (const urtp::Policy* policy : urtp::policies())
        if (policy->recovers) words.emplace_back(policy->word);
    return words;
}

INSTANTIATE_TEST_SUITE_P(All, EveryWord, testing::ValuesIn(repairing_words()), [](const auto& one) {
    std::string name = one.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

// Seven nodes of 10 Gb/s flood one of 100 Mb/s, all to all, and only the profile bounds them.
TEST(Overload, without_congestion_control_all_gets_through_a_port_that_is_outrun) {
    for (const char* profile :
         {"gbn+eager", "gbn+open", "p0+lazy", "p0-slot", "p1+eager+open", "pcode+eager"}) {
        SCOPED_TRACE(profile);
        ClusterConfig config = config_of(profile, 0, 1);
        config.net.ports = 8;
        config.net.bits_per_second = 10'000'000'000;
        config.net.port_bits_per_second.assign(8, 10'000'000'000);
        config.net.port_bits_per_second[3] = 100'000'000;
        config.net.buffer_octets = 64'000;
        SimCluster cluster(config);
        ASSERT_TRUE(cluster.form(8, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
        Traffic traffic(cluster, 8, {.messages = 20, .length_max = 40'000}, 1);
        ASSERT_TRUE(traffic.make_groups());
        const Nanos begin = cluster.now();
        EXPECT_EQ(traffic.run(60 * kSecond), "");
        const std::uint64_t repetitions =
            cluster.count(Counter::repair_unicast) + cluster.count(Counter::repair_multicast);
        std::printf("%-16s %7.1f ms, %s repetitions\n", profile,
                    static_cast<double>(cluster.now() - begin) / kMillisecond,
                    std::to_string(repetitions).c_str());
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

// D-5, D-6
TEST(Detect, what_does_not_arrive_is_reported_to_the_client) {
    SimCluster cluster(config_of("detect", 0.05, 3));
    ASSERT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    std::uint64_t sent = 0;
    std::uint64_t last = 0;
    std::uint64_t arrived = 0;
    (void)cluster.run(
        3600 * kSecond, [&] { return sent == 2000 && cluster.client(1).messages.empty(); },
        [&] {
            const std::vector<std::byte> payload(16);
            while (sent < 2000 && cluster.client(0).send(1, sent + 1, payload))
                ++sent;
            cluster.client(0).poll();
            cluster.client(1).poll();
            for (const Message& message : cluster.client(1).messages) {
                EXPECT_GT(message.tag, last);
                last = message.tag;
                ++arrived;
            }
            cluster.client(1).messages.clear();
            cluster.client(0).sends_done.clear();
        });
    for (int i = 0; i < 100; ++i) {
        cluster.step();
        cluster.client(1).poll();
        for (const Message& message : cluster.client(1).messages) {
            last = message.tag;
            ++arrived;
        }
        cluster.client(1).messages.clear();
    }
    EXPECT_EQ(sent, 2000U);
    EXPECT_LT(arrived, 2000U);
    EXPECT_EQ(arrived + cluster.client(1).faults[0], last) << "told, but for the tail";
    EXPECT_EQ(cluster.client(1).broken, 0U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
