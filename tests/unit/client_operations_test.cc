// The numbers of collective operations, and the signatures by which members find that they disagree.
#include <gtest/gtest.h>

#include <string>

#include "client/operations.h"
#include "client/signature.h"

namespace ulc::client {
namespace {

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
    operations.end(2);  // again, or of a group that was made anew: nothing
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

TEST(agreement, says_what_the_signature_does_not_tell) {
    const Signature signature(3, 2, 100, 4096);
    const Agreement mine{signature, 1, 2};
    EXPECT_EQ(mine.unlike(mine), nullptr);
    EXPECT_STREQ(mine.unlike({signature, 1, 3}), "took another algorithm");
    EXPECT_STREQ(mine.unlike({signature, 2, 2}), "gave another root, type, operator or length");
    EXPECT_STREQ(mine.unlike({Signature(4, 2, 100, 4096), 2, 3}), "called another operation");
    EXPECT_EQ(mine.unlike({Signature(), 2, 3}), nullptr) << "that one checks nothing";
    EXPECT_EQ(Agreement().unlike(mine), nullptr);
}

TEST(signature, says_which_argument_differs) {
    const Signature mine(3, 2, 100, 4096);
    const auto unlike = [&](Signature other) {
        const char* what = mine.unlike(other);
        return std::string(what == nullptr ? "" : what);
    };
    EXPECT_EQ(unlike(mine), "");
    EXPECT_EQ(unlike(Signature::of_tag(~Signature::kMask | mine.bits())), "");
    EXPECT_EQ(unlike(Signature(4, 2, 100, 4096)), "called another operation");
    EXPECT_EQ(unlike(Signature(3, 1, 100, 4096)), "gave another root");
    EXPECT_EQ(unlike(Signature(3, 2, 101, 4096)),
              "gave another type or operator, or took another algorithm");
    EXPECT_EQ(unlike(Signature(3, 2, 100, 4097)), "gave another length");
    EXPECT_EQ(unlike(Signature::broken()), Signature::kToldOf);
    EXPECT_EQ(unlike(Signature()), "") << "that one checks nothing";
    EXPECT_EQ(Signature().unlike(mine), nullptr);
    EXPECT_EQ(Signature().unlike(Signature::broken()), nullptr);
}

TEST(signature, looks_alike_for_few_lengths_that_differ) {
    unsigned alike = 0;
    for (std::uint64_t length = 1; length <= 1000; ++length)
        alike += Signature(1, 0, 0, 0).unlike(Signature(1, 0, 0, length)) == nullptr ? 1 : 0;
    EXPECT_GT(alike, 30U);
    EXPECT_LT(alike, 100U) << "of 1000; 1 in 16 expected";
}

}  // namespace
}  // namespace ulc::client
