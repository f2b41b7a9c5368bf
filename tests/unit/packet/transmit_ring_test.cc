// SPDX-License-Identifier: BSD-3-Clause
// The transmit ring of a packet socket over a scripted kernel, which reads the slots as Linux does:
// in order, and it stays at a slot that it refuses. Tests the pace of the tries, the time after
// which a frame is given up, and that frames behind it leave.
#include "packet/transmit_ring.h"

#include <gtest/gtest.h>
#include <linux/if_packet.h>

#include <cstring>
#include <vector>

namespace ulc::packet {
namespace {

using Answer = TransmitRing::Answer;
constexpr std::uint32_t kSlots = 64;
constexpr std::uint32_t kSlotOctets = 16384;
constexpr std::uint32_t kShort = 100;
constexpr std::uint32_t kLong = 9014;

class TransmitRings : public testing::Test {
protected:
    TransmitRings() : memory_(kSlots * kSlotOctets) {
        ring_.use(memory_.data(), kSlotOctets, kSlots,
                  {this, [](void* context) {
                       return static_cast<TransmitRings*>(context)->read_ring();
                   }});
    }
    tpacket2_hdr& slot(std::uint32_t n) {
        return *reinterpret_cast<tpacket2_hdr*>(memory_.data() + (n % kSlots) * kSlotOctets);
    }
    /// One call of sendto(). A frame that the kernel takes has left at once.
    Answer read_ring() {
        ++calls_;
        if (busy_) return Answer::kBusy;
        while (slot(kernel_).tp_status == TP_STATUS_SEND_REQUEST) {
            tpacket2_hdr& next = slot(kernel_);
            if (next.tp_len < 14) {
                ++skipped_;
            } else if (next.tp_len >= refuses_from_ || full_) {
                return Answer::kRefused;
            } else {
                taken_.push_back(next.tp_len);
            }
            next.tp_status = TP_STATUS_AVAILABLE;
            ++kernel_;
        }
        return Answer::kLooked;
    }
    void send(std::uint32_t length) {
        ASSERT_NE(ring_.slot(), nullptr);
        ring_.write(length);
        ring_.push();
    }
    /// The port's rounds, 10 us apart, for that time.
    void run(Nanos time) {
        for (const Nanos end = now_ + time; now_ < end; now_ += 10 * kMicrosecond)
            if (ring_.in_use() > 0 && ring_.must_push()) ring_.retry(now_);
    }
    std::uint64_t unsendable() const { return ring_.counts().unsendable; }

    std::vector<std::byte> memory_;
    TransmitRing ring_;
    Nanos now_ = kSecond;
    std::uint32_t kernel_ = 0;  ///< its head
    std::uint32_t refuses_from_ = UINT32_MAX;
    bool full_ = false;  ///< its queue
    bool busy_ = false;  ///< the interface is down
    unsigned calls_ = 0;
    unsigned skipped_ = 0;
    std::vector<std::uint32_t> taken_;
};

TEST_F(TransmitRings, a_frame_that_no_try_sends_is_given_up_and_those_behind_it_leave) {
    refuses_from_ = 1515;
    send(kLong);
    for (int n = 0; n < 10; ++n)
        send(kShort);
    EXPECT_TRUE(taken_.empty());
    run(2 * TransmitRing::kPatience);
    EXPECT_EQ(taken_, std::vector<std::uint32_t>(10, kShort));
    EXPECT_EQ(unsendable(), 1U);
    EXPECT_EQ(skipped_, 1U);
    EXPECT_EQ(ring_.in_use(), 0U);
    EXPECT_FALSE(ring_.must_push());
}

TEST_F(TransmitRings, a_refused_frame_is_tried_in_each_round_and_after_a_millisecond_at_a_pace) {
    full_ = true;
    send(kShort);
    run(TransmitRing::kUnpaced);
    EXPECT_GE(calls_, 90U);
    const unsigned before = calls_;
    run(10 * kMillisecond);
    EXPECT_GE(calls_ - before, 30U);
    EXPECT_LE(calls_ - before, 42U) << "every 250 us";
    send(kShort);
    EXPECT_LE(calls_ - before, 42U) << "a further frame waits for its turn";
    full_ = false;
    run(kMillisecond);
    EXPECT_EQ(taken_.size(), 2U) << "a queue that was full delays frames, and loses none";
    EXPECT_EQ(unsendable(), 0U);
}

TEST_F(TransmitRings, further_frames_as_long_are_given_up_at_once_and_shorter_ones_pass) {
    refuses_from_ = 1515;
    send(kLong);
    run(2 * TransmitRing::kPatience);
    ASSERT_EQ(unsendable(), 1U);
    for (int n = 0; n < 30; ++n) {
        send(kLong);
        send(kShort);
    }
    const unsigned before = calls_;
    run(kMillisecond);
    EXPECT_EQ(taken_.size(), 30U);
    EXPECT_EQ(unsendable(), 31U);
    EXPECT_EQ(skipped_, 31U);
    EXPECT_LE(calls_ - before, 34U) << "one refusal a frame";
    EXPECT_EQ(ring_.in_use(), 0U);
}

TEST_F(TransmitRings, a_length_that_passes_again_has_its_time_again) {
    refuses_from_ = 1515;
    send(kLong);
    run(2 * TransmitRing::kPatience);
    ASSERT_EQ(unsendable(), 1U);
    refuses_from_ = UINT32_MAX;
    send(kLong);
    EXPECT_EQ(taken_, std::vector<std::uint32_t>{kLong}) << "it gets a try";
    full_ = true;
    send(kLong);
    run(10 * kMillisecond);
    full_ = false;
    run(kMillisecond);
    EXPECT_EQ(taken_.size(), 2U);
    EXPECT_EQ(unsendable(), 1U);
}

TEST_F(TransmitRings, no_frame_is_given_up_while_the_interface_is_down) {
    busy_ = true;
    send(kShort);
    run(10 * kMillisecond);
    EXPECT_LE(calls_, 150U) << "at a pace";
    run(kSecond);
    busy_ = false;
    run(kMillisecond);
    EXPECT_EQ(taken_, std::vector<std::uint32_t>{kShort});
    EXPECT_EQ(unsendable(), 0U);
}

TEST_F(TransmitRings, a_process_that_did_not_run_has_not_tried) {
    full_ = true;
    send(kShort);
    run(20 * kMicrosecond);
    now_ += 10 * TransmitRing::kPatience;
    run(20 * kMicrosecond);
    EXPECT_EQ(unsendable(), 0U);
    full_ = false;
    run(kMillisecond);
    EXPECT_EQ(taken_.size(), 1U);
}

TEST_F(TransmitRings, a_full_ring_of_frames_that_cannot_leave_empties) {
    refuses_from_ = 1515;
    while (ring_.slot() != nullptr)
        send(kLong);
    EXPECT_EQ(ring_.in_use(), kSlots);
    run(2 * TransmitRing::kPatience);
    EXPECT_EQ(ring_.in_use(), 0U);
    EXPECT_EQ(unsendable(), kSlots);
    send(kShort);
    EXPECT_EQ(taken_, std::vector<std::uint32_t>{kShort});
}

// The kernel took some frames of a call before it refused one.
TEST_F(TransmitRings, the_time_of_a_frame_begins_when_the_kernel_comes_to_it) {
    full_ = true;
    for (int n = 0; n < 4; ++n)
        send(kShort);
    for (int n = 0; n < 4; ++n) {  // one leaves every 40 ms, as on a slow link
        run(40 * kMillisecond);
        slot(kernel_++).tp_status = TP_STATUS_AVAILABLE;
    }
    EXPECT_EQ(unsendable(), 0U);
    EXPECT_EQ(ring_.in_use(), 0U);
}

}  // namespace
}  // namespace ulc::packet
