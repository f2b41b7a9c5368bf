// SPDX-License-Identifier: BSD-3-Clause
// The requirements that every profile must meet, whatever its policies: one list, run for each
// policy and some combinations. Delivery is exactly once and in order under loss, duplication,
// reordering and the wrap of numbers; the list includes a lost tail, a receiver without buffer
// space, a peer that dies, and a peer that only computes. A new policy is tested once it is in
// policies().
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/urtp/play.h"
#include "urtp/policy.h"

namespace ulc::urtp::test {
namespace {

std::vector<std::string> profiles() {
    std::vector<std::string> all;
    for (const Policy* policy : policies())
        all.emplace_back(policy->word);
    for (const char* mixed : {"gbn+eager", "gbn+block"})
        all.emplace_back(mixed);
    return all;
}

class EveryProfile : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] std::string_view profile() const { return GetParam(); }
    [[nodiscard]] bool recovers() const {
        Policy policy;
        Params params;
        return resolve(profile(), policy, params) == Err::kOk && policy.recovers;
    }
    void play(Scenario scenario, std::uint64_t seeds) const {
        scenario.profile = profile();
        scenario.params.peer_dead = 100 * kSecond;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            Play play(scenario, seed);
            play.run();
            if (HasFailure()) FAIL() << GetParam() << ", seed " << seed;
        }
    }
};
std::string name_of(const testing::TestParamInfo<std::string>& parameter) {
    std::string name = parameter.param;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '+' || c == '-'; }, '_');
    return name;
}
INSTANTIATE_TEST_SUITE_P(Words, EveryProfile, testing::ValuesIn(profiles()), name_of);

TEST_P(EveryProfile, delivers_in_order_without_faults) { play({.size = 3, .packets = 200}, 2); }

// P-4
TEST_P(EveryProfile, survives_loss) {
    play({.size = 4, .packets = 150, .faults = {.loss = 0.05}}, 4);
}

// S-6
TEST_P(EveryProfile, delivers_a_duplicate_once) {
    play({.size = 3, .packets = 150, .faults = {.duplicate = 0.3}}, 3);
}

// S-8
TEST_P(EveryProfile, puts_overtaking_frames_in_order) {
    play({.size = 3, .packets = 150, .faults = {.reorder = 0.2}}, 3);
}

// H-16
TEST_P(EveryProfile, numbers_wrap_under_all_faults) {
    play({.size = 4,
          .packets = 150,
          .faults = {.loss = 0.02, .duplicate = 0.02, .reorder = 0.05, .gap = 1000},
          .first_seq = 0xffffffffU - 40},
         4);
}

TEST_P(EveryProfile, holds_while_readers_are_slow_and_memory_is_short) {
    play({.size = 3,
          .packets = 120,
          .params = {.window = 32, .rx_pool_packets = 4},
          .faults = {.loss = 0.01},
          .slow_reader = 0.9},
         3);
}

TEST_P(EveryProfile, brings_a_lost_tail_without_being_asked) {
    if (!recovers()) GTEST_SKIP() << "promises to report, not to recover (detect_test.cc)";
    for (const StreamId stream : {unicast_to(1), StreamId{kWorld}}) {
        World w(3, {}, {}, 1, 0, profile());
        int lost = 0;
        w.hook = [&](const wire::FrameView& f, Rank) {
            const bool data = f.type == wire::FrameType::kData ||
                              f.type == wire::FrameType::kMcast ||
                              f.type == wire::FrameType::kCounted;
            return data && lost++ < 4 ? Fate::kLose : Fate::kPass;
        };
        ASSERT_EQ(w.send(0, stream, "only"), Admission::kYes);
        w.run_for(2 * kSecond);
        EXPECT_EQ(w.receive(1, 0), std::vector<std::string>{"only"});
        EXPECT_TRUE(w.drained());
    }
}

TEST_P(EveryProfile, moves_one_way_traffic_far_beyond_the_window) {
    if (!recovers()) GTEST_SKIP() << "promises to report, not to recover (detect_test.cc)";
    World w(2, {}, {}, 1, 0, profile());
    std::size_t received = 0;
    int sent = 0;
    const Nanos end = w.now + 60 * kSecond;
    while (received < 2000 && w.now < end) {
        while (sent < 2000 && w.send(0, 1, std::to_string(sent)) == Admission::kYes)
            ++sent;
        (void)w.step(w.now + kMillisecond);
        received += w.receive(1, 0).size();
    }
    EXPECT_EQ(received, 2000U);
}

TEST_P(EveryProfile, waits_for_a_reader_that_computes_for_an_hour) {
    if (!recovers()) GTEST_SKIP() << "promises to report, not to recover (detect_test.cc)";
    Params params;
    params.window = 32;
    params.rx_pool_packets = 8;
    World w(2, params, {}, 1, 0, profile());
    int sent = 0;
    while (w.send(0, 1, std::to_string(sent)) == Admission::kYes)
        ++sent;
    const std::uint64_t before = w.frames;
    w.run_for(3600 * kSecond);  // the reader's engine answers, its application takes nothing
    EXPECT_LE(w.frames - before, 3600U * 10U * 2U * 64U) << "asks at least at MaxSendWait";
    Event event;
    EXPECT_FALSE(w.members[0]->poll_event(event));
    int got = 0;
    for (int i = 0; i < 1000 && got < sent; ++i) {
        w.run_for(10 * kMillisecond);
        for (const std::string& text : w.receive(1, 0))
            EXPECT_EQ(text, std::to_string(got++));
    }
    EXPECT_EQ(got, sent);
}

TEST_P(EveryProfile, never_takes_silence_for_death) {
    Params params;
    params.peer_dead = 100 * kMillisecond;
    World w(3, params, {}, 1, 0, profile());
    ASSERT_EQ(w.send(0, kWorld, "a"), Admission::kYes);
    w.run_for(kSecond);
    EXPECT_TRUE(w.drained());
    w.run_for(3600 * kSecond);
    Event event;
    EXPECT_FALSE(w.members[0]->poll_event(event));
    ASSERT_EQ(w.send(1, 0, "b"), Admission::kYes);
    w.run_for(kSecond);
    EXPECT_EQ(w.receive(0, 1), std::vector<std::string>{"b"});
}

TEST_P(EveryProfile, reports_a_dead_peer_once_and_goes_on_without_it) {
    if (!recovers()) GTEST_SKIP() << "promises to report, not to recover (detect_test.cc)";
    Params params;
    params.peer_dead = 300 * kMillisecond;
    World w(3, params, {}, 1, 0, profile());
    w.dead[2] = true;
    ASSERT_EQ(w.send(0, kWorld, "a"), Admission::kYes);
    ASSERT_EQ(w.send(0, 2, "to the dead"), Admission::kYes);
    w.run_for(5 * kSecond);
    Event event;
    ASSERT_TRUE(w.members[0]->poll_event(event));
    EXPECT_EQ(event.kind, EventKind::kPeerDied);
    EXPECT_EQ(event.rank, 2);
    EXPECT_EQ(event.count, 1U) << "a unicast was not acknowledged";
    EXPECT_FALSE(w.members[0]->poll_event(event));
    EXPECT_EQ(w.receive(1, 0), std::vector<std::string>{"a"});
    EXPECT_EQ(w.send(0, 2, "x"), Admission::kPeerGone);
    EXPECT_EQ(w.send(0, kWorld, "b"), Admission::kYes);
    w.run_for(kSecond);
    EXPECT_EQ(w.receive(1, 0), std::vector<std::string>{"b"});
    EXPECT_TRUE(w.members[0]->drained());
}

// ---------------------------------------------------------------------------- the words themselves

// P-1
TEST(Profiles, words_are_distinct_and_short_enough_to_be_joined) {
    for (const Policy* policy : policies()) {
        Policy out;
        Params params;
        EXPECT_EQ(resolve(policy->word, out, params), Err::kOk) << policy->word;
        EXPECT_LE(policy->word.size(), 16U);
        EXPECT_FALSE(policy->help.empty());
    }
}

// P-1, P-2, P-5
TEST(Profiles, what_is_no_profile_changes_nothing) {
    Policy out;
    Params params;
    params.window = 77;
    for (const char* bad :
         {"", "+", "urtp+", "+urtp", "gbn+gbn", "GBN", "urtp,gbn", "gb",
          "urtp+lazy+block+eager+gbn+urtp-1997", "urtp-1997+pcode", "p1+urtp-1997"}) {
        EXPECT_EQ(resolve(bad, out, params), Err::kInvalid) << bad;
        EXPECT_EQ(out.next_ack, nullptr);
        EXPECT_EQ(params.window, 77U);
    }
}

// P-3
TEST(Profiles, later_words_lie_over_earlier_ones) {
    Policy gbn;
    Policy mixed;
    Policy eager;
    Params params;
    ASSERT_EQ(resolve("gbn", gbn, params), Err::kOk);
    EXPECT_FALSE(params.selective_repeat);
    ASSERT_EQ(resolve("eager", eager, params), Err::kOk);
    ASSERT_EQ(resolve("gbn+eager", mixed, params), Err::kOk);
    EXPECT_EQ(mixed.on_tail, gbn.on_tail);
    EXPECT_EQ(mixed.next_ack, eager.next_ack);
    EXPECT_NE(mixed.next_ack, gbn.next_ack);
}

// P-7
TEST(Profiles, words_of_other_protocols_control_no_congestion_unless_a_later_word_does) {
    const auto resolved = [](const std::string& profile) {
        Policy policy;
        Params params;
        EXPECT_EQ(resolve(profile, policy, params), Err::kOk) << profile;
        return policy;
    };
    const Policy plain = resolved("urtp");
    for (const std::string word : {"gbn", "urtp-1997", "conservative", "credit", "optimistic",
                                   "detect", "p0", "p0-slot", "p1", "pcode", "open"}) {
        const Policy alone = resolved(word);
        EXPECT_NE(alone.on_lost, plain.on_lost) << word;
        EXPECT_EQ(resolved(word + "+backoff").on_lost, plain.on_lost) << word;
        EXPECT_EQ(resolved("backoff+" + word).on_lost, alone.on_lost) << word;
    }
}

// ---------------------------------------------------------------------------- what sets them apart

// P-15
TEST(Urtp1997, fills_the_place_of_the_papers_number_vector) {
    for (const std::uint16_t members : {3, 5, 8, 9}) {
        World w(members, {}, {}, 1, 7, "urtp-1997");
        std::vector<unsigned> counts;
        w.hook = [&](const wire::FrameView& frame, Rank) {
            if (frame.type != wire::FrameType::kMcast) return Fate::kPass;
            counts.push_back(frame.after_count);
            for (unsigned i = 0; i < frame.after_count; ++i) {
                EXPECT_EQ(frame.after[i].stream, kWorld);
                EXPECT_EQ(Seq{frame.after[i].seq} + 1, frame.seq);
            }
            return Fate::kPass;
        };
        ASSERT_EQ(w.send(0, kWorld, "x"), Admission::kYes);
        w.run_for(kMillisecond);
        ASSERT_FALSE(counts.empty());
        EXPECT_EQ(counts.front(), std::min((members + 1U) / 2, 4U)) << members;
        for (Rank r = 1; r < members; ++r)
            EXPECT_EQ(w.receive(r, 0), std::vector<std::string>{"x"});
    }
}

std::uint64_t acknowledgements(std::string_view profile, std::uint16_t members, int packets) {
    World w(members, {}, {}, 1, 0, profile);
    for (int i = 0; i < packets; ++i) {
        EXPECT_EQ(w.send(0, kWorld, "x"), Admission::kYes);
        w.run_for(20 * kMicrosecond);
        for (Rank r = 1; r < members; ++r)
            (void)w.receive(r, 0);
    }
    std::uint64_t sum = 0;
    for (Rank r = 1; r < members; ++r)
        sum += w.count(r, Counter::ack_sent);
    return sum;
}

// P-6
TEST(Profiles, acknowledge_a_multicast_as_often_as_they_say) {
    EXPECT_LE(acknowledgements("urtp", 9, 64), 64U) << "at most one a packet";
    EXPECT_EQ(acknowledgements("lazy", 9, 64), 0U);
    EXPECT_EQ(acknowledgements("block", 9, 64), 8U * 64U / 16U);
    EXPECT_EQ(acknowledgements("eager", 9, 64), 8U * 64U);
}

// Seed 8582: each packet behind the one that an overrun port had lost caused a duplicate
// acknowledgement, and each of these another retransmission of the whole window, without end.
// K-6, P-14
TEST(GoBackN, what_is_repeated_in_vain_becomes_less_and_rarer) {
    World w(2, {}, {}, 1, 0, "gbn+eager");
    bool overrun = true;
    w.hook = [&](const wire::FrameView& f, Rank) {
        const bool first = f.type == wire::FrameType::kData && f.seq.value == 0;
        return overrun && first ? Fate::kLose : Fate::kPass;
    };
    for (int i = 0; i < 200; ++i)
        ASSERT_EQ(w.send(0, 1, std::to_string(i)), Admission::kYes);
    w.run_for(500 * kMillisecond);
    const std::uint64_t begun = w.count(0, Counter::repair_unicast);
    w.run_for(500 * kMillisecond);
    EXPECT_LE(begun, 1400U) << "seven windows";
    EXPECT_LE(w.count(0, Counter::repair_unicast) - begun, 20U) << "one each 50 ms";
    EXPECT_GE(w.count(0, Counter::repair_unicast) - begun, 4U) << "and never none";
    overrun = false;
    w.run_for(kSecond);
    EXPECT_EQ(w.receive(1, 0).size(), 200U);
}

// At a loss of one in ten, the receiver has already dropped a packet many times behind others when
// it becomes the oldest.
// K-6
TEST(GoBackN, what_was_repeated_behind_another_is_not_repeated_in_vain) {
    World w(2, {}, {.loss = 0.1}, 1, 0, "gbn+block");
    std::size_t received = 0;
    std::size_t sent = 0;
    int ms = 0;
    for (; received < 2000 && ms < 3000; ++ms) {
        while (sent < 2000 && w.send(0, 1, std::to_string(sent)) == Admission::kYes)
            ++sent;
        w.run_for(kMillisecond);
        received += w.receive(1, 0).size();
    }
    EXPECT_EQ(received, 2000U);
    EXPECT_LT(ms, 700) << "0.1 ms a packet; 1.4 if the behind ones were blamed";
}

// P-14
TEST(GoBackN, repeats_everything_after_a_gap_and_asks_nothing) {
    World w(2, {}, {.gap = 1000}, 1, 0, "gbn");
    bool lost = false;
    w.hook = [&](const wire::FrameView& f, Rank) {
        if (f.type != wire::FrameType::kData || f.seq.value != 3 || lost) return Fate::kPass;
        lost = true;
        return Fate::kLose;
    };
    for (int i = 0; i < 10; ++i)
        ASSERT_EQ(w.send(0, 1, std::to_string(i)), Admission::kYes);
    w.run_for(5 * kMillisecond);
    EXPECT_EQ(w.receive(1, 0).size(), 10U);
    EXPECT_GE(w.count(1, Counter::drop_out_of_order), 6U);
    EXPECT_EQ(w.count(1, Counter::req_sent), 0U);
    EXPECT_GE(w.count(0, Counter::repair_unicast), 7U) << "3 and all after it";
    EXPECT_EQ(w.count(0, Counter::probe_sent), 0U);
}

TEST(GoBackN, ends_its_repetitions_with_any_other_word) {
    for (const Policy* other : policies()) {
        for (const bool first : {false, true}) {
            const std::string word(other->word);
            const std::string profile = first ? "gbn+" + word : word + "+gbn";
            Policy policy;
            Params params;
            if (resolve(profile, policy, params) != Err::kOk || !policy.recovers) continue;
            World w(2, {}, {}, 1, 0, profile);
            ASSERT_EQ(w.send(0, 1, "x"), Admission::kYes) << profile;
            w.run_for(2 * kSecond);
            EXPECT_EQ(w.receive(1, 0), std::vector<std::string>{"x"}) << profile;
            EXPECT_TRUE(w.drained()) << profile;
        }
    }
}

// P-14
TEST(GoBackN, doubles_its_timer_up_to_a_tenth_of_a_second) {
    World w(2, {}, {}, 1, 0, "gbn");
    std::vector<Nanos> at;
    w.hook = [&](const wire::FrameView& f, Rank) {
        if (f.type == wire::FrameType::kData) at.push_back(w.now);
        return Fate::kLose;
    };
    ASSERT_EQ(w.send(0, 1, "x"), Admission::kYes);
    w.run_for(kSecond);
    ASSERT_GE(at.size(), 10U);
    for (std::size_t i = 2; i < at.size(); ++i) {
        const Nanos wait = at[i] - at[i - 1];
        EXPECT_LE(wait, 100 * kMillisecond);
        if (wait < 99 * kMillisecond) {
            EXPECT_NEAR(wait, 2 * (at[i - 1] - at[i - 2]), 1000);
        }
    }
    EXPECT_EQ(at.back() - at[at.size() - 2], 100 * kMillisecond);
}

}  // namespace
}  // namespace ulc::urtp::test
