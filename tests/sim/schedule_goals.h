// What each operation promises, as goals for the global-program checker, and all ranks' schedules of one call.
#pragma once

#include <vector>

#include "coll/algorithm.h"
#include "tests/sim/schedule_checker.h"

namespace ulc::sim {

/// Octets 0 … octets-1 that come from `rank`. rank < 4096, octets ≤ 2^20.
[[nodiscard]] Symbols contribution(std::uint16_t rank, std::uint64_t octets);

/// Memory of call.rank before and after the call.
[[nodiscard]] RankGoal goal_of(const coll::Call& call);

/// One call of one algorithm at every rank.
struct CollectiveCase {
    CollectiveCase(const coll::Algorithm& algorithm, coll::Call call);
    [[nodiscard]] std::vector<abi::Schedule> schedules() const;  ///< views of plans
    [[nodiscard]] Verdict check(std::uint32_t buffers_max = UINT32_MAX) const;

    std::vector<coll::Plan> plans;
    std::vector<RankGoal> goals;
    bool barrier;
};

}  // namespace ulc::sim
