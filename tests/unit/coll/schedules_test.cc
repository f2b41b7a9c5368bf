// SPDX-License-Identifier: BSD-3-Clause
// Proves every shipped schedule, for every small number of ranks, size and root, by the
// global-program checker. Proves the checker by schedules with planted errors.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/prng.h"
#include "coll/algorithm.h"
#include "coll/table.h"
#include "tests/sim/schedule/goals.h"

namespace ulc::sim {
namespace {

using abi::BufferId;
using coll::Algorithm;
using coll::Call;
using coll::Op;
using coll::Plan;

std::string describe(const Algorithm& algorithm, const Call& call, const Verdict& verdict) {
    return std::string(algorithm.name) + " ranks " + std::to_string(call.ranks) + " root " +
           std::to_string(call.root) + " octets " + std::to_string(call.octets) + " segment " +
           std::to_string(call.segment) + " k " + std::to_string(call.concurrent) + ": rank " +
           std::to_string(verdict.rank) + " step " + std::to_string(verdict.step) + ": " +
           verdict.what;
}

constexpr std::uint16_t kRanksMax = 17;
constexpr std::uint64_t kSizes[] = {0, 1, 40, 1000, 5000};

const Algorithm& named(Op op, const char* name) {
    const Algorithm* found = coll::find_algorithm(op, name);
    EXPECT_NE(found, nullptr) << name;
    return *found;
}

bool has_root(Op op) {
    return op == Op::kBroadcast || op == Op::kGather || op == Op::kGatherv || op == Op::kScatter ||
           op == Op::kScatterv || op == Op::kReduce;
}

/// Tries every algorithm of the operation over ranks and roots; try_one checks some calls.
template <typename TryOne>
void over_ranks_and_roots(Op op, TryOne try_one) {
    for (const Algorithm& algorithm : coll::algorithms()) {
        if (algorithm.op != op) continue;
        for (std::uint16_t ranks = 1; ranks <= kRanksMax; ++ranks) {
            const std::uint16_t roots = has_root(op) ? ranks : 1;
            for (std::uint16_t root = 0; root < roots; ++root) {
                try_one(algorithm, Call{.op = op, .ranks = ranks, .root = root});
                if (testing::Test::HasFatalFailure()) return;
            }
        }
    }
}

void expect_right(const Algorithm& algorithm, const Call& call) {
    const Verdict verdict = CollectiveCase(algorithm, call).check();
    ASSERT_TRUE(verdict.ok) << describe(algorithm, call, verdict);
}

class EveryOperation : public testing::TestWithParam<std::uint8_t> {};

TEST_P(EveryOperation, is_right_over_ranks_roots_sizes_in_place_and_not) {
    Prng prng(GetParam());
    over_ranks_and_roots(static_cast<Op>(GetParam()), [&](const Algorithm& algorithm, Call call) {
        for (const std::uint64_t octets : kSizes) {
            if (call.op == Op::kBarrier && octets > 0) break;
            // Tries every combination of these, but not at every root and size.
            call.octets = octets;
            call.in_place = prng.chance(0.5);
            call.concurrent = prng.chance(0.3) ? 1 : prng.chance(0.7) ? 3 : 100;
            call.segment = prng.chance(0.6) ? 600 : 65536;
            call.early = prng.chance(0.3);
            call.commutative = prng.chance(0.6);
            expect_right(algorithm, call);
        }
    });
}

class EveryUneven : public testing::TestWithParam<Op> {};

TEST_P(EveryUneven, is_right_with_lengths_by_rank) {
    const Op op = GetParam();
    Prng prng(static_cast<std::uint64_t>(op));
    over_ranks_and_roots(op, [&](const Algorithm& algorithm, Call call) {
        for (const std::size_t most : {0U, 3U, 700U, 3000U}) {
            std::vector<std::size_t> lengths(call.ranks);
            for (std::size_t rank = 0; rank < lengths.size(); ++rank)
                lengths[rank] = rank * 7 % 4 * most / 3;
            call.in_place = prng.chance(0.5);
            call.concurrent = static_cast<std::uint32_t>(1 + prng.below(3));
            call.segment = 400;
            const Verdict verdict = CollectiveCase(algorithm, call, lengths).check();
            ASSERT_TRUE(verdict.ok) << describe(algorithm, call, verdict) << " most " << most;
        }
    });
}

class EveryReduction : public testing::TestWithParam<Op> {};

TEST_P(EveryReduction, cuts_no_element) {
    const Op op = GetParam();
    over_ranks_and_roots(op, [&](const Algorithm& algorithm, Call call) {
        call.octets = std::uint64_t{24} * 111;
        call.grain = 24;
        call.segment = 500;
        const Call whole = even(call);
        for (call.rank = 0; call.rank < call.ranks; ++call.rank) {
            Plan plan;
            algorithm.make(even(call), plan);
            for (const abi::Step& step : plan.steps()) {
                ASSERT_EQ(step.length % 24, 0U) << algorithm.name << ' ' << whole.ranks;
                ASSERT_EQ(step.offset % 24, 0U) << algorithm.name << ' ' << whole.ranks;
            }
        }
    });
}

constexpr auto kNameOf = [](const auto& op) {
    return std::string(coll::name_of(static_cast<Op>(op.param)));
};
INSTANTIATE_TEST_SUITE_P(Of, EveryUneven,
                         testing::Values(Op::kGatherv, Op::kScatterv, Op::kAllgather,
                                         Op::kAlltoallv, Op::kReduceScatter),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(Of, EveryReduction,
                         testing::Values(Op::kReduce, Op::kAllreduce, Op::kReduceScatter, Op::kScan,
                                         Op::kExscan),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(Of, EveryOperation, testing::Range<std::uint8_t>(0, coll::kOps), kNameOf);

/// Bytes that a rank of a reduction moves, besides those that it receives and sends.
struct Moved {
    std::uint64_t copied = 0;
    std::uint64_t folded = 0;
    std::uint64_t scratch = 0;

    bool operator==(const Moved&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Moved& moved) {
    return out << moved.copied << " copied, " << moved.folded << " folded, " << moved.scratch
               << " of scratch";
}
Moved moved_by(const char* name, const Call& call) {
    Plan plan;
    named(call.op, name).make(call, plan);
    Moved moved{.scratch = plan.schedule().scratch_octets};
    for (const abi::Step& step : plan.steps()) {
        if (!abi::is_local(step.kind)) continue;
        (step.kind == abi::StepKind::kCopy ? moved.copied : moved.folded) += step.length;
    }
    return moved;
}

TEST(coll_schedules, reductions_copy_no_operand_that_need_not_be) {
    constexpr std::uint64_t kLong = 64000;
    constexpr std::uint64_t kWindow = 8000;  // in segments
    Call call{.op = Op::kReduce, .rank = 1, .ranks = 4, .octets = kLong, .segment = 1000};
    EXPECT_EQ(moved_by("chain", call), (Moved{0, kLong, kWindow}));
    call.rank = 0;
    EXPECT_EQ(moved_by("chain", call), (Moved{0, kLong, 0}));
    EXPECT_EQ(moved_by("flat", call), (Moved{0, 3 * kLong, kWindow}));
    call.in_place = true;
    EXPECT_EQ(moved_by("chain", call), (Moved{0, kLong, kWindow}));
    call.op = Op::kScan;
    call.rank = 2;
    EXPECT_EQ(moved_by("chain", call), (Moved{0, kLong, kWindow}));
    call.in_place = false;
    EXPECT_EQ(moved_by("chain", call), (Moved{0, kLong, 0}));
    EXPECT_EQ(moved_by("doubling", call), (Moved{0, 2 * kLong, kLong}));
    call.op = Op::kExscan;
    EXPECT_EQ(moved_by("chain", call), (Moved{0, kLong, kWindow}));
    call.rank = 3;
    EXPECT_EQ(moved_by("chain", call), (Moved{0, 0, 0}));
    call.rank = 1;
    call.ranks = 2;
    EXPECT_EQ(moved_by("doubling", call), (Moved{0, 0, 0}));
}

TEST(coll_schedules, a_subset_ends_at_64_ranks_and_scans_go_on) {
    for (const std::uint16_t ranks : {63, 64, 65, 70}) {
        for (const Op op : {Op::kScan, Op::kExscan}) {
            const Call call{.op = op, .ranks = ranks, .octets = 3, .segment = 512};
            expect_right(named(op, "multicast"), call);
        }
    }
}

TEST(coll_schedules, a_barrier_is_right_with_any_k) {
    for (const std::uint32_t k : {1U, 2U, 3U, 5U, 16U, 100U}) {
        over_ranks_and_roots(Op::kBarrier, [&](const Algorithm& algorithm, Call call) {
            call.segment = 512;
            call.concurrent = k;
            expect_right(algorithm, call);
        });
    }
}

TEST(coll_schedules, multicast_algorithms_put_each_octet_on_the_wire_once) {
    const Call broadcast{
        .op = Op::kBroadcast, .ranks = 9, .root = 4, .octets = 5000, .segment = 400};
    EXPECT_EQ(CollectiveCase(named(Op::kBroadcast, "multicast"), broadcast).check().wire_octets,
              5000U);
    EXPECT_EQ(CollectiveCase(named(Op::kBroadcast, "binomial"), broadcast).check().wire_octets,
              8 * 5000U);
    const Call allgather{.op = Op::kAllgather, .ranks = 9, .octets = 5000, .segment = 400};
    for (const char* name : {"round_robin", "concurrent"}) {
        const Verdict verdict = CollectiveCase(named(Op::kAllgather, name), allgather).check();
        EXPECT_EQ(verdict.wire_octets, 9 * 5000U) << name;
    }
    EXPECT_EQ(
        CollectiveCase(named(Op::kBarrier, "gather_broadcast"), {.ranks = 9}).check().wire_messages,
        9U);
}

TEST(coll_schedules, a_chain_barrier_is_ranks_messages_and_one_chain_never_two_at_a_time) {
    const Algorithm& chain = named(Op::kBarrier, "chain");
    for (const std::uint32_t k : {1U, 2U, 4U, 15U}) {
        const Call call{.op = Op::kBarrier, .ranks = 16, .concurrent = k};
        const Verdict verdict = CollectiveCase(chain, call).check();
        EXPECT_EQ(verdict.wire_messages, 16U) << k;
        EXPECT_EQ(verdict.buffers, k) << "the first of each chain at member 0";
    }
}

TEST(coll_schedules, any_length_has_a_bounded_number_of_steps) {
    constexpr std::uint64_t kHuge = std::uint64_t{40} << 30;
    for (const Algorithm& algorithm : coll::algorithms()) {
        for (const std::uint16_t ranks : {2, 5, 64}) {
            Plan plan;
            algorithm.make(even({.op = algorithm.op,
                                 .rank = 1,
                                 .ranks = ranks,
                                 .octets = kHuge,
                                 .segment = 65536,
                                 .concurrent = 1}),
                           plan);
            EXPECT_LE(plan.steps().size(), 5 * coll::kSegmentsMax) << algorithm.name;
            std::uint64_t received = 0;
            for (const abi::Step& step : plan.steps()) {
                if (step.kind == abi::StepKind::kRecv) received += step.length;
            }
            if (algorithm.op == Op::kBroadcast) {
                EXPECT_EQ(received, kHuge) << algorithm.name;
            } else if (algorithm.op == Op::kAllgather || algorithm.name == "pairwise") {
                EXPECT_EQ(received, (ranks - 1) * kHuge) << algorithm.name;
            }
        }
    }
}

TEST(coll_schedules, beyond_32_bits_they_fit_together_too) {
    constexpr std::uint64_t kHuge = (std::uint64_t{11} << 30) + 24;
    for (const Algorithm& algorithm : coll::algorithms()) {
        for (const std::uint16_t ranks : {1, 2, 3, 6}) {
            Call call{.op = algorithm.op,
                      .ranks = ranks,
                      .root = static_cast<std::uint16_t>(ranks - 1),
                      .octets = kHuge,
                      .grain = 8,
                      .segment = std::uint64_t{3} << 30};
            call = even(call);
            std::vector<Plan> plans(ranks);
            std::vector<abi::Schedule> schedules;
            for (call.rank = 0; call.rank < ranks; ++call.rank) {
                algorithm.make(call, plans[call.rank]);
                schedules.push_back(plans[call.rank].schedule());
            }
            const Verdict verdict = check_fit(schedules, ranks * kHuge);
            EXPECT_TRUE(verdict.ok) << describe(algorithm, call, verdict);
        }
    }
}

TEST(coll_schedules, choices_are_parsed_or_refused) {
    coll::Choice choice;
    ASSERT_EQ(coll::parse_choice(Op::kAllgather, "concurrent:7@1000", choice), Err::kOk);
    EXPECT_EQ(choice.concurrent, 7U);
    EXPECT_EQ(choice.segment, 1000U);
    for (const char* wrong :
         {"", "concurrent:", "concurrent:0", "concurrent:x", "concurrent@", "concurrent@0",
          "concurrent@-1", "concurrent:99999999999", "binomial", "concurrent:1x", "@5"}) {
        EXPECT_EQ(coll::parse_choice(Op::kAllgather, wrong, choice), Err::kInvalid) << wrong;
    }
}

// ---- the checker finds what is planted ----------------------------------------------------------

/// A correct broadcast of 8 bytes by unicast from rank 0 to rank 1. The tests then plant errors.
struct Planted : testing::Test {
    Planted() {
        plans.resize(2);
        sent = plans[0].send(1, {BufferId::kOutput, 0, 8});
        received = plans[1].receive(0, {BufferId::kOutput, 0, 8});
        goals.push_back(goal_of({.op = Op::kBroadcast, .rank = 0, .ranks = 2, .octets = 8}));
        goals.push_back(goal_of({.op = Op::kBroadcast, .rank = 1, .ranks = 2, .octets = 8}));
    }
    [[nodiscard]] Verdict check() const {
        return check_schedules({plans[0].schedule(), plans[1].schedule()}, goals);
    }
    void expect_bad(std::uint16_t rank, std::uint32_t step, const std::string& what) const {
        const Verdict verdict = check();
        EXPECT_FALSE(verdict.ok);
        EXPECT_EQ(verdict.rank, rank) << verdict.what;
        EXPECT_EQ(verdict.step, step) << verdict.what;
        EXPECT_NE(verdict.what.find(what), std::string::npos) << verdict.what;
    }
    std::vector<Plan> plans;
    std::vector<RankGoal> goals;
    std::uint32_t sent, received;
};

TEST_F(Planted, nothing_wrong_passes) { EXPECT_TRUE(check().ok) << check().what; }

TEST_F(Planted, a_length_that_differs) {
    plans[1].steps()[received].length = 7;
    expect_bad(1, received, "length differs");
}

TEST_F(Planted, a_receive_without_its_message) {
    const std::uint32_t extra = plans[1].receive(0, {BufferId::kOutput, 0, 0});
    expect_bad(1, extra, "never sent");
}

TEST_F(Planted, a_message_without_its_receive) {
    const std::uint32_t extra = plans[0].send(1, {BufferId::kOutput, 0, 1});
    expect_bad(0, extra, "never received");
}

TEST_F(Planted, a_multicast_that_one_member_forgets) {
    plans[0].clear();
    plans[0].multicast({BufferId::kOutput, 0, 8});
    EXPECT_TRUE(check().ok) << check().what;
    plans[1].clear();
    expect_bad(0, 0, "never received");
}

TEST_F(Planted, a_range_outside_its_buffer) {
    plans[1].steps()[received].offset = 1;
    expect_bad(1, received, "outside its buffer");
}

TEST_F(Planted, octets_that_nothing_wrote) {
    goals[0].output.assign(8, 0);
    expect_bad(0, sent, "nothing has written");
}

TEST_F(Planted, two_messages_in_the_wrong_order) {
    plans[0].clear();
    plans[0].send(1, {BufferId::kOutput, 4, 4});
    plans[0].send(1, {BufferId::kOutput, 0, 4});
    plans[1].clear();
    plans[1].receive(0, {BufferId::kOutput, 0, 4});
    plans[1].receive(0, {BufferId::kOutput, 4, 4});
    expect_bad(1, 0, "ends wrong");
}

TEST_F(Planted, a_send_that_does_not_wait_for_what_it_sends) {
    const std::uint32_t back = plans[1].send(0, {BufferId::kOutput, 0, 8});
    plans[0].after(sent).receive(1, {BufferId::kOutput, 0, 8});
    expect_bad(1, back, "races with step 0");
}

/// An allreduce of one byte over three ranks; the last rank folds in the order that is given.
Verdict planted_fold(bool in_order, bool same_brackets) {
    const Call call{.op = Op::kAllreduce, .ranks = 3, .octets = 1, .segment = 64};
    CollectiveCase cluster(named(Op::kAllreduce, "multicast"), call);
    Plan& plan = cluster.plans[2];
    plan.clear();
    plan.multicast({BufferId::kInput, 0, 1});
    const coll::Range output{BufferId::kOutput, 0, 1};
    const coll::Range input{BufferId::kInput, 0, 1};
    const coll::Range zero = plan.scratch(1);
    const coll::Range one = plan.scratch(1);
    const std::uint32_t zeroth = plan.receive(0, zero);
    const std::uint32_t first = plan.receive(1, one);
    const coll::Range& left = in_order ? zero : one;
    const coll::Range& right = in_order ? one : zero;
    if (same_brackets) {
        const std::uint32_t begun = plan.after(zeroth).after(first).copy(output, left);
        const std::uint32_t inner = plan.after(begun).reduce(output, output, right);
        plan.after(inner).reduce(output, output, input);
    } else {
        const std::uint32_t inner = plan.after(first).reduce(right, right, input);
        plan.after(zeroth).after(inner).reduce(output, left, right);
    }
    return cluster.check();
}

TEST(planted, a_fold_in_another_order_or_with_other_brackets) {
    EXPECT_TRUE(planted_fold(true, true).ok) << planted_fold(true, true).what;
    EXPECT_NE(planted_fold(false, true).what.find("does not come next"), std::string::npos);
    EXPECT_NE(planted_fold(true, false).what.find("folded unlike"), std::string::npos)
        << planted_fold(true, false).what;
}

TEST_F(Planted, a_circle_of_waiting_ranks) {
    plans[0].clear();
    plans[1].clear();
    plans[0].after(plans[0].receive(1, {})).send(1, {BufferId::kOutput, 0, 8});
    plans[1].after(plans[1].receive(0, {BufferId::kOutput, 0, 8})).send(0, {});
    expect_bad(0, 0, "deadlock");
}

TEST(planted, a_barrier_that_forgets_one_member) {
    for (const char* name : {"gather_broadcast", "dissemination", "chain"}) {
        CollectiveCase cluster(named(Op::kBarrier, name), {.op = Op::kBarrier, .ranks = 4});
        ASSERT_TRUE(cluster.check().ok);
        for (Plan& plan : cluster.plans) {
            for (abi::Step& step : plan.steps()) {
                if (step.depends_count > 0) --step.depends_count;
            }
        }
        const Verdict verdict = cluster.check();
        EXPECT_FALSE(verdict.ok) << name;
        EXPECT_NE(verdict.what.find("without waiting"), std::string::npos) << verdict.what;
    }
}

TEST(planted, a_ring_that_skips_a_dependency_is_a_race) {
    const Call call{.op = Op::kAllgather, .ranks = 4, .octets = 8, .segment = 64};
    CollectiveCase cluster(named(Op::kAllgather, "ring"), call);
    ASSERT_TRUE(cluster.check().ok);
    std::uint32_t spoilt = 0;
    for (abi::Step& step : cluster.plans[2].steps()) {
        if (step.kind == abi::StepKind::kSend && step.depends_count > 0) {
            step.depends_count = 0;
            break;
        }
        ++spoilt;
    }
    const Verdict verdict = cluster.check();
    EXPECT_FALSE(verdict.ok);
    EXPECT_EQ(verdict.rank, 2U);
    EXPECT_EQ(verdict.step, spoilt);
}

}  // namespace
}  // namespace ulc::sim
