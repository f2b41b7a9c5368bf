// SPDX-License-Identifier: BSD-3-Clause
// The switch between ports made of vectors: who gets which frame, how often, and what is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "switch/switch.h"

namespace ulc::ether_switch {
namespace {

/// A segment with its count and bytes in one allocation.
struct Buffer {
    Segment segment;
    std::uint32_t references = 1;
    std::byte bytes[256]{};
};

/// A port whose station is the test.
struct TestPort {
    std::deque<Segment*> to_switch;
    std::vector<std::vector<std::byte>> from_switch;
    std::uint16_t room = 60'000;  ///< frames that tx still takes
    bool up = true;

    [[nodiscard]] Port port() {
        Port p;
        p.context = this;
        p.pool = {.context = this,
                  .allocate = nullptr,
                  .retain = [](void*, Segment* s) { ++static_cast<Buffer*>(s->owner)->references; },
                  .release = release,
                  .references = nullptr,
                  .available = nullptr};
        p.rx = [](void* c, Segment** out, std::uint16_t n) {
            auto& queue = static_cast<TestPort*>(c)->to_switch;
            std::uint16_t k = 0;
            for (; k < n && !queue.empty(); ++k) {
                out[k] = queue.front();
                queue.pop_front();
            }
            return k;
        };
        p.tx = [](void* c, Segment* const* frames, std::uint16_t n) {
            auto& self = *static_cast<TestPort*>(c);
            const std::uint16_t k = std::min(n, self.room);
            self.room = static_cast<std::uint16_t>(self.room - k);
            for (std::uint16_t i = 0; i < k; ++i) {
                self.from_switch.emplace_back(frames[i]->frame,
                                              frames[i]->frame + frames[i]->length);
                release(nullptr, frames[i]);  // as a device that copies: its reference goes at once
            }
            return k;
        };
        p.link_up = [](void* c) { return static_cast<TestPort*>(c)->up; };
        return p;
    }
    static void release(void* /*context*/, Segment* segment) {
        auto* buffer = static_cast<Buffer*>(segment->owner);
        ASSERT_GT(buffer->references, 0U);
        if (--buffer->references == 0) {
            --g_alive;
            delete buffer;
        }
    }
    static inline int g_alive = 0;  ///< segments of all ports that are not freed
};

Mac station(std::uint8_t n) { return {{0x02, 0, 0, 0, 0, n}}; }

class SwitchTest : public ::testing::Test {
protected:
    static constexpr std::size_t kPorts = 4;

    void SetUp() override {
        TestPort::g_alive = 0;
        ports_.resize(kPorts);
    }
    void TearDown() override {
        switch_.reset();
        EXPECT_EQ(TestPort::g_alive, 0) << "segments leaked";
    }
    void make(const SwitchConfig& config = {}) {
        std::vector<Port> tables;
        for (TestPort& port : ports_)
            tables.push_back(port.port());
        switch_ = std::make_unique<Switch>(config, tables);
    }
    void send(std::size_t port, const Mac& from, const Mac& to,
              wire::FrameType type = wire::FrameType::kData) {
        auto* buffer = new Buffer;
        ++TestPort::g_alive;
        buffer->segment = {.frame = buffer->bytes, .length = 100, .capacity = 256, .owner = buffer};
        const wire::EthernetHeader ethernet{
            .destination = to, .source = from, .type = wire::kEtherTypeDefault};
        wire::Header header{};
        header.version_type = static_cast<std::uint8_t>(0x10 | static_cast<int>(type));
        header.length = 72;
        std::memcpy(buffer->bytes, &ethernet, sizeof ethernet);
        std::memcpy(buffer->bytes + sizeof ethernet, &header, sizeof header);
        ports_[port].to_switch.push_back(&buffer->segment);
    }
    void settle() {
        for (int i = 0; i < 100; ++i) {
            switch_->poll(now_);
            now_ += 10 * kMicrosecond;
        }
    }
    [[nodiscard]] std::vector<std::size_t> received() const {
        std::vector<std::size_t> counts;
        for (const TestPort& port : ports_)
            counts.push_back(port.from_switch.size());
        return counts;
    }
    [[nodiscard]] std::uint64_t count(std::size_t port, SwitchCounter counter) const {
        return switch_->counters(port)[static_cast<std::size_t>(counter)];
    }

    std::deque<TestPort> ports_;
    std::unique_ptr<Switch> switch_;
    Nanos now_ = kSecond;
};

using Counts = std::vector<std::size_t>;

TEST_F(SwitchTest, floods_the_unknown_then_forwards_to_the_one) {
    make();
    send(0, station(10), station(11));
    settle();
    EXPECT_EQ(received(), (Counts{0, 1, 1, 1}));
    send(1, station(11), station(10));
    settle();
    EXPECT_EQ(received(), (Counts{1, 1, 1, 1}));
    send(0, station(10), station(11));
    settle();
    EXPECT_EQ(received(), (Counts{1, 2, 1, 1}));
    EXPECT_EQ(count(0, SwitchCounter::flooded), 1U);
}

TEST_F(SwitchTest, one_multicast_payload_goes_in_once_and_out_to_all_others) {
    make();
    for (int i = 0; i < 5; ++i)
        send(2, station(10), {{0x01, 0, 0x5e, 1, 2, 3}}, wire::FrameType::kMcast);
    send(2, station(10), kBroadcastMac, wire::FrameType::kProbe);
    settle();
    EXPECT_EQ(received(), (Counts{6, 6, 0, 6}));
    EXPECT_EQ(count(2, SwitchCounter::in_mcast), 5U);
    EXPECT_EQ(count(2, SwitchCounter::in_control), 1U);
    EXPECT_EQ(count(2, SwitchCounter::in_payload_bytes), 5U * 72);
    EXPECT_EQ(count(0, SwitchCounter::out_mcast), 5U);
    EXPECT_EQ(count(0, SwitchCounter::out_control), 1U);
}

TEST_F(SwitchTest, sends_nothing_back_and_keeps_link_local_frames) {
    make();
    send(0, station(1), station(2));
    send(0, station(2), station(1));  // both live behind port 0
    send(0, station(1), {{0x01, 0x80, 0xc2, 0, 0, 0x0e}});
    settle();
    EXPECT_EQ(received(), (Counts{0, 1, 1, 1}));  // only the first, before station 2 was known
    EXPECT_EQ(count(0, SwitchCounter::filtered), 2U);
}

TEST_F(SwitchTest, loses_independently_for_each_receiver_of_a_flooded_frame) {
    make({.faults = {.loss = 0.2}, .seed = 5});
    for (int i = 0; i < 2000; ++i) {
        send(0, station(10), kBroadcastMac, wire::FrameType::kMcast);
        if (i % 16 == 15) settle();
    }
    settle();
    for (std::size_t port = 1; port < kPorts; ++port) {
        EXPECT_NEAR(static_cast<double>(received()[port]), 1600, 80);
        EXPECT_EQ(received()[port] + count(port, SwitchCounter::lost), 2000U);
    }
    EXPECT_NE(received()[1], received()[2]);
}

TEST_F(SwitchTest, the_same_seed_loses_the_same_frames) {
    std::vector<Counts> runs;
    for (int run = 0; run < 2; ++run) {
        ports_.clear();
        ports_.resize(kPorts);
        make({.faults = {.loss = 0.2, .duplicate = 0.1, .reorder = 0.1}, .seed = 77});
        for (int i = 0; i < 100; ++i)
            send(0, station(10), kBroadcastMac);
        settle();
        runs.push_back(received());
    }
    EXPECT_EQ(runs[0], runs[1]);
}

TEST_F(SwitchTest, duplicates_and_reorders) {
    make({.faults = {.duplicate = 1}});
    send(0, station(10), kBroadcastMac);
    settle();
    EXPECT_EQ(received(), (Counts{0, 2, 2, 2}));
    make({.faults = {.reorder = 0.5}, .seed = 3});
    for (std::uint8_t i = 0; i < 30; ++i)
        send(0, station(i), station(200));
    settle();
    const auto& got = ports_[3].from_switch;
    ASSERT_EQ(got.size(), 32U);
    bool overtaken = false;
    for (std::size_t i = 3; i < got.size(); ++i)
        overtaken |= got[i][11] < got[i - 1][11];
    EXPECT_TRUE(overtaken);
}

TEST_F(SwitchTest, a_station_that_takes_nothing_holds_up_nobody) {
    make({.queue_frames_max = 64});
    ports_[1].room = 0;
    for (int i = 0; i < 200; ++i)
        send(0, station(10), kBroadcastMac);
    settle();
    EXPECT_EQ(received(), (Counts{0, 0, 200, 200}));
    EXPECT_EQ(count(1, SwitchCounter::dropped_full), 200U - 64);
    ports_[1].room = 1000;
    settle();
    EXPECT_EQ(received()[1], 64U);
}

TEST_F(SwitchTest, a_port_that_goes_down_drops_and_is_forgotten) {
    make();
    send(1, station(11), kBroadcastMac);
    settle();
    ports_[1].up = false;
    now_ += 10 * kMillisecond;
    switch_->poll(now_);
    send(0, station(10), station(11));
    settle();
    EXPECT_EQ(received(),
              (Counts{1, 0, 2, 2}));  // flooded again: the station may come back elsewhere
    EXPECT_EQ(count(1, SwitchCounter::dropped_down), 1U);
}

}  // namespace
}  // namespace ulc::ether_switch
