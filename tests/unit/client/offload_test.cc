// SPDX-License-Identifier: BSD-3-Clause
// Tests which schedules the library hands to the engine: every schedule without reductions that
// ships, if it is made for early messages, and none whose data an early message would overwrite.
#include "client/collective/offload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "coll/algorithm.h"
#include "tests/sim/schedule/goals.h"

namespace ulc::sim {
namespace {

using abi::BufferId;
using client::OffloadRun;
using coll::Algorithm;
using coll::Call;
using coll::Op;
using coll::Plan;
using coll::Range;

constexpr std::uint16_t kRanks[] = {2, 3, 4, 5, 6, 7, 8, 11, 13, 16};

std::string describe(const Algorithm& algorithm, const Call& call) {
    return std::string(coll::name_of(call.op)) + " " + std::string(algorithm.name) + " ranks " +
           std::to_string(call.ranks) + " root " + std::to_string(call.root) + " octets " +
           std::to_string(call.octets) + (call.in_place ? " in place" : "");
}

bool has_root(Op op) {
    return op != Op::kBarrier && op != Op::kAllgather && op != Op::kAlltoall &&
           op != Op::kAlltoallv;
}

/// try_one(algorithm, call) for every algorithm without reductions.
template <typename TryOne>
void over_exchanges(TryOne try_one) {
    Prng prng(1);
    for (const Algorithm& algorithm : coll::algorithms()) {
        if (is_reduction(algorithm.op)) continue;
        for (const std::uint16_t ranks : kRanks) {
            for (const std::uint64_t octets : {0U, 1U, 1000U, 5000U}) {
                Call call{.op = algorithm.op, .ranks = ranks, .octets = octets};
                if (has_root(call.op)) call.root = static_cast<std::uint16_t>(prng.below(ranks));
                call.in_place = prng.chance(0.5);
                call.concurrent = static_cast<std::uint32_t>(1 + prng.below(4));
                call.segment = prng.chance(0.6) ? 600 : 65536;
                call.early = true;
                try_one(algorithm, call);
                if (testing::Test::HasFatalFailure()) return;
            }
        }
    }
}

TEST(ScheduleForTheEngine, is_every_one_without_reductions) {
    std::set<std::string> pass_on;
    over_exchanges([&](const Algorithm& algorithm, const Call& call) {
        const CollectiveCase all(algorithm, call);
        const Verdict verdict = all.check();
        ASSERT_TRUE(verdict.ok) << describe(algorithm, call) << ": rank " << verdict.rank
                                << " step " << verdict.step << ": " << verdict.what;
        for (const abi::Schedule& schedule : all.schedules()) {
            const OffloadRun::Judgement judgement = OffloadRun::judge(schedule);
            ASSERT_TRUE(judgement.suits) << describe(algorithm, call);
            if (judgement.passes_on)
                pass_on.insert(std::string(coll::name_of(call.op)) + " " +
                               std::string(algorithm.name));
        }
    });
    EXPECT_EQ(pass_on, (std::set<std::string>{"broadcast binomial", "gather binomial",
                                              "scatter binomial", "allgather ring"}));
}

TEST(ScheduleForTheEngine, is_every_one_with_lengths_by_rank) {
    over_exchanges([](const Algorithm& algorithm, const Call& call) {
        if (!is_uneven(call.op) && call.op != Op::kAllgather) return;
        std::vector<std::size_t> lengths(call.ranks);
        for (std::size_t rank = 0; rank < lengths.size(); ++rank)
            lengths[rank] = rank * 7 % 4 * call.octets / 3;
        const CollectiveCase all(algorithm, call, lengths);
        const Verdict verdict = all.check();
        ASSERT_TRUE(verdict.ok) << describe(algorithm, call) << ": rank " << verdict.rank
                                << " step " << verdict.step << ": " << verdict.what;
        for (const abi::Schedule& schedule : all.schedules())
            ASSERT_TRUE(OffloadRun::judge(schedule).suits) << describe(algorithm, call);
    });
}

// Made for the library, these schedules receive into memory from which an earlier step still reads.
// They are the reason for Call::early.
TEST(ScheduleForTheEngine, is_none_that_receives_where_an_earlier_step_reads) {
    for (const auto& [op, name] :
         {std::pair(Op::kAlltoall, "pairwise"), std::pair(Op::kAlltoallv, "pairwise"),
          std::pair(Op::kAlltoall, "multicast")}) {
        const Algorithm* algorithm = coll::find_algorithm(op, name);
        ASSERT_NE(algorithm, nullptr);
        const Call call{.op = op, .ranks = 13, .octets = 40, .in_place = true, .segment = 600};
        const CollectiveCase all(*algorithm, call);
        for (const abi::Schedule& schedule : all.schedules())
            EXPECT_FALSE(OffloadRun::judge(schedule).suits) << describe(*algorithm, call);
    }
}

Range output(std::uint64_t offset, std::uint64_t length) {
    return {BufferId::kOutput, offset, length};
}

TEST(ScheduleForTheEngine, passes_on_what_came_before) {
    Plan plan;
    const std::uint32_t first = plan.receive(1, output(0, 8));
    const std::uint32_t second = plan.receive(1, output(8, 8));
    plan.after(first).after(second).send(2, output(4, 8));
    EXPECT_TRUE(OffloadRun::judge(plan.schedule()).suits);
    EXPECT_TRUE(OffloadRun::judge(plan.schedule()).passes_on);

    Plan apart;
    apart.receive(1, output(0, 8));
    apart.send(2, output(8, 8));
    apart.send(2, {BufferId::kInput, 0, 8});
    EXPECT_TRUE(OffloadRun::judge(apart.schedule()).suits);
    EXPECT_FALSE(OffloadRun::judge(apart.schedule()).passes_on);
}

TEST(ScheduleForTheEngine, is_none_whose_octets_an_early_message_would_spoil) {
    Plan over_sent;
    over_sent.after(over_sent.send(1, output(0, 8))).receive(1, output(7, 8));
    EXPECT_FALSE(OffloadRun::judge(over_sent.schedule()).suits);

    Plan over_received;
    over_received.after(over_received.receive(1, output(0, 8))).receive(2, output(0, 1));
    EXPECT_FALSE(OffloadRun::judge(over_received.schedule()).suits);

    Plan behind_a_long_one;  // not the neighbour in memory
    const std::uint32_t sent = behind_a_long_one.send(1, output(0, 100));
    behind_a_long_one.send(1, output(10, 8));
    behind_a_long_one.after(sent).receive(1, output(50, 8));
    EXPECT_FALSE(OffloadRun::judge(behind_a_long_one.schedule()).suits);
}

TEST(ScheduleForTheEngine, copies_before_and_after_its_messages_only) {
    Plan around;
    const Range scratch = around.scratch(8);
    const std::uint32_t before = around.copy(scratch, {BufferId::kInput, 0, 8});
    const std::uint32_t received =
        around.after(around.after(before).send(1, scratch)).receive(1, output(0, 8));
    around.after(around.after(received).copy(output(8, 8), output(0, 8))).join();
    EXPECT_TRUE(OffloadRun::judge(around.schedule()).suits);

    Plan between;
    const std::uint32_t came = between.receive(1, output(0, 8));
    const std::uint32_t copied = between.after(came).copy(output(8, 8), output(0, 8));
    const std::uint32_t joined = between.after(copied).join();
    EXPECT_TRUE(OffloadRun::judge(between.schedule()).suits);
    between.after(joined).send(2, output(8, 8));
    EXPECT_FALSE(OffloadRun::judge(between.schedule()).suits);

    Plan folds;
    folds.after(folds.receive(1, output(0, 8))).reduce(output(8, 8), output(8, 8), output(0, 8));
    EXPECT_FALSE(OffloadRun::judge(folds.schedule()).suits);
}

TEST(ScheduleForTheEngine, has_messages_and_not_too_many) {
    Plan plan;
    plan.copy(output(0, 8), {BufferId::kInput, 0, 8});
    EXPECT_FALSE(OffloadRun::judge(plan.schedule()).suits);
    while (plan.steps().size() < 4096)
        plan.receive(1, {});
    EXPECT_TRUE(OffloadRun::judge(plan.schedule()).suits);
    plan.receive(1, {});
    EXPECT_FALSE(OffloadRun::judge(plan.schedule()).suits);
}

}  // namespace
}  // namespace ulc::sim
