// SPDX-License-Identifier: BSD-3-Clause
// Tests the instrument itself: its figures for known cases, that it is fair in time, and that a run
// depends only on its seed.
#include "tests/sim/cluster/experiment.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/sim/host/presets.h"
#include "tests/sim/trace/pcapng.h"

namespace ulc::sim {
namespace {

Experiment fast_ethernet(TrafficKind kind, std::size_t octets, std::uint64_t count) {
    Experiment e;
    e.cluster.net.ports = 2;
    e.cluster.net.medium = MediumKind::kDirect;
    e.cluster.net.bits_per_second = 100'000'000;
    e.cluster.sizes = {256, 512, 1U << 20, 2U << 20};
    e.traffic.kind = kind;
    e.traffic.octets = octets;
    e.traffic.count = count;
    return e;
}

Nanos one_way(const Experiment& e) {
    const Figures f = run_experiment(e);
    EXPECT_EQ(f.error, "");
    return f.latency_percentile(50);
}

TEST(Experiment, a_client_answers_when_its_message_is_there) {
    // A shortest frame takes 64 + 8 bytes of line, the cable 25 ns (twice: to the switch and from
    // it). The rest are the rounds of an ideal host, 50 ns each: one takes the frame, in the next
    // its client answers.
    const Nanos line = 72 * 8 * 10 + 50;
    const Nanos latency = one_way(fast_ethernet(TrafficKind::kPingPong, 0, 200));
    EXPECT_GE(latency, line);
    EXPECT_LE(latency, line + 4 * HostCosts{}.round);
}

TEST(Experiment, each_cost_of_a_host_is_in_the_latency_once) {
    const Experiment ideal = fast_ethernet(TrafficKind::kPingPong, 0, 200);
    const Nanos base = one_way(ideal);
    const auto added = [&](auto change) {
        Experiment e = ideal;
        e.cluster.hosts.resize(1);
        change(e.cluster.hosts[0]);
        return one_way(e) - base;
    };
    EXPECT_EQ(added([](HostCosts& host) { host.send_frame = 1000; }), 1000);
    EXPECT_EQ(added([](HostCosts& host) { host.receive_frame = 1000; }), 1000);
    EXPECT_EQ(added([](HostCosts& host) { host.submit = 1000; }), 1000);
    EXPECT_EQ(added([](HostCosts& host) { host.complete = 1000; }), 1000);
    EXPECT_EQ(added([](HostCosts& host) { host.wake = 1000; }), 1000);
    EXPECT_EQ(added([](HostCosts& host) { host.send_octet = 10; }), 600) << "60 octets";
    EXPECT_EQ(added([](HostCosts& host) { host.nic = 500; }), 1000) << "both ways";
    EXPECT_EQ(added([](HostCosts& host) { host.bus_octet = 10; }), 1200) << "both ways";
    EXPECT_EQ(added([](HostCosts& host) {
                  host.notice = Notice::kInterrupt;
                  host.interrupt_latency = 4000;
                  host.interrupt_cost = 1000;
              }),
              5000);
    EXPECT_EQ(added([](HostCosts& host) {
                  host.send_frame = 1000;
                  host.speed = 0.5;
              }),
              2050)
        << "the round takes twice as long too";
}

TEST(Experiment, early_send_hides_the_bus_behind_the_line) {
    Experiment e = fast_ethernet(TrafficKind::kPingPong, 1400, 100);
    e.cluster.hosts.resize(1);
    e.cluster.hosts[0].bus_octet = 30;
    const Nanos whole = one_way(e);
    e.cluster.hosts[0].send_threshold = 100;
    e.cluster.hosts[0].receive_threshold = 100;
    const Nanos early = one_way(e);
    const Nanos one_transfer = 1442 * 30;
    EXPECT_GT(whole - early, 2 * one_transfer - 2 * 100 * 30 - 1000);
    EXPECT_LT(whole - early, 2 * one_transfer);
}

TEST(Experiment, a_stream_fills_fast_ethernet) {
    const Figures f = run_experiment(fast_ethernet(TrafficKind::kStream, 1U << 20, 20));
    EXPECT_EQ(f.error, "");
    EXPECT_EQ(f.messages, 20U);
    EXPECT_GE(f.goodput(), 0.965 * 12.5e6) << "the budget";
    EXPECT_LT(f.goodput(), 0.9662 * 12.5e6) << "more than the line can carry";
    EXPECT_EQ(f.repairs(), 0U);
}

TEST(Experiment, multicast_and_collectives_are_measured_and_checked) {
    Experiment e;
    e.cluster.net.ports = 5;
    e.cluster.net.faults.loss = 0.02;
    e.traffic = {.kind = TrafficKind::kMulticast, .octets = 1000, .count = 200, .warm_up = 20};
    const Figures f = run_experiment(e);
    EXPECT_EQ(f.error, "");
    EXPECT_EQ(f.messages, 800U);
    EXPECT_EQ(f.latency.size(), 800U);
    EXPECT_GT(f.repairs(), 0U);
    e.traffic = {.kind = TrafficKind::kCollective,
                 .octets = 100,
                 .count = 30,
                 .collective = CollectiveKind::kBroadcast,
                 .rotate_root = true};
    const Figures g = run_experiment(e);
    EXPECT_EQ(g.error, "");
    EXPECT_EQ(g.latency.size(), 30U);
}

TEST(Experiment, a_death_in_mid_stream_is_said) {
    Experiment e = fast_ethernet(TrafficKind::kStream, 1000, 100'000);
    e.limit = 10 * kSecond;
    e.events.push_back({EventKind::kKillNode, kMillisecond, 0, 1, 1});
    EXPECT_NE(run_experiment(e).error, "");
}

TEST(Experiment, every_preset_of_a_host_can_talk) {
    for (const HostCosts& host : host_presets()) {
        Experiment e = fast_ethernet(TrafficKind::kPingPong, 100, 20);
        e.cluster.hosts = {host};
        e.cluster.engine.params.peer_dead = 100 * kSecond;
        EXPECT_EQ(run_experiment(e).error, "") << host.name;
    }
}

std::string traced(std::uint64_t seed) {
    const std::string path = testing::TempDir() + "ulc_sim_trace.pcapng";
    Experiment e;
    e.cluster.net.ports = 4;
    e.cluster.net.medium = MediumKind::kHub;
    e.cluster.net.bits_per_second = 100'000'000;
    e.cluster.net.faults.loss = 0.05;
    e.cluster.seed = e.cluster.net.seed = seed;
    e.traffic = {.kind = TrafficKind::kIncast, .octets = 3000, .count = 20};
    {
        const auto trace = PcapngTrace::open(path, 4);
        EXPECT_NE(trace, nullptr);
        e.tap = trace.get();
        EXPECT_EQ(run_experiment(e).error, "");
        EXPECT_TRUE(trace->good());
    }
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Experiment, same_seed_same_bytes) {
    const std::string first = traced(7);
    EXPECT_GT(first.size(), 10'000U);
    EXPECT_EQ(first, traced(7));
    EXPECT_NE(first, traced(8));
}

TEST(Experiment, a_trace_is_whole_blocks_of_pcapng) {
    const std::string bytes = traced(7);
    const auto u32 = [&](std::size_t at) {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        return value;
    };
    ASSERT_EQ(u32(0), 0x0A0D0D0AU);
    ASSERT_EQ(u32(8), 0x1A2B3C4DU);
    std::size_t interfaces = 0;
    std::size_t packets = 0;
    std::uint64_t last = 0;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::uint32_t length = u32(at + 4);
        ASSERT_EQ(length % 4, 0U);
        ASSERT_GE(length, 12U);
        ASSERT_LE(at + length, bytes.size());
        ASSERT_EQ(u32(at + length - 4), length);
        if (u32(at) == 1) ++interfaces;
        if (u32(at) == 6) {
            ++packets;
            ASSERT_LT(u32(at + 8), 4U);
            const std::uint64_t time = std::uint64_t{u32(at + 12)} << 32 | u32(at + 16);
            EXPECT_GE(time, last);
            last = time;
            EXPECT_LE(u32(at + 20), 1514U);
        }
        at += length;
    }
    EXPECT_EQ(interfaces, 4U);
    EXPECT_GT(packets, 100U);
}

}  // namespace
}  // namespace ulc::sim
