// SPDX-License-Identifier: BSD-3-Clause
// Which links of a bond are silent (port/link_watch.h), by rounds alone.
#include "port/link_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace ulc::port {
namespace {

/// Both links ask; those in `replied` get a reply.
void round(LinkWatch& watch, std::initializer_list<std::size_t> replied, std::size_t links = 2) {
    for (std::size_t link = 0; link < links; ++link)
        watch.asked(link);
    for (const std::size_t link : replied)
        watch.replied(link, watch.token());
    watch.end_round();
}

// N-38
TEST(LinkWatch, a_link_without_replies_is_silent_after_eight_rounds_in_which_another_had_one) {
    LinkWatch watch(7);
    for (int n = 0; n < 7; ++n)
        round(watch, {0});
    EXPECT_FALSE(watch.is_silent(1));
    EXPECT_TRUE(watch.doubts());
    round(watch, {});
    EXPECT_FALSE(watch.is_silent(1)) << "none had a reply";
    round(watch, {0});
    EXPECT_TRUE(watch.is_silent(1));
    EXPECT_FALSE(watch.is_silent(0));
    EXPECT_FALSE(watch.doubts()) << "decided";
    EXPECT_EQ(watch.silences(), 1U);
}

// N-38
TEST(LinkWatch, one_reply_begins_the_count_again) {
    LinkWatch watch(7);
    for (int n = 0; n < 7; ++n)
        round(watch, {0});
    round(watch, {0, 1});
    EXPECT_FALSE(watch.doubts());
    for (int n = 0; n < 7; ++n)
        round(watch, {0});
    EXPECT_FALSE(watch.is_silent(1));
}

// N-38
TEST(LinkWatch, a_peer_that_is_dead_makes_no_link_silent) {
    LinkWatch watch(7);
    for (int n = 0; n < 1000; ++n)
        round(watch, {});
    EXPECT_FALSE(watch.is_silent(0) || watch.is_silent(1) || watch.doubts());
}

// N-37
TEST(LinkWatch, a_reply_with_a_token_that_was_computed_from_others_counts_not) {
    LinkWatch watch(7);
    std::uint64_t seen = 0;
    for (int n = 0; n < 10; ++n) {
        watch.asked(0);
        watch.asked(1);
        watch.replied(0, watch.token());
        watch.replied(1, seen + 1);
        seen = watch.token();
        watch.end_round();
    }
    EXPECT_TRUE(watch.is_silent(1));
}

// N-39
TEST(LinkWatch, a_silent_link_is_heard_again_after_four_replies_in_a_row) {
    LinkWatch watch(7);
    for (int n = 0; n < 8; ++n)
        round(watch, {0});
    for (int n = 0; n < 3; ++n)
        round(watch, {0, 1});
    round(watch, {0});
    for (int n = 0; n < 3; ++n)
        round(watch, {0, 1});
    EXPECT_TRUE(watch.is_silent(1));
    round(watch, {0, 1});
    EXPECT_FALSE(watch.is_silent(1));
    EXPECT_EQ(watch.silences(), 1U);
}

// N-38
TEST(LinkWatch, one_link_at_least_is_not_silent) {
    LinkWatch watch(7);
    for (int n = 0; n < 8; ++n)
        round(watch, {0}, 3);
    EXPECT_TRUE(watch.is_silent(1) && watch.is_silent(2));
    for (unsigned n = 0; n < 7; ++n)
        round(watch, {1 + n % 2}, 3);  // now and then, never four in a row
    EXPECT_TRUE(watch.is_silent(1) && watch.is_silent(2));
    round(watch, {2}, 3);
    EXPECT_TRUE(watch.is_silent(0) && watch.is_silent(1));
    EXPECT_FALSE(watch.is_silent(2)) << "better than none";
}

// N-37
TEST(LinkWatch, replies_may_be_late_and_must_have_been_asked_for) {
    LinkWatch watch(7);
    std::vector<std::uint64_t> sent;
    for (unsigned n = 0; n < LinkWatch::kTokensValid - 1; ++n) {
        EXPECT_NE(watch.token(), 0U);
        sent.push_back(watch.token());
        watch.end_round();
    }
    for (int n = 0; n < 8; ++n) {
        watch.asked(0);
        watch.asked(1);
        watch.replied(0, watch.token());
        watch.replied(1, watch.token() + 1);
        watch.replied(1, n == 0 ? 0 : sent[0]);
        sent.push_back(watch.token());
        watch.end_round();
    }
    EXPECT_TRUE(watch.is_silent(1)) << "forged, or older than 64 rounds";
    for (int n = 0; n < 4; ++n) {
        watch.asked(0);
        watch.asked(1);
        watch.replied(1, sent[sent.size() - 60]);
        sent.push_back(watch.token());
        watch.end_round();
    }
    EXPECT_FALSE(watch.is_silent(1));
}

TEST(LinkWatch, a_link_that_does_not_ask_is_not_judged_and_one_that_was_down_begins_anew) {
    LinkWatch watch(7);
    for (int n = 0; n < 20; ++n) {
        watch.asked(0);
        watch.replied(0, watch.token());
        watch.end_round();
    }
    EXPECT_FALSE(watch.is_silent(1));
    for (int n = 0; n < 8; ++n)
        round(watch, {0});
    EXPECT_TRUE(watch.is_silent(1));
    watch.forget(1);
    EXPECT_FALSE(watch.is_silent(1));
}

}  // namespace
}  // namespace ulc::port
