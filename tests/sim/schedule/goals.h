// SPDX-License-Identifier: BSD-3-Clause
// The results that each operation promises, as goals for the global-program checker, and all ranks'
// schedules of one call.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/algorithm.h"
#include "tests/sim/schedule/checker.h"

namespace ulc::sim {

/// Returns bytes 0 … octets-1 that come from `rank`. rank < 4095, octets ≤ 2^20.
[[nodiscard]] Symbols contribution(std::uint16_t rank, std::uint64_t octets);

/// Returns the memory of call.rank before and after the call, whose blocks are filled in.
[[nodiscard]] RankGoal goal_of(const coll::Call& call);

[[nodiscard]] bool is_reduction(coll::Op op);
/// Returns true if the operation has lengths by rank, of which not every rank knows all.
[[nodiscard]] bool is_uneven(coll::Op op);

/// Returns a call with equal blocks: call.octets is one of them, if the operation has any.
[[nodiscard]] coll::Call even(coll::Call call);

/// One call of one algorithm at every rank.
struct CollectiveCase {
    /// Equal blocks, as in even().
    CollectiveCase(const coll::Algorithm& algorithm, const coll::Call& call);
    /// The block of rank r has lengths[r] bytes (in a total exchange: from s to d lengths[(s + 2 d)
    /// mod ranks], in place lengths[(s + d) mod ranks]), behind the block of r + 1 and with a gap
    /// in between.
    CollectiveCase(const coll::Algorithm& algorithm, const coll::Call& call,
                   const std::vector<std::size_t>& lengths);
    CollectiveCase(const CollectiveCase&) = delete;
    CollectiveCase& operator=(const CollectiveCase&) = delete;
    [[nodiscard]] std::vector<abi::Schedule> schedules() const;  ///< views of plans
    [[nodiscard]] Verdict check(std::uint32_t buffers_max = UINT32_MAX) const;

    std::vector<coll::Plan> plans;
    std::vector<RankGoal> goals;
    Demands demands;

private:
    void add(const coll::Algorithm& algorithm, const coll::Call& call);
};

}  // namespace ulc::sim
