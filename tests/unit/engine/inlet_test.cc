// SPDX-License-Identifier: BSD-3-Clause
// Tests which submissions of a client wait in the ring.
#include "endpoint/inlet.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

namespace ulc::endpoint {
namespace {

constexpr std::uint32_t kSlots = 8;

class InletTest : public ::testing::TestWithParam<std::uint32_t> {
protected:
    abi::SubmissionRecord message_to(StreamId stream) {
        abi::SubmissionRecord record{};
        record.kind = abi::SubmitKind::kSend;
        record.flags = abi::kSubmitInline;
        record.stream = stream;
        record.cookie = ++cookie_;
        return record;
    }
    void submit(const abi::SubmissionRecord& record) { ASSERT_TRUE(client_.push(record)); }

    std::array<abi::SubmissionRecord, kSlots> ring_{};
    std::atomic<std::uint32_t> consumed_{GetParam()};
    abi::SubmissionProducer client_{ring_.data(), kSlots, &consumed_, GetParam()};
    Inlet inlet_{abi::SubmissionConsumer(ring_.data(), kSlots, &consumed_, GetParam())};

private:
    std::uint32_t cookie_ = 0;
};

// The numbers of records wrap in the middle of a test, or a lap ends there.
INSTANTIATE_TEST_SUITE_P(Starts, InletTest, ::testing::Values(0, 5, UINT32_MAX - 2));

TEST_P(InletTest, messages_to_one_rank_wait_and_those_that_come_behind_them) {
    for (int n = 0; n < 3; ++n)
        submit(message_to(4));
    ASSERT_TRUE(inlet_.wait(4));
    EXPECT_TRUE(inlet_.waits());
    EXPECT_EQ(inlet_.stream(), 4U);
    EXPECT_FALSE(inlet_.ready()) << "nothing new has come";
    EXPECT_FALSE(inlet_.empty());
    submit(message_to(4));
    EXPECT_TRUE(inlet_.ready());
    EXPECT_TRUE(inlet_.wait_on());
    EXPECT_FALSE(inlet_.ready());
    inlet_.retry();
    EXPECT_TRUE(inlet_.ready());
    for (std::uint32_t n = 1; n <= 4; ++n) {
        ASSERT_TRUE(inlet_.ready());
        EXPECT_EQ(inlet_.peek().cookie, n);
        inlet_.pop();
    }
    EXPECT_TRUE(inlet_.empty());
}

TEST_P(InletTest, nothing_waits_before_a_record_that_may_go) {
    submit(message_to(4));
    submit(message_to(5));
    EXPECT_FALSE(inlet_.wait(4)) << "a message to another rank";
    EXPECT_FALSE(inlet_.waits());
    EXPECT_EQ(inlet_.peek().cookie, 1U) << "the first is next";
    inlet_.pop();
    ASSERT_TRUE(inlet_.wait(5));
    abi::SubmissionRecord other = message_to(5);
    other.kind = abi::SubmitKind::kAddGroup;
    submit(other);
    EXPECT_FALSE(inlet_.wait_on());
    EXPECT_FALSE(inlet_.waits());
    EXPECT_EQ(inlet_.peek().cookie, 2U);
}

TEST_P(InletTest, only_whole_messages_that_ask_for_no_more_than_an_answer_wait) {
    const auto waits = [this](const abi::SubmissionRecord& record) {
        submit(record);
        const bool result = inlet_.wait(4);
        inlet_.retry();
        inlet_.pop();
        return result;
    };
    abi::SubmissionRecord record = message_to(4);
    constexpr std::uint8_t kWhole = abi::kSubmitFirst | abi::kSubmitLast;
    constexpr std::uint8_t kMay[] = {0, abi::kSubmitHasTag, abi::kSubmitNotify};
    for (const std::uint8_t more : kMay) {
        record.flags = kWhole | more;
        EXPECT_TRUE(waits(record)) << unsigned{more};
    }
    for (const std::uint8_t more :
         {abi::kSubmitHasSubset, abi::kSubmitNotifyAcked, abi::kSubmitDirect}) {
        record.flags = kWhole | more;
        EXPECT_FALSE(waits(record)) << unsigned{more};
    }
    record.flags = abi::kSubmitFirst;
    EXPECT_FALSE(waits(record)) << "a part of a message";
    record = message_to(kGroupBit | 4);
    submit(record);
    EXPECT_FALSE(inlet_.wait(kGroupBit | 4)) << "a multicast";
}

TEST_P(InletTest, records_are_looked_at_again_once_those_before_them_are_taken) {
    for (int n = 0; n < 3; ++n)
        submit(message_to(4));
    ASSERT_TRUE(inlet_.wait(4));
    inlet_.retry();
    for (int n = 0; n < 3; ++n)
        inlet_.pop();
    submit(message_to(4));
    submit(message_to(6));
    EXPECT_FALSE(inlet_.wait(4));
    abi::SubmissionRecord taken;
    inlet_.take(taken);
    EXPECT_EQ(taken.cookie, 4U);
    EXPECT_TRUE(inlet_.wait(6));
    EXPECT_EQ(inlet_.stream(), 6U);
}

TEST_P(InletTest, a_full_ring_waits_while_it_moves) {
    for (std::uint32_t n = 0; n < kSlots; ++n)
        submit(message_to(4));
    EXPECT_TRUE(inlet_.wait(4));
    EXPECT_FALSE(inlet_.ready());
    inlet_.retry();
    EXPECT_FALSE(inlet_.wait(4)) << "its client may have another record";
    inlet_.pop();
    EXPECT_TRUE(inlet_.wait(4)) << "it moves";
}

TEST_P(InletTest, marks_of_the_next_lap_make_no_records_of_a_full_ring) {
    for (std::uint32_t n = 0; n < kSlots; ++n)
        submit(message_to(4));
    ASSERT_TRUE(inlet_.wait(4));
    for (std::uint32_t n = 0; n < kSlots; ++n)
        ring_[(GetParam() + n) % kSlots].mark = abi::mark_of(GetParam() + kSlots + n, kSlots);
    EXPECT_FALSE(inlet_.ready());
    EXPECT_TRUE(inlet_.wait_on());
    EXPECT_TRUE(inlet_.is_full());
}

TEST(Inlet, a_look_at_many_records_is_bounded) {
    constexpr std::uint32_t kMany = 256;
    constexpr std::uint32_t kCome = 3 * Inlet::kLooks - 1;
    std::array<abi::SubmissionRecord, kMany> ring{};
    std::atomic<std::uint32_t> consumed{0};
    abi::SubmissionProducer client{ring.data(), kMany, &consumed, 0};
    Inlet inlet{abi::SubmissionConsumer(ring.data(), kMany, &consumed, 0)};
    abi::SubmissionRecord record{};
    record.kind = abi::SubmitKind::kSend;
    record.flags = abi::kSubmitInline;
    record.stream = 4;
    for (std::uint32_t n = 0; n < kCome; ++n)
        ASSERT_TRUE(client.push(record));
    ASSERT_TRUE(inlet.wait(4));
    int looks = 1;
    for (; inlet.ready(); ++looks)
        ASSERT_TRUE(inlet.wait_on());
    EXPECT_EQ(looks, 3);
}

}  // namespace
}  // namespace ulc::endpoint
