// SPDX-License-Identifier: BSD-3-Clause
// Tests how many frames the NIC's ring holds: few, so that urgent frames do not wait behind bulk,
// and enough to keep the wire busy. Includes drivers that do not report when a frame is sent, or
// report it late. Virtual time, a wire of 100 Mb/s.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <optional>

#include "engine/tx.h"

namespace ulc::engine {
namespace {

constexpr std::uint32_t kFrameOctets = 1514;
constexpr Nanos kFrameTime = (kFrameOctets + 24) * 80;  // 100 Mb/s

/// A NIC with a ring of 256 that sends at the link's rate, and reports sent frames in batches.
struct FakeNic {
    std::uint32_t batch = 1;  ///< frames that are reported together
    Nanos stands_until = 0;   ///< the wire carries nothing before
    Nanos report_every = 0;   ///< an interrupt reports sent frames at these intervals
    Nanos reports_at = 0;
    Nanos now = 0;
    Nanos free_at = 0;
    std::deque<Nanos> leaves;  ///< time of departure of each frame not reported yet
    std::uint64_t sent = 0;
    std::uint32_t most_waiting = 0;

    static std::uint16_t tx(void* context, Segment* const* /*frames*/, std::uint16_t n) {
        auto& self = *static_cast<FakeNic*>(context);
        std::uint16_t taken = 0;
        for (; taken < n && self.leaves.size() < 256; ++taken) {
            self.free_at = std::max({self.free_at, self.now, self.stands_until}) + kFrameTime;
            self.leaves.push_back(self.free_at);
            ++self.sent;
        }
        self.most_waiting = std::max(self.most_waiting, self.waiting());
        return taken;
    }
    [[nodiscard]] std::uint32_t waiting() const {
        return static_cast<std::uint32_t>(
            std::count_if(leaves.begin(), leaves.end(), [&](Nanos at) { return at > now; }));
    }
    static std::uint32_t pending(void* context) {
        auto& self = *static_cast<FakeNic*>(context);
        if (self.now < self.reports_at) return static_cast<std::uint32_t>(self.leaves.size());
        self.reports_at = self.now + self.report_every;
        while (self.leaves.size() >= self.batch && self.leaves[self.batch - 1] <= self.now)
            self.leaves.erase(self.leaves.begin(), self.leaves.begin() + self.batch);
        return static_cast<std::uint32_t>(self.leaves.size());
    }
};

class Rig {
public:
    explicit Rig(std::uint32_t batch, std::uint64_t rate = 100'000'000, bool half_duplex = false,
                 Nanos pending_time = PortInfo{}.tx_pending_time) {
        port_.info.tx_pending_time = pending_time;
        nic.batch = batch;
        port_.context = &nic;
        port_.info.link_bits_per_second = rate;
        port_.info.half_duplex = half_duplex;
        port_.info.tx_ring_frames = 256;
        port_.tx = FakeNic::tx;
        port_.tx_pending = FakeNic::pending;
        frame_.length = kFrameOctets;
        transmitter_.emplace(port_, departures_, counters);
    }
    /// Runs an engine with endless bulk, one round each 10 us.
    void run(Nanos span) {
        for (const Nanos end = nic.now + span; nic.now < end; nic.now += 10 * kMicrosecond) {
            transmitter_->begin_round(nic.now);
            while (transmitter_->may_push())
                transmitter_->push(&frame_);
            transmitter_->flush();
        }
    }
    void pause(Nanos span) { nic.now += span; }

    FakeNic nic;
    Counters counters;

private:
    Port port_;
    Segment frame_{};
    urtp::Departures departures_{};
    std::optional<Transmitter> transmitter_;
};

TEST(Transmitter, keeps_the_wire_busy_with_two_frames_in_the_ring) {
    Rig rig(1);
    rig.run(100 * kMillisecond);
    EXPECT_GE(rig.nic.sent, 100 * kMillisecond / kFrameTime);
    EXPECT_LE(rig.nic.most_waiting, 2U);
    EXPECT_EQ(rig.counters.get(Counter::tx_reports_missing), 0U);
}

TEST(Transmitter, goes_by_the_clock_when_a_driver_reports_in_batches) {
    for (const std::uint32_t batch : {4U, 32U, 64U, 255U}) {
        Rig rig(batch);
        rig.run(100 * kMillisecond);
        EXPECT_GE(rig.nic.sent, 90 * kMillisecond / kFrameTime) << batch;
        EXPECT_LE(rig.nic.most_waiting, 3U)
            << "urgent frames are stuck behind few still; " << batch;
        EXPECT_EQ(rig.counters.get(Counter::tx_reports_missing), 1U) << batch;
    }
}

TEST(Transmitter, goes_on_when_a_driver_of_unknown_rate_reports_in_batches) {
    Rig rig(64, 0);
    rig.run(100 * kMillisecond);
    EXPECT_GE(rig.nic.sent, 90 * kMillisecond / kFrameTime);
}

// A NIC driver of the kernel frees sent frames in interrupts that are delayed. Two frames at a time
// would leave the wire idle between two interrupts.
TEST(Transmitter, keeps_the_wire_busy_when_sent_frames_are_reported_each_millisecond) {
    const auto sent_within = [](Nanos pending_time) {
        Rig rig(1, 100'000'000, false, pending_time);
        rig.nic.report_every = kMillisecond;
        rig.run(100 * kMillisecond);
        EXPECT_LE(rig.nic.most_waiting, pending_time / kFrameTime + 2);
        EXPECT_EQ(rig.counters.get(Counter::tx_reports_missing), 0U);
        return rig.nic.sent;
    };
    EXPECT_GE(sent_within(2 * kMillisecond), 97 * kMillisecond / kFrameTime);
    EXPECT_LE(sent_within(PortInfo{}.tx_pending_time), 50 * kMillisecond / kFrameTime);
}

TEST(Transmitter, waits_for_collisions_on_a_hub) {
    Rig rig(1, 100'000'000, true);
    rig.run(kMillisecond);
    rig.nic.stands_until =
        rig.nic.now + 40 * kMillisecond;  // 16 collisions, the longest back-off each time
    rig.nic.leaves.back() = rig.nic.free_at = rig.nic.stands_until;
    rig.run(60 * kMillisecond);
    EXPECT_LE(rig.nic.most_waiting, 2U);
    EXPECT_EQ(rig.counters.get(Counter::tx_reports_missing), 0U);
}

TEST(Transmitter, takes_its_own_pause_for_no_silence_of_the_port) {
    Rig rig(1);
    rig.run(kMillisecond);
    rig.pause(kSecond);
    rig.run(kMillisecond);
    EXPECT_EQ(rig.counters.get(Counter::tx_reports_missing), 0U);
}

TEST(Transmitter, believes_a_port_again_that_reports_frame_by_frame_after_its_link_was_down) {
    Rig rig(1);
    rig.run(kMillisecond);
    rig.nic.stands_until = rig.nic.now + 300 * kMillisecond;
    for (Nanos& at : rig.nic.leaves)
        at = rig.nic.stands_until;
    rig.nic.free_at = rig.nic.stands_until;
    rig.run(290 * kMillisecond);
    EXPECT_EQ(rig.counters.get(Counter::tx_reports_missing), 1U);
    rig.run(60 * kMillisecond);  // frames that entered the ring meanwhile drain
    rig.nic.most_waiting = 0;
    rig.run(kSecond);
    EXPECT_LE(rig.nic.most_waiting, 2U);
    EXPECT_EQ(rig.counters.get(Counter::tx_reports_missing), 1U);
}

/// A port whose frames have left when tx() returns, and that takes only the next `takes` frames.
class Immediate : public ::testing::Test {
protected:
    Immediate() {
        port_.context = this;
        port_.info.tx_ring_frames = 64;
        port_.tx = [](void* context, Segment* const*, std::uint16_t n) {
            auto& self = *static_cast<Immediate*>(context);
            const auto taken = static_cast<std::uint16_t>(std::min<std::uint32_t>(n, self.takes_));
            self.takes_ -= taken;
            return taken;
        };
        frame_.length = 60;
        transmitter_.emplace(port_, departures_, counters_);
        transmitter_->begin_round(++now_);
    }
    [[nodiscard]] std::uint64_t sent() const { return counters_.get(Counter::tx_frames); }

    std::uint32_t takes_ = UINT32_MAX;
    Nanos now_ = 0;
    Port port_;
    Counters counters_;
    Segment frame_{};
    urtp::Departures departures_{};
    std::optional<Transmitter> transmitter_;
};

TEST_F(Immediate, has_nothing_pending_once_the_port_took_a_frame) {
    ASSERT_TRUE(transmitter_->may_send_one());
    const std::uint32_t ticket = departures_.next;
    transmitter_->send_one(&frame_);
    EXPECT_EQ(departures_.left_at(ticket), now_);
    EXPECT_TRUE(transmitter_->idle());
    for (int n = 0; n < 3; ++n)
        transmitter_->push(&frame_);
    EXPECT_FALSE(transmitter_->idle()) << "they wait for flush()";
    transmitter_->push_last(&frame_);
    EXPECT_TRUE(transmitter_->idle());
    EXPECT_EQ(sent(), 5U);
    EXPECT_EQ(departures_.next, ticket + 5);
    transmitter_->begin_round(++now_);
    EXPECT_TRUE(transmitter_->may_send_one());
}

TEST_F(Immediate, keeps_a_frame_that_the_port_does_not_take) {
    takes_ = 0;
    transmitter_->send_one(&frame_);
    EXPECT_TRUE(transmitter_->kept());
    EXPECT_FALSE(transmitter_->idle());
    EXPECT_FALSE(transmitter_->may_send_one());
    EXPECT_EQ(sent(), 0U);
    EXPECT_EQ(counters_.get(Counter::tx_ring_full), 1U);
    transmitter_->begin_round(++now_);
    EXPECT_TRUE(transmitter_->kept());
    takes_ = 1;
    transmitter_->begin_round(++now_);
    EXPECT_FALSE(transmitter_->kept());
    EXPECT_EQ(sent(), 1U);
    transmitter_->begin_round(++now_);
    EXPECT_TRUE(transmitter_->may_send_one());
}

TEST_F(Immediate, tells_a_tap_what_it_offers_and_how_much_of_it_the_port_took) {
    std::atomic<std::uint64_t> taken = 0;
    std::uint32_t offered = 0;
    PortTap tap;
    tap.context = &offered;
    tap.taken = &taken;
    tap.on_offered = [](void* context, Segment* const*, std::uint16_t n) {
        *static_cast<std::uint32_t*>(context) += n;
    };
    port_.tap = &tap;
    transmitter_.emplace(port_, departures_, counters_);
    transmitter_->begin_round(++now_);
    takes_ = 2;
    for (int n = 0; n < 3; ++n)
        transmitter_->push(&frame_);
    transmitter_->flush();
    EXPECT_EQ(offered, 3U);
    EXPECT_EQ(taken.load(), 2U);
    takes_ = 2;
    transmitter_->begin_round(++now_);  // offers the third again
    EXPECT_EQ(offered, 4U);
    EXPECT_EQ(taken.load(), 3U);
    transmitter_->send_one(&frame_);
    EXPECT_EQ(offered, 5U);
    EXPECT_EQ(taken.load(), 4U);
    EXPECT_EQ(sent(), 4U);
}

}  // namespace
}  // namespace ulc::engine
