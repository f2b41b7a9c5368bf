// SPDX-License-Identifier: BSD-3-Clause
// Engines with several threads (docs/design/ENGINE_THREADS.md): the thread that each frame reaches
// when the NIC steers or a thread hands over; rings that are full; whole jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/cluster/net_config.h"
#include "tests/sim/media/machine_medium.h"
#include "tests/sim/programs/machine_pair.h"

namespace ulc::sim {
namespace {

constexpr Mac kGroup{{0x03, 0, 0, 0, 0, 1}};

FramePtr frame_of(const Mac& destination, const Mac& source) {
    auto frame = std::make_shared<std::vector<std::byte>>(60);
    std::memcpy(frame->data(), &destination, sizeof destination);
    std::memcpy(frame->data() + sizeof destination, &source, sizeof source);
    return frame;
}

/// Two machines of two threads: stations 0, 1 and 2, 3.
class Machines : public MediumSink {
public:
    virtual ~Machines() = default;
    explicit Machines(Steering steering) {
        NetConfig config;
        config.ports = 4;
        config.threads = 2;
        config.steering = steering;
        config.medium = MediumKind::kDirect;
        config.ring_latency = 100;
        made = make_medium(config);
    }
    void on_sent(std::uint16_t port, bool sent, Nanos at) override {
        EXPECT_TRUE(sent);
        left.emplace_back(port, at);
    }
    void on_arrival(std::uint16_t port, const FramePtr&, Nanos at) override {
        came.emplace_back(port, at);
    }
    [[nodiscard]] std::vector<std::uint16_t> receivers_of(std::uint16_t from, const Mac& to) {
        came.clear();
        made.medium->transmit(from, frame_of(to, mac_of_port(from)), now);
        now += kMillisecond;
        made.medium->advance(now, *this);
        std::vector<std::uint16_t> ports;
        for (const auto& [port, at] : came)
            ports.push_back(port);
        std::ranges::sort(ports);
        return ports;
    }
    MadeMedium made;
    std::vector<std::pair<std::uint16_t, Nanos>> left;
    std::vector<std::pair<std::uint16_t, Nanos>> came;
    Nanos now = 0;
};

using Ports = std::vector<std::uint16_t>;

TEST(EngineThreads, a_nic_that_steers_brings_each_thread_its_frames) {
    Machines machines(Steering::kByNic);
    EXPECT_EQ(machines.receivers_of(0, mac_of_port(2)), Ports{2});
    EXPECT_EQ(machines.receivers_of(0, mac_of_port(3)), Ports{3});
    EXPECT_EQ(machines.receivers_of(3, kGroup), (Ports{0, 1, 2}));
    EXPECT_EQ(machines.left.size(), 3U);
}

TEST(EngineThreads, groups_or_all_frames_come_to_the_first_thread_alone) {
    Machines unicast(Steering::kUnicastByNic);
    EXPECT_EQ(unicast.receivers_of(0, mac_of_port(3)), Ports{3});
    EXPECT_EQ(unicast.receivers_of(0, kGroup), (Ports{1, 2}));
    Machines software(Steering::kBySoftware);
    EXPECT_EQ(software.receivers_of(0, mac_of_port(3)), Ports{2});
    EXPECT_EQ(software.receivers_of(0, kGroup), (Ports{1, 2}));
}

TEST(EngineThreads, threads_of_a_machine_use_the_ring_and_not_the_cable) {
    Machines machines(Steering::kByNic);
    EXPECT_EQ(machines.receivers_of(0, mac_of_port(1)), Ports{1});
    EXPECT_EQ(machines.came[0].second, 100);
    EXPECT_EQ(machines.made.report()[0],
              std::make_pair(std::string("in_frames"), std::uint64_t{0}));
    ASSERT_EQ(machines.left.size(), 1U);
    EXPECT_EQ(machines.left[0], std::make_pair(std::uint16_t{0}, Nanos{0}));
}

// The engine takes back its oldest frame at each report.
TEST(EngineThreads, frames_are_reported_as_sent_in_their_order) {
    Machines machines(Steering::kByNic);
    machines.made.medium->transmit(0, frame_of(mac_of_port(2), mac_of_port(0)), 0);
    machines.made.medium->transmit(0, frame_of(mac_of_port(1), mac_of_port(0)), 0);
    machines.made.medium->advance(1, machines);
    EXPECT_TRUE(machines.left.empty()) << "the cable still has the first";
    machines.made.medium->advance(kMillisecond, machines);
    ASSERT_EQ(machines.left.size(), 2U);
    EXPECT_EQ(machines.left[0].second, machines.left[1].second);
}

TEST(EngineThreads, a_frame_that_is_handed_over_does_not_leave_again) {
    Machines machines(Steering::kBySoftware);
    machines.made.medium->transmit(2, frame_of(mac_of_port(3), mac_of_port(0)), 0);
    machines.made.medium->advance(kMillisecond, machines);
    ASSERT_EQ(machines.came.size(), 1U);
    EXPECT_EQ(machines.came[0], std::make_pair(std::uint16_t{3}, Nanos{100}));
    EXPECT_TRUE(machines.left.empty());
}

TEST(EngineThreads, all_messages_come_in_order_however_frames_are_steered) {
    for (const Steering steering :
         {Steering::kByNic, Steering::kUnicastByNic, Steering::kBySoftware})
        for (const ThreadTraffic traffic :
             {ThreadTraffic::kPairs, ThreadTraffic::kMulticast, ThreadTraffic::kOtherThread}) {
            MachinePair pair;
            pair.traffic = traffic;
            pair.threads = 3;
            pair.steering = steering;
            pair.count = 100;
            const MachineFigures figures = run_machine_pair(pair);
            EXPECT_EQ(figures.error, "");
            EXPECT_EQ(figures.overruns, 0U);
            EXPECT_EQ(figures.handed_over > 0, steering != Steering::kByNic);
        }
}

TEST(EngineThreads, what_finds_a_ring_full_is_repaired) {
    MachinePair pair;
    pair.traffic = ThreadTraffic::kOtherThread;
    pair.threads = 2;
    pair.ring_frames = 4;
    pair.octets = 4000;
    pair.count = 200;
    const MachineFigures figures = run_machine_pair(pair);
    EXPECT_EQ(figures.error, "");
    EXPECT_GT(figures.overruns, 0U);
    EXPECT_GT(figures.repairs, 0U);
}

}  // namespace
}  // namespace ulc::sim
