// SPDX-License-Identifier: BSD-3-Clause
// Every message of a collective says whether it is the last of its pair (abi::kTagLast). This test
// runs every shipped schedule and checks that both ends agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coll/algorithm.h"
#include "exec/executor.h"
#include "tests/sim/schedule/goals.h"

namespace ulc::sim {
namespace {

using abi::BufferId;
using coll::Algorithm;
using coll::Call;
using coll::Plan;

/// Records whether the messages between each pair of members, by schedule, say that they are the
/// last.
class Lasts {
public:
    explicit Lasts(const std::vector<Plan>& plans) {
        const auto ranks = static_cast<std::uint16_t>(plans.size());
        static unsigned char memory;  // none of it is touched
        for (std::uint16_t rank = 0; rank < ranks; ++rank) {
            exec::Setup setup{.members = ranks, .self = rank, .input = &memory};
            setup.output = setup.scratch = &memory;
            for (std::uint64_t& octets : setup.octets)
                octets = UINT64_C(1) << 40;
            setup.reduce.apply = [](void*, unsigned char*, const unsigned char*,
                                    const unsigned char*, std::uint64_t) noexcept {};
            abi::Schedule schedule = plans[rank].schedule();
            schedule.scratch_octets = setup.octets[2];
            auto made = exec::Executor::make(schedule, setup);
            EXPECT_TRUE(made.ok());
            if (made.ok()) add(made.value(), schedule.step_count, rank, ranks);
        }
    }
    /// True if the last message of each pair, and no other, is marked at both ends.
    [[nodiscard]] bool agree() const {
        const auto one_at_the_end = [](const auto& pair) {
            const std::string& said = pair.second;
            return said.find('1') == said.size() - 1;
        };
        return sent_ == taken_ && std::ranges::all_of(sent_, one_at_the_end);
    }

private:
    using Said = std::map<std::pair<std::uint16_t, std::uint16_t>, std::string>;

    void add(const exec::Executor& executor, std::uint32_t steps, std::uint16_t rank,
             std::uint16_t ranks) {
        for (std::uint32_t i = 0; i < steps; ++i) {
            const abi::Step& step = executor.step(i);
            const char last = executor.is_last(i) ? '1' : '0';
            if (step.kind == abi::StepKind::kRecv) taken_[{step.peer, rank}] += last;
            if (step.kind == abi::StepKind::kSend) sent_[{rank, step.peer}] += last;
            if (step.kind != abi::StepKind::kMcast) continue;
            for (std::uint16_t to = 0; to < ranks; ++to)
                if (to != rank && (step.from_offset == 0 || (step.from_offset >> to & 1U) != 0))
                    sent_[{rank, to}] += last;
        }
    }

    Said sent_;
    Said taken_;
};

/// Tries every algorithm over numbers of ranks and, if it has a root, several roots.
template <typename TryOne>
void over_algorithms(TryOne try_one) {
    for (const Algorithm& algorithm : coll::algorithms()) {
        for (const std::uint16_t ranks : {1, 2, 3, 4, 5, 8, 13}) {
            for (const std::uint16_t root : {0, 1, ranks - 1}) {
                Call call{.op = algorithm.op, .ranks = ranks};
                call.root = std::min<std::uint16_t>(root, ranks - 1);
                call.concurrent = root + 1U;
                call.commutative = root != 1;
                try_one(algorithm, call);
                if (testing::Test::HasFatalFailure()) return;
            }
        }
    }
}

std::string describe(const Algorithm& algorithm, const Call& call) {
    return std::string(name_of(algorithm.op)) + ' ' + std::string(algorithm.name) + " ranks " +
           std::to_string(call.ranks) + " root " + std::to_string(call.root) + " octets " +
           std::to_string(call.octets);
}

// C-6
TEST(last_messages, are_known_to_both_ends) {
    over_algorithms([](const Algorithm& algorithm, Call call) {
        for (const std::uint64_t octets : {0U, 40U, 2500U}) {
            call.octets = octets;
            call.segment = 600;
            std::vector<Plan> plans(call.ranks);
            for (call.rank = 0; call.rank < call.ranks; ++call.rank)
                algorithm.make(even(call), plans[call.rank]);
            ASSERT_TRUE(Lasts(plans).agree()) << describe(algorithm, call);
        }
    });
}

TEST(last_messages, of_a_scan_of_more_members_than_a_subset_has_are_known_to_both_ends) {
    Call call{.op = coll::Op::kScan, .ranks = 70, .octets = 3, .segment = 512};
    std::vector<Plan> plans(call.ranks);
    for (call.rank = 0; call.rank < call.ranks; ++call.rank)
        coll::scan_multicast(call, plans[call.rank]);
    EXPECT_TRUE(Lasts(plans).agree());
}

TEST(last_messages, of_uneven_blocks_are_known_to_both_ends) {
    unsigned tried = 0;
    over_algorithms([&tried](const Algorithm& algorithm, Call call) {
        if (!is_uneven(call.op) && call.op != coll::Op::kAllgather) return;
        std::vector<std::size_t> lengths(call.ranks);
        for (std::size_t rank = 0; rank < lengths.size(); ++rank)
            lengths[rank] = rank * 7 % 4 * 700;
        call.segment = 400;
        ASSERT_TRUE(Lasts(CollectiveCase(algorithm, call, lengths).plans).agree())
            << describe(algorithm, call);
        ++tried;
    });
    EXPECT_EQ(tried, 7U * 7 * 3);
}

// C-6
TEST(last_messages, of_a_multicast_that_some_get_more_behind_are_missed) {
    std::vector<Plan> plans(3);
    const coll::Range octet{BufferId::kOutput, 0, 1};
    plans[0].multicast(octet);
    plans[1].receive(0, octet);
    plans[2].receive(0, octet);
    EXPECT_TRUE(Lasts(plans).agree());
    plans[0].send(1, octet);
    plans[1].receive(0, octet);
    EXPECT_FALSE(Lasts(plans).agree());
}

}  // namespace
}  // namespace ulc::sim
