// SPDX-License-Identifier: BSD-3-Clause
// The tournament of pairs: in round t of ranks rounds, r meets (t − r) mod ranks, which meets r. So
// in a round each port sends one block and takes one, both between the same two, and the
// acknowledgement of each rides on the other (GAMMA §3.3.2.3, Oxford BSP). A rank that meets itself
// rests.
#pragma once

#include <cstdint>
#include <vector>

#include "coll/plan.h"

namespace ulc::coll {

[[nodiscard]] inline std::uint16_t partner_of(std::uint32_t rank, std::uint32_t round,
                                              std::uint32_t ranks) noexcept {
    return static_cast<std::uint16_t>((round + ranks - rank) % ranks);
}

/// Holds a round's sends back until the data of the round k before have come, so that no sender
/// runs ahead and overloads a port.
class Pace {
public:
    explicit Pace(std::uint32_t k) : k_(k) {}
    [[nodiscard]] std::uint32_t of(std::uint32_t round) const noexcept {
        return round < k_ ? kNoStep : last_[round - k_];
    }
    void received(std::uint32_t step) { last_.push_back(step); }

private:
    std::uint32_t k_;
    std::vector<std::uint32_t> last_;  ///< last receive of each round
};

}  // namespace ulc::coll
