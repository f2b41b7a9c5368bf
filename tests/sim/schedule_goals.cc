#include "tests/sim/schedule_goals.h"

#include <algorithm>

namespace ulc::sim {

using coll::Call;
using coll::Op;

Symbols contribution(std::uint16_t rank, std::uint64_t octets) {
    Symbols symbols(octets);
    for (std::uint64_t i = 0; i < octets; ++i)
        symbols[i] = 1 + (static_cast<Symbol>(rank) << 20) + static_cast<Symbol>(i);
    return symbols;
}

RankGoal goal_of(const Call& call) {
    RankGoal goal;
    if (call.op == Op::kBroadcast) {
        goal.expected = contribution(call.root, call.octets);
        goal.output = call.rank == call.root ? goal.expected : Symbols(call.octets, 0);
    } else if (call.op == Op::kAllgather) {
        for (std::uint16_t rank = 0; rank < call.ranks; ++rank) {
            const Symbols block = contribution(rank, call.octets);
            goal.expected.insert(goal.expected.end(), block.begin(), block.end());
            const bool there = call.in_place && rank == call.rank;
            goal.output.insert(goal.output.end(), call.octets, 0);
            if (there) std::copy(block.begin(), block.end(), goal.output.end() - block.size());
        }
        if (!call.in_place) goal.input = contribution(call.rank, call.octets);
    }
    return goal;
}

CollectiveCase::CollectiveCase(const coll::Algorithm& algorithm, Call call)
    : barrier(algorithm.op == Op::kBarrier) {
    plans.resize(call.ranks);
    for (std::uint16_t rank = 0; rank < call.ranks; ++rank) {
        call.rank = rank;
        algorithm.make(call, plans[rank]);
        goals.push_back(goal_of(call));
    }
}

std::vector<abi::Schedule> CollectiveCase::schedules() const {
    std::vector<abi::Schedule> all;
    for (const coll::Plan& plan : plans)
        all.push_back(plan.schedule());
    return all;
}

Verdict CollectiveCase::check(std::uint32_t buffers_max) const {
    return check_schedules(schedules(), goals, barrier, buffers_max);
}

}  // namespace ulc::sim
