// SPDX-License-Identifier: BSD-3-Clause
// Tests of inquiries about collective operations, as the libulc of another rank, or a process that
// imitates it, sends them.
#include "client/groups/inquiry.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "client/p2p/tags.h"
#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

constexpr Agreement kMine{Signature(1, 0, 0, 0, 100), 11, 12};

class Inquiries : public ClientTest {
protected:
    void SetUp() override {
        engine.form(1, 4);
        ASSERT_TRUE(operations().begin(number_, kMine));
    }
    Operations& operations() { return ep->groups().find(kWorld)->operations; }
    [[nodiscard]] Inquiry other() const {
        Inquiry inquiry{};
        inquiry.group = kWorld;
        inquiry.number = number_;
        inquiry.signature = static_cast<std::uint32_t>(Signature(1, 2, 0, 0, 100).bits());
        inquiry.arguments = 13;
        inquiry.algorithm = 12;
        return inquiry;
    }
    /// Returns true if the inquiry was answered.
    bool hear(const Inquiry& inquiry, std::size_t octets = sizeof(Inquiry)) {
        engine.deliver_inline(2, kTagInquiry, {reinterpret_cast<const char*>(&inquiry), octets});
        EXPECT_EQ(ep->poll(), 1);
        answer_ = engine.take_any();
        return answer_.has_value();
    }
    [[nodiscard]] bool told() { return operations().disagreement.what != nullptr; }

    std::uint32_t number_ = 0;
    std::optional<abi::SubmissionRecord> answer_;
};

// C-13, C-15
TEST_F(Inquiries, of_another_mind_are_answered_with_the_own_arguments_and_remembered) {
    EXPECT_TRUE(hear(other()));
    EXPECT_STREQ(operations().disagreement.what, "gave another root");
    EXPECT_EQ(operations().disagreement.rank, 2);
    EXPECT_EQ(operations().disagreement.number, number_);
    ASSERT_EQ(answer_->stream, 2U);
    EXPECT_EQ(answer_->tag, kTagInquiry);
    Inquiry answer;
    ASSERT_EQ(answer_->inline_length, sizeof answer);
    std::memcpy(&answer, answer_->body.inline_octets, sizeof answer);
    EXPECT_EQ(answer.signature, kMine.signature.bits());
    EXPECT_EQ(answer.arguments, kMine.arguments);
    EXPECT_EQ(answer.answer, 1U);
}

// C-15
TEST_F(Inquiries, that_are_answers_are_not_answered) {
    Inquiry answer = other();
    answer.answer = 1;
    EXPECT_FALSE(hear(answer));
    EXPECT_TRUE(told());
}

// C-16
TEST_F(Inquiries, of_the_same_mind_or_ahead_of_us_are_no_error) {
    Inquiry same = other();
    same.signature = static_cast<std::uint32_t>(kMine.signature.bits());
    same.arguments = kMine.arguments;
    Inquiry ahead = other();
    ahead.number = number_ + 1;
    Inquiry unchecked = other();
    unchecked.signature = 0;
    for (const Inquiry& inquiry : {same, ahead, unchecked})
        EXPECT_FALSE(hear(inquiry));
    EXPECT_FALSE(told());
}

// C-13
TEST_F(Inquiries, that_are_malformed_are_dropped) {
    Inquiry no_group = other();
    no_group.group = kWorld + 1;
    Inquiry no_signature = other();
    no_signature.signature = static_cast<std::uint32_t>(Signature::kMask) + 1;
    Inquiry no_answer = other();
    no_answer.answer = 2;
    for (const Inquiry& inquiry : {no_group, no_signature, no_answer})
        EXPECT_FALSE(hear(inquiry));
    EXPECT_FALSE(hear(other(), sizeof(Inquiry) - 1));
    EXPECT_FALSE(told());
    EXPECT_EQ(ep->ended(), 0);
}

}  // namespace
}  // namespace ulc::client
