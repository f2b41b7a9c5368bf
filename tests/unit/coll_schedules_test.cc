// Every schedule that ships, for every small number of ranks, size and root, proved by the global-program
// checker; and the checker proved by schedules that are wrong on purpose.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "coll/selection.h"
#include "tests/sim/schedule_goals.h"

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

TEST(coll_schedules, every_barrier_is_right) {
    for (const Algorithm& algorithm : coll::algorithms()) {
        if (algorithm.op != Op::kBarrier) continue;
        for (std::uint16_t ranks = 1; ranks <= kRanksMax; ++ranks) {
            for (const std::uint32_t k : {1U, 2U, 3U, 5U, 100U}) {
                const Call call{
                    .op = Op::kBarrier, .ranks = ranks, .segment = 512, .concurrent = k};
                const Verdict verdict = CollectiveCase(algorithm, call).check();
                ASSERT_TRUE(verdict.ok) << describe(algorithm, call, verdict);
            }
        }
    }
}

TEST(coll_schedules, every_broadcast_is_right_from_every_root) {
    for (const Algorithm& algorithm : coll::algorithms()) {
        if (algorithm.op != Op::kBroadcast) continue;
        for (std::uint16_t ranks = 1; ranks <= kRanksMax; ++ranks) {
            for (std::uint16_t root = 0; root < ranks; ++root) {
                for (const std::uint64_t octets : kSizes) {
                    for (const std::uint64_t segment : {400U, 65536U}) {
                        const Call call{.op = Op::kBroadcast,
                                        .ranks = ranks,
                                        .root = root,
                                        .octets = octets,
                                        .segment = segment};
                        const Verdict verdict = CollectiveCase(algorithm, call).check();
                        ASSERT_TRUE(verdict.ok) << describe(algorithm, call, verdict);
                    }
                }
            }
        }
    }
}

TEST(coll_schedules, every_allgather_is_right_in_place_and_out_of_place) {
    for (const Algorithm& algorithm : coll::algorithms()) {
        if (algorithm.op != Op::kAllgather) continue;
        for (std::uint16_t ranks = 1; ranks <= kRanksMax; ++ranks) {
            for (const std::uint64_t octets : kSizes) {
                for (const std::uint32_t k : {1U, 3U}) {
                    const Call call{.op = Op::kAllgather,
                                    .ranks = ranks,
                                    .octets = octets,
                                    .in_place = k == 3,
                                    .segment = 600,
                                    .concurrent = k};
                    const Verdict verdict = CollectiveCase(algorithm, call).check();
                    ASSERT_TRUE(verdict.ok) << describe(algorithm, call, verdict);
                }
            }
        }
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

TEST(coll_schedules, buffers_needed_are_bounded_whatever_the_length) {
    for (const std::uint64_t octets : {5000U, 50000U}) {
        const Call call{.op = Op::kAllgather, .ranks = 5, .octets = octets, .segment = 500};
        EXPECT_LE(CollectiveCase(named(Op::kAllgather, "round_robin"), call).check().buffers, 4U);
        EXPECT_LE(CollectiveCase(named(Op::kAllgather, "concurrent"), call).check().buffers,
                  2 * 4U);
        Call k3 = call;
        k3.concurrent = 3;
        EXPECT_LE(CollectiveCase(named(Op::kAllgather, "concurrent"), k3).check().buffers,
                  2 * 3 * 4U);
    }
}

TEST(coll_schedules, any_length_has_a_bounded_number_of_steps) {
    constexpr std::uint64_t kHuge = std::uint64_t{40} << 30;
    for (const Algorithm& algorithm : coll::algorithms()) {
        for (const std::uint16_t ranks : {2, 5, 64}) {
            Plan plan;
            algorithm.make(
                {.op = algorithm.op, .rank = 1, .ranks = ranks, .octets = kHuge, .segment = 65536},
                plan);
            EXPECT_LE(plan.steps().size(), 4 * coll::kSegmentsMax) << algorithm.name;
            std::uint64_t received = 0;
            for (const abi::Step& step : plan.steps()) {
                if (step.kind == abi::StepKind::kRecv) received += step.length;
            }
            if (algorithm.op == Op::kBroadcast) {
                EXPECT_EQ(received, kHuge) << algorithm.name;
            } else if (algorithm.op == Op::kAllgather) {
                EXPECT_EQ(received, (ranks - 1) * kHuge) << algorithm.name;
            }
        }
    }
}

TEST(coll_schedules, every_choice_of_the_table_exists_and_every_call_has_one) {
    for (const coll::Rule& rule : coll::rules()) {
        coll::Choice choice;
        EXPECT_EQ(coll::parse_choice(rule.op, rule.choice, choice), Err::kOk) << rule.choice;
    }
    for (const Op op : {Op::kBarrier, Op::kBroadcast, Op::kAllgather}) {
        EXPECT_NE(coll::select(op, UINT16_MAX, UINT64_MAX).algorithm, nullptr);
        EXPECT_NE(coll::select(op, 1, 0).algorithm, nullptr);
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

/// Two ranks that broadcast 8 octets by unicast from 0: right, to be spoilt.
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
