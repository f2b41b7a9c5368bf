// SPDX-License-Identifier: BSD-3-Clause
// Counts the frames that the default profile sends besides the data, in the two cases where they
// cost most: on a hub, where each may collide with data, and on a host that is slow compared with
// its wire.
#include <gtest/gtest.h>

#include "tests/sim/coll/budgets.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/measure.h"

namespace ulc::sim {
namespace {

/// GAMMA §5.4: Pentium 133 on a Fast Ethernet repeater.
double barrier_us(const char* algorithm, std::uint16_t nodes, const char* profile = "urtp") {
    ClusterConfig config = gamma_hub(nodes);
    config.engine.profile = profile;
    const Measured measured = barrier_time(config, algorithm, 60);
    EXPECT_TRUE(measured.ok);
    return measured.us;
}

/// Returns the frames besides the messages, for each message, in a ping-pong of two hosts on a
/// cable.
double control_a_message(const char* host, const char* profile = "urtp") {
    ClusterConfig config;
    config.net.medium = MediumKind::kDirect;
    config.net.bits_per_second = 100'000'000;
    config.engine.profile = profile;
    config.hosts = {*host_preset(host)};
    PingPongBench bench(config);
    EXPECT_TRUE(bench.formed());
    EXPECT_TRUE(bench.one_way(8, 10).ok);
    const auto control = [&] {
        const SimCluster& cluster = bench.lib().cluster();
        return cluster.count(Counter::ack_sent) + cluster.count(Counter::req_sent) +
               cluster.count(Counter::probe_sent);
    };
    const std::uint64_t before = control();
    const std::uint64_t messages = bench.lib().cluster().count(Counter::messages_sent);
    EXPECT_TRUE(bench.one_way(8, 200).ok);
    return static_cast<double>(control() - before) /
           static_cast<double>(bench.lib().cluster().count(Counter::messages_sent) - messages);
}

TEST(ControlBudget, leaves_a_hub_to_the_data_of_barriers) {
    const double one = barrier_us("chain:1", 16);
    const double two = barrier_us("chain:2", 16);
    EXPECT_LT(two, 0.85 * one) << "GAMMA: 156 to 218 us";
    EXPECT_LT(one, 1.1 * barrier_us("chain:1", 16, "gbn"));
    EXPECT_LT(two, 1.15 * barrier_us("chain:2", 16, "gbn"));
    EXPECT_GT(barrier_us("gather_broadcast", 16), one) << "nothing is to be had for nothing";
}

TEST(ControlBudget, of_a_ping_pong_is_a_tenth_of_a_frame_on_any_host) {
    for (const char* host : {"ideal", "gamma-0.4", "linux-tcp-pii300", "unet-mpi"})
        EXPECT_LE(control_a_message(host), 0.1) << host;
    EXPECT_GE(control_a_message("linux-tcp-pii300", "urtp-1997"), 0.5) << "it asks at once";
}

}  // namespace
}  // namespace ulc::sim
