// SPDX-License-Identifier: BSD-3-Clause
// Compares PCODE's counters and timers (PCODE §5.1, §5.2, §5.7) with a plain model of the paper's
// text.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/prng.h"
#include "urtp/profiles/pcode/global_counter.h"
#include "urtp/profiles/pcode/nack_timer.h"

namespace ulc::urtp::pcode {
namespace {

// K-7, K-8
TEST(PcodeGlobalCounter, counts_what_is_sent_and_what_arrives_without_a_gap) {
    GlobalCounter counter(3, 0, 64);
    EXPECT_EQ(counter.on_send(), 1U);
    EXPECT_TRUE(counter.on_message(1, 2));
    EXPECT_EQ(counter.current(), 2U);
    EXPECT_EQ(counter.on_send(), 3U);
    EXPECT_TRUE(counter.on_message(2, 3)) << "two senders may use one counter";
    EXPECT_EQ(counter.current(), 3U);
    EXPECT_EQ(counter.heard(1), 2U);
    EXPECT_EQ(counter.spread(), 1U);
}

// K-8
TEST(PcodeGlobalCounter, remembers_a_counter_beyond_a_gap_until_the_gap_closes) {
    GlobalCounter counter(3, 0, 64);
    EXPECT_TRUE(counter.on_message(1, 3));
    EXPECT_EQ(counter.current(), 0U);
    EXPECT_EQ(counter.heard(1), 0U) << "not known before the gap closes";
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    ASSERT_TRUE(counter.gap(from, to));
    EXPECT_EQ(from, 1U);
    EXPECT_EQ(to, 3U);
    EXPECT_TRUE(counter.on_message(2, 1));
    ASSERT_TRUE(counter.gap(from, to));
    EXPECT_EQ(from, 2U);
    EXPECT_TRUE(counter.on_message(2, 2));
    EXPECT_EQ(counter.current(), 3U);
    EXPECT_EQ(counter.heard(1), 3U);
    EXPECT_FALSE(counter.gap(from, to));
}

// K-9
TEST(PcodeGlobalCounter, progress_moves_its_sender_and_not_the_counter) {
    GlobalCounter counter(3, 0, 64);
    EXPECT_TRUE(counter.on_progress(1, 5));
    EXPECT_EQ(counter.current(), 0U) << "not original";
    EXPECT_EQ(counter.heard(1), 0U);
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    EXPECT_FALSE(counter.gap(from, to));
    for (std::uint32_t i = 1; i <= 4; ++i)
        EXPECT_TRUE(counter.on_message(2, i));
    EXPECT_EQ(counter.heard(1), 4U);
    EXPECT_TRUE(counter.on_message(2, 5));
    EXPECT_EQ(counter.heard(1), 5U);
    EXPECT_EQ(counter.spread(), 0U);
}

TEST(PcodeGlobalCounter, a_silent_member_holds_back_until_it_tells_or_goes) {
    GlobalCounter counter(3, 0, 64);
    for (int i = 0; i < 10; ++i)
        (void)counter.on_send();
    EXPECT_EQ(counter.spread(), 10U);
    EXPECT_EQ(counter.untold(), 0U);
    EXPECT_TRUE(counter.on_progress(1, 10));
    EXPECT_EQ(counter.spread(), 10U);
    counter.remove(2);
    EXPECT_EQ(counter.spread(), 0U);
    EXPECT_EQ(counter.since_status(), 10U);
    counter.on_told();
    EXPECT_EQ(counter.since_status(), 0U);
}

// K-10
TEST(PcodeGlobalCounter, refuses_what_is_further_ahead_than_its_range) {
    GlobalCounter counter(2, 0, 64);
    EXPECT_FALSE(counter.on_message(1, 64));
    EXPECT_FALSE(counter.on_progress(1, 64));
    EXPECT_FALSE(counter.on_message(1, 0x7fffffffU));
    EXPECT_EQ(counter.heard(1), 0U);
    EXPECT_TRUE(counter.on_message(1, 63));
    EXPECT_TRUE(counter.on_message(1, 0xffffffffU)) << "long past: nothing new";
    EXPECT_EQ(counter.current(), 0U);
}

// K-22
TEST(PcodeGlobalCounter, skips_a_gap_that_nobody_fills) {
    GlobalCounter counter(3, 0, 64);
    EXPECT_TRUE(counter.on_message(1, 3));
    EXPECT_TRUE(counter.on_message(1, 4));
    EXPECT_TRUE(counter.on_message(1, 7));
    counter.skip_gap();
    EXPECT_EQ(counter.current(), 4U);
    counter.skip_gap();
    EXPECT_EQ(counter.current(), 7U);
    counter.skip_gap();
    EXPECT_EQ(counter.current(), 7U);
    EXPECT_EQ(counter.on_send(), 8U);
}

/// A member as the paper describes it: a list of saved counters, original or not, searched at each
/// update.
class Model {
public:
    explicit Model(std::uint32_t members) : gcv(members, 0), told(members, 0) {}
    std::uint32_t send() {
        gcv[0] = ++global;
        check_saved();
        return gcv[0];
    }
    void hear(std::uint32_t member, std::uint32_t counter, bool original) {
        told[member] = std::max(told[member], counter);
        saved.insert({counter, member, original});
        check_saved();
    }
    std::uint32_t global = 0;
    std::vector<std::uint32_t> gcv;
    std::vector<std::uint32_t> told;

private:
    struct Saved {
        std::uint32_t counter, member;
        bool original;
        auto operator<=>(const Saved&) const = default;  // NOLINT(modernize-use-nullptr): its bug
    };
    void check_saved() {
        for (bool again = true; again;) {
            again = false;
            for (auto it = saved.begin(); it != saved.end(); ++it) {
                const bool next = it->original && it->counter == global + 1;
                if (!next && it->counter > global) continue;
                global = std::max(global, it->counter);
                gcv[it->member] = std::max(gcv[it->member], it->counter);
                saved.erase(it);
                again = true;
                break;
            }
        }
    }
    std::set<Saved> saved;
};

TEST(PcodeGlobalCounter, agrees_with_the_papers_list_of_saved_counters) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        Prng random(seed);
        const auto members = static_cast<std::uint32_t>(2 + random.below(5));
        GlobalCounter counter(members, 0, 256);
        Model model(members);
        for (int step = 0; step < 300; ++step) {
            const auto member = static_cast<std::uint32_t>(1 + random.below(members - 1));
            const std::uint64_t what = random.below(10);
            if (what == 0) {
                ASSERT_EQ(counter.on_send(), model.send());
            } else {
                const auto value =
                    static_cast<std::uint32_t>(model.global + random.below(what < 8 ? 4 : 40));
                if (value == 0) continue;
                const bool original = what != 9;
                ASSERT_TRUE(original ? counter.on_message(member, value)
                                     : counter.on_progress(member, value));
                model.hear(member, value, original);
            }
            ASSERT_EQ(counter.current(), model.global) << "seed " << seed << " step " << step;
            std::uint32_t least = model.global;
            for (std::uint32_t i = 1; i < members; ++i) {
                const std::uint32_t heard = counter.heard(i);
                ASSERT_EQ(heard, std::min(model.told[i], model.global)) << seed << " " << step;
                ASSERT_GE(heard, model.gcv[i]) << "knows less than the list, seed " << seed;
                if (model.told[i] <= model.global) {
                    ASSERT_EQ(heard, model.gcv[i]);
                }
                least = std::min(least, heard);
            }
            ASSERT_EQ(counter.spread(), model.global - least) << seed << " step " << step;
        }
    }
}

TEST(PcodeGlobalCounter, goes_on_across_the_wrap_of_its_bitmap) {
    GlobalCounter counter(2, 0, 64);
    for (std::uint32_t i = 1; i < 1000; i += 2) {
        EXPECT_TRUE(counter.on_message(1, i + 1));
        EXPECT_EQ(counter.current(), i - 1);
        EXPECT_TRUE(counter.on_message(1, i));
        EXPECT_EQ(counter.current(), i + 1);
    }
}

// K-22, K-23
TEST(PcodeNackTimer, waits_first_then_asks_periodically_then_gives_up) {
    NackTimer timer;
    EXPECT_EQ(timer.at(), kNever);
    timer.want(7, 100, 50);
    EXPECT_EQ(timer.due(149, 20, 2), NackTimer::Due::kNothing);
    timer.want(7, 140, 50);
    EXPECT_EQ(timer.at(), 150) << "the same gap is not put off";
    EXPECT_EQ(timer.due(150, 20, 2), NackTimer::Due::kAsk);
    EXPECT_EQ(timer.at(), 170);
    EXPECT_EQ(timer.due(171, 20, 2), NackTimer::Due::kAsk);
    EXPECT_EQ(timer.due(200, 20, 2), NackTimer::Due::kGiveUp);
    EXPECT_EQ(timer.at(), kNever);
    timer.want(8, 300, 50);
    timer.want(9, 310, 50);
    EXPECT_EQ(timer.at(), 360) << "another gap";
    timer.satisfied();
    EXPECT_EQ(timer.due(1000, 20, 2), NackTimer::Due::kNothing);
}

}  // namespace
}  // namespace ulc::urtp::pcode
