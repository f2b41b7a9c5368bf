// SPDX-License-Identifier: BSD-3-Clause
// Tests the longest round trips of a ping at 1 % loss. A frame that is lost costs a timeout. No
// timeout may grow into a pause that a user notices, also where processors are shared.
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/cluster/experiment.h"
#include "tests/sim/host/presets.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kRoundTrips = 100'000;

/// Two nodes and a switch, as `ulc run -n 2 --loss 0.01 ulc ping` starts them.
Experiment ping(const Sharing& sharing, std::uint64_t seed) {
    Experiment e;
    e.cluster.seed = e.cluster.net.seed = seed;
    e.cluster.net.ports = 2;
    e.cluster.net.sharing = sharing;
    e.cluster.net.faults = {.loss = 0.01};
    HostCosts host = *host_preset("own-machine");
    host.sharing = sharing;
    e.cluster.hosts = {host};
    e.traffic = {.kind = TrafficKind::kPingPong, .octets = 8, .count = kRoundTrips};
    return e;
}

/// Returns the round trip that one in 10,000 exceeds.
Nanos tail_of(const Sharing& sharing, std::uint64_t seed) {
    const Figures figures = run_experiment(ping(sharing, seed));
    EXPECT_EQ(figures.error, "");
    EXPECT_EQ(figures.latency.size(), kRoundTrips);
    EXPECT_GE(figures.repairs(), kRoundTrips / 100) << "the wire lost less than it should";
    const auto trip = [&](double percent) { return 2 * figures.latency_percentile(percent); };
    for (const auto& [name, percent] :
         {std::pair{"median", 50.0}, {"p99", 99.0}, {"p99.99", 99.99}, {"longest", 100.0}})
        testing::Test::RecordProperty(name, std::to_string(trip(percent) / kMicrosecond) + " us");
    return trip(99.99);
}

class PingTail : public testing::TestWithParam<std::uint64_t> {};

TEST_P(PingTail, is_short_where_each_process_has_a_core) {
    EXPECT_LE(tail_of({}, GetParam()), 5 * kMillisecond);
}

// A process runs for 3 ms at the mean, and waits as long for the other one of its core.
TEST_P(PingTail, is_bounded_where_two_processes_share_a_core) {
    EXPECT_LE(tail_of({3 * kMillisecond, 3 * kMillisecond}, GetParam()), 50 * kMillisecond);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PingTail, testing::Values(1, 2));

}  // namespace
}  // namespace ulc::sim
