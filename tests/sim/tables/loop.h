// SPDX-License-Identifier: BSD-3-Clause
// Loops of ranks: every rank makes its calls back to back, round after round, as URTP §4.1 and
// PCODE §6.2 time them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/counters.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/collective_actor.h"

namespace ulc::sim {

/// One blocking call of a rank. A send returns when its payload may be changed, a receive when its
/// message is there.
struct Call {
    enum class Kind : std::uint8_t { kSend, kMulticast, kReceive };
    Kind kind = Kind::kSend;
    std::uint16_t peer = 0;  ///< not for a multicast, which goes to all
    std::size_t octets = 0;
};
/// The calls of `rank` in a round, in order.
using Round = std::function<std::vector<Call>(std::uint16_t rank, std::size_t round)>;

/// Result of a round. ok false: something failed, was wrong, or did not end in time.
struct LoopTimes {
    bool ok = false;
    double us =
        0;  ///< each rank's time from its first call to its last, by rounds; mean of the ranks
    double median_us = 0;  ///< from one round's end at the last rank to the next one's
    double rounds = 0;
    std::vector<std::uint64_t> counters =
        std::vector<std::uint64_t>(kCounterCount);  ///< sums over all engines, by Counter

    /// Returns a round's share.
    [[nodiscard]] double count(Counter counter) const {
        return static_cast<double>(counters[static_cast<std::size_t>(counter)]) / rounds;
    }
};

/// Loops over messages and checks every byte. The first warm_up rounds are not counted.
[[nodiscard]] LoopTimes loop_of_calls(const ClusterConfig& config, const Round& round,
                                      std::size_t rounds, std::size_t warm_up);
/// Loops over collectives of coll.h, one a round, and checks every byte.
[[nodiscard]] LoopTimes loop_of_collectives(const ClusterConfig& config,
                                            const std::vector<Operation>& operations,
                                            std::size_t warm_up);

}  // namespace ulc::sim
