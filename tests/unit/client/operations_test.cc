// SPDX-License-Identifier: BSD-3-Clause
// Tests of the numbers of collective operations, and of the signatures by which members detect that
// they disagree.
#include <gtest/gtest.h>

#include <string>

#include "client/groups/operations.h"
#include "client/groups/signature.h"

namespace ulc::client {
namespace {

// C-1, C-2
TEST(operations, none_begins_that_would_share_its_number_with_one_under_way) {
    Operations operations;
    std::uint32_t number = 0;
    for (std::uint32_t i = 0; i < Operations::kAheadMax; ++i) {
        ASSERT_TRUE(operations.begin(number));
        ASSERT_EQ(number, i);
    }
    EXPECT_FALSE(operations.begin(number));
    operations.end(1);
    EXPECT_FALSE(operations.begin(number)) << "0 is the oldest";
    operations.end(0);
    ASSERT_TRUE(operations.begin(number));
    EXPECT_EQ(number, Operations::kAheadMax);
    ASSERT_TRUE(operations.begin(number)) << "1 was over too";
    EXPECT_FALSE(operations.begin(number));
}

TEST(operations, know_whether_the_one_before_is_over) {
    Operations operations;
    std::uint32_t number = 0;
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(operations.begin(number));
    EXPECT_FALSE(operations.ended_before(0)) << "there is none";
    EXPECT_FALSE(operations.ended_before(1));
    operations.end(1);
    EXPECT_TRUE(operations.ended_before(2));
    EXPECT_FALSE(operations.ended_before(1));
    operations.end(0);
    EXPECT_TRUE(operations.ended_before(1));
    operations.end(2);
    EXPECT_TRUE(operations.ended_before(3));
    operations.end(2);  // repeated, or of a group that was made again: no effect
    ASSERT_TRUE(operations.begin(number));
    EXPECT_EQ(number, 3U);
}

TEST(operations, recall_what_was_given_to_the_last_ones) {
    Operations operations;
    std::uint32_t number = 0;
    EXPECT_EQ(operations.recall(0), nullptr) << "none has begun";
    for (std::uint32_t i = 0; i < 40; ++i)
        ASSERT_TRUE(operations.begin(number, {{}, i, 0}));
    EXPECT_EQ(operations.recall(40), nullptr);
    EXPECT_EQ(operations.recall(UINT32_MAX), nullptr);
    for (std::uint32_t i = 24; i < 40; ++i)
        EXPECT_EQ(operations.recall(i)->arguments, i);
    EXPECT_EQ(operations.recall(23), nullptr) << "too long ago";
}

// C-3
TEST(agreement, says_what_the_signature_does_not_tell) {
    const Signature signature(3, 2, 100, 7, 4096);
    const Agreement mine{signature, 1, 2};
    EXPECT_EQ(mine.unlike(mine), nullptr);
    EXPECT_STREQ(mine.unlike({signature, 1, 3}), "took another algorithm");
    EXPECT_STREQ(mine.unlike({signature, 2, 2}), "gave another root, type, operator or length");
    EXPECT_STREQ(mine.unlike({Signature(4, 2, 100, 7, 4096), 2, 3}), "called another operation");
    EXPECT_EQ(mine.unlike({Signature(), 2, 3}), nullptr) << "that one checks nothing";
    EXPECT_EQ(Agreement().unlike(mine), nullptr);
}

// C-3, C-4
TEST(signature, says_which_argument_differs) {
    const Signature mine(3, 2, 100, 7, 4096);
    const auto unlike = [&](Signature other) {
        const char* what = mine.unlike(other);
        return std::string(what == nullptr ? "" : what);
    };
    EXPECT_EQ(unlike(mine), "");
    EXPECT_EQ(unlike(Signature::of_tag(~Signature::kMask | mine.bits())), "");
    EXPECT_EQ(unlike(Signature::of_tag(mine.bits() | abi::kTagLast)), "") << "not of the operation";
    EXPECT_EQ(unlike(Signature(4, 2, 100, 7, 4096)), "called another operation");
    EXPECT_EQ(unlike(Signature(3, 1, 100, 7, 4096)), "gave another root");
    const char* type = "gave another type, operator or length, or took another algorithm";
    EXPECT_EQ(unlike(Signature(3, 2, 101, 7, 4096)), type);
    EXPECT_EQ(unlike(Signature(3, 2, 100, 8, 4096)), type);
    EXPECT_EQ(unlike(Signature(3, 2, 100, 7, 4097)), "gave another length");
    EXPECT_EQ(unlike(Signature::broken()), Signature::kToldOf);
    EXPECT_EQ(unlike(Signature()), "") << "that one checks nothing";
    EXPECT_EQ(Signature().unlike(mine), nullptr);
    EXPECT_EQ(Signature().unlike(Signature::broken()), nullptr);
}

TEST(signature, never_looks_alike_for_two_reductions) {
    for (std::uint32_t mine = 0; mine < 256; ++mine) {
        for (std::uint32_t other = 0; other < mine; ++other) {
            const auto of = [](std::uint32_t reduction) {
                return Signature(10, 0, static_cast<std::uint8_t>(reduction), 12345, 40);
            };
            ASSERT_NE(of(mine).unlike(of(other)), nullptr) << mine << ' ' << other;
        }
    }
}

unsigned alike_of_1000(Signature (*of)(std::uint32_t)) {
    unsigned alike = 0;
    for (std::uint32_t n = 1; n <= 1000; ++n)
        alike += of(0).unlike(of(n)) == nullptr ? 1 : 0;
    return alike;
}

TEST(signature, looks_alike_for_few_lengths_or_algorithms_that_differ) {
    const unsigned lengths =
        alike_of_1000([](std::uint32_t n) { return Signature(1, 0, 0, 0, n); });
    EXPECT_GT(lengths, 60U);
    EXPECT_LT(lengths, 200U) << "1 in 8 expected";
    EXPECT_LT(alike_of_1000([](std::uint32_t n) { return Signature(1, 0, 0, n, 0); }), 10U)
        << "1 in 256 expected";
}

}  // namespace
}  // namespace ulc::client
