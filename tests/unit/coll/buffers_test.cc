// SPDX-License-Identifier: BSD-3-Clause
// The bound of buffers that each algorithm claims (tests/sim/schedule/bounds.h) is what the checker
// finds: it is never exceeded, and it is reached. The checker's own figure is the worst of all
// executions, not that of one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/prng.h"
#include "coll/algorithm.h"
#include "tests/sim/schedule/bounds.h"
#include "tests/sim/schedule/buffers.h"
#include "tests/sim/schedule/goals.h"

namespace ulc::sim {
namespace {

using coll::Algorithm;
using coll::Call;
using coll::Op;

constexpr std::uint64_t kSegment = 64;
/// Up to this number of ranks every form and k is tried; some are tried with more ranks.
constexpr std::uint16_t kRanksMax = 17;

std::string describe(const Algorithm& algorithm, const Call& call) {
    return std::string(coll::name_of(algorithm.op)) + '/' + std::string(algorithm.name) +
           " ranks " + std::to_string(call.ranks) + " octets " + std::to_string(call.octets) +
           " k " + std::to_string(call.concurrent);
}

std::uint32_t needed(const CollectiveCase& one, const std::string& which) {
    std::uint64_t octets = 0;
    for (const RankGoal& goal : one.goals)
        octets = std::max({octets, goal.input.size(), goal.output.size()});
    const Verdict verdict = check_buffers(one.schedules(), octets);
    EXPECT_TRUE(verdict.ok) << which << ": " << verdict.what;
    return verdict.buffers;
}

/// Returns the variants of a call on which its steps may depend, besides ranks, lengths and k.
std::vector<Call> forms_of(Call call) {
    std::vector<Call> forms;
    const bool reduces = is_reduction(call.op);
    for (const bool in_place : {false, true}) {
        for (const bool commutative : {true, false}) {
            if (!commutative && !reduces) continue;
            call.in_place = in_place;
            call.commutative = commutative;
            call.root = 0;
            forms.push_back(call);
            if (call.op != Op::kReduce) continue;
            call.root = static_cast<std::uint16_t>(call.ranks - 1);
            forms.push_back(call);
        }
        if (call.op == Op::kBarrier || call.op == Op::kBroadcast) break;
    }
    return forms;
}

/// Compares every cell of an algorithm with its bound.
class Held {
public:
    Held(const Algorithm& algorithm, const BufferBound& bound)
        : algorithm_(algorithm), bound_(bound) {}

    void cell(Call call, const std::vector<Call>& forms) {
        std::uint32_t worst = 0;
        for (const Call& form : forms)
            worst = std::max(worst,
                             needed(CollectiveCase(algorithm_, form), describe(algorithm_, form)));
        const std::uint64_t claimed = bound_.messages(even(call), call.octets);
        EXPECT_LE(worst, claimed) << describe(algorithm_, call);
        if (bound_.exact) {
            EXPECT_EQ(worst, claimed) << describe(algorithm_, call);
        }
        if (call.ranks > 2 && worst == claimed) ++reached_;
    }
    ~Held() {
        EXPECT_GT(reached_, 0U) << describe(algorithm_, {}) << ": more is claimed than is needed";
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

private:
    const Algorithm& algorithm_;
    const BufferBound& bound_;
    unsigned reached_ = 0;
};

class BuffersOfEveryOperation : public testing::TestWithParam<std::uint8_t> {};

TEST_P(BuffersOfEveryOperation, needs_the_buffers_that_are_claimed) {
    for (const Algorithm& algorithm : coll::algorithms()) {
        if (algorithm.op != static_cast<Op>(GetParam())) continue;
        const BufferBound* bound = buffer_bound(algorithm);
        ASSERT_NE(bound, nullptr) << describe(algorithm, {}) << ": nothing is claimed";
        Held held(algorithm, *bound);
        for (const std::uint32_t k : {1U, 2U, 5U}) {
            if (k > 1 && !algorithm.has_k) break;
            for (const std::uint64_t segments : {1U, 2U, 9U}) {
                Call call{.op = algorithm.op,
                          .octets = segments * kSegment,
                          .segment = kSegment,
                          .concurrent = k};
                if (call.op == Op::kBarrier) call.octets = 0;
                // A share is 1/ranks of a block; it gets as many segments as the blocks of the
                // others.
                const bool shares = algorithm.name == "pairwise_multicast";
                for (call.ranks = 1; call.ranks <= kRanksMax; ++call.ranks) {
                    if (shares) call.octets = segments * kSegment * call.ranks;
                    held.cell(call, forms_of(call));
                }
                if (segments > 1) continue;
                for (call.ranks = 32; call.ranks <= 64; call.ranks *= 2)
                    held.cell(call, {call});
                if (call.op == Op::kBarrier) break;
            }
        }
    }
}

TEST_P(BuffersOfEveryOperation, needs_the_buffers_that_are_claimed_with_lengths_by_rank) {
    for (const Algorithm& algorithm : coll::algorithms()) {
        const bool blocks = is_uneven(algorithm.op) || algorithm.op == Op::kAllgather ||
                            algorithm.op == Op::kReduceScatter;
        if (algorithm.op != static_cast<Op>(GetParam()) || !blocks) continue;
        const BufferBound* bound = buffer_bound(algorithm);
        ASSERT_NE(bound, nullptr) << describe(algorithm, {}) << ": nothing is claimed";
        unsigned reached = 0;
        for (std::uint16_t ranks = 1; ranks <= kRanksMax; ++ranks) {
            for (const bool one_gives_nothing : {false, true}) {
                std::vector<std::size_t> lengths(ranks, 6 * kSegment);
                for (std::size_t rank = 0; rank < lengths.size() && !one_gives_nothing; ++rank)
                    lengths[rank] = rank * 7 % 4 * 2 * kSegment;
                if (one_gives_nothing) lengths[0] = 0;
                Call call{.op = algorithm.op, .ranks = ranks, .segment = kSegment};
                const CollectiveCase one(algorithm, call, lengths);
                call.octets = one.goals[0].input.size();
                const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
                const auto messages = bound->uneven == nullptr ? bound->messages : bound->uneven;
                const std::uint64_t claimed = messages(call, longest);
                const std::uint32_t worst = needed(one, describe(algorithm, call));
                EXPECT_LE(worst, claimed) << describe(algorithm, call);
                if (ranks > 2 && worst == claimed) ++reached;
            }
        }
        EXPECT_TRUE(bound->uneven == nullptr || reached > 0) << describe(algorithm, {});
    }
}

INSTANTIATE_TEST_SUITE_P(Of, BuffersOfEveryOperation, testing::Range<std::uint8_t>(0, coll::kOps),
                         [](const auto& op) {
                             return std::string(coll::name_of(static_cast<Op>(op.param)));
                         });

// ---- the worst of all executions ----------------------------------------------------------------

/// A member receives `first` messages from one source and one from another, which sends `more` when
/// that one is taken.
Arrivals two_sources(std::vector<std::vector<std::size_t>>& next, std::vector<std::size_t>& order,
                     std::size_t first, std::size_t more) {
    const std::size_t messages = first + 1 + more;
    next.assign(2 * messages, {});
    Arrivals arrivals{next, order, {}, {}};
    for (std::size_t i = 0; i < messages; ++i) {
        arrivals.sent.push_back(2 * i);
        arrivals.taken.push_back(2 * i + 1);
        next[2 * i].push_back(2 * i + 1);
        if (i > first) next[2 * first + 1].push_back(2 * i);
    }
    for (std::size_t event = 0; event < next.size(); ++event)
        order.push_back(event);
    return arrivals;
}

TEST(worst_arrivals, counts_on_no_order_in_which_a_member_takes_what_is_there) {
    std::vector<std::vector<std::size_t>> next;
    std::vector<std::size_t> order;
    const Arrivals arrivals = two_sources(next, order, 3, 4);
    const WorstArrivals worst = worst_arrivals(arrivals);
    EXPECT_EQ(worst.held, 3U + 4U) << "the three that came first wait, when the one is taken";
    EXPECT_EQ(worst.sent.size(), 8U);
    EXPECT_EQ(worst.taken, std::vector<std::size_t>{2 * 3 + 1});
}

TEST(worst_arrivals, takes_nothing_that_brings_no_more_than_it_frees) {
    std::vector<std::vector<std::size_t>> next;
    std::vector<std::size_t> order;
    const Arrivals arrivals = two_sources(next, order, 3, 1);
    const WorstArrivals worst = worst_arrivals(arrivals);
    EXPECT_EQ(worst.held, 4U);
    EXPECT_TRUE(worst.taken.empty());
}

/// Computes the definition directly, over all sets of receives.
std::uint32_t worst_by_trial(const Arrivals& arrivals) {
    std::int64_t most = 0;
    for (std::uint32_t set = 0; set < 1U << arrivals.taken.size(); ++set) {
        std::vector<bool> held_back(arrivals.next.size(), false);
        std::int64_t held = 0;
        for (const std::size_t event : arrivals.order) {
            const auto taken = std::find(arrivals.taken.begin(), arrivals.taken.end(), event);
            if (taken != arrivals.taken.end()) {
                const bool wanted = (set >> (taken - arrivals.taken.begin()) & 1U) != 0;
                if (!wanted) held_back[event] = true;
                held -= held_back[event] ? 0 : 1;
            }
            const bool sent =
                std::find(arrivals.sent.begin(), arrivals.sent.end(), event) != arrivals.sent.end();
            if (sent && !held_back[event]) ++held;
            if (!held_back[event]) continue;
            for (const std::size_t successor : arrivals.next[event])
                held_back[successor] = true;
        }
        most = std::max(most, held);
    }
    return static_cast<std::uint32_t>(most);
}

TEST(worst_arrivals, is_the_worst_of_all_sets_that_a_member_may_have_taken) {
    constexpr std::size_t kMessages = 8;
    Prng prng(1);
    unsigned waited = 0;
    for (unsigned draw = 0; draw < 300; ++draw) {
        std::vector<std::vector<std::size_t>> next(2 * kMessages);
        std::vector<std::size_t> order;
        Arrivals arrivals{next, order, {}, {}};
        for (std::size_t i = 0; i < kMessages; ++i) {
            arrivals.sent.push_back(2 * i);
            arrivals.taken.push_back(2 * i + 1);
            next[2 * i].push_back(2 * i + 1);
            order.insert(order.end(), {2 * i, 2 * i + 1});
            for (std::size_t later = i + 1; later < kMessages; ++later)
                if (prng.chance(0.2)) next[2 * i + 1].push_back(2 * later);
        }
        const WorstArrivals worst = worst_arrivals(arrivals);
        ASSERT_EQ(worst.held, worst_by_trial(arrivals)) << draw;
        ASSERT_EQ(worst.held, worst.sent.size() - worst.taken.size()) << draw;
        if (!worst.taken.empty()) ++waited;
    }
    EXPECT_GT(waited, 30U) << "draws in which a member must have taken some";
}

}  // namespace
}  // namespace ulc::sim
