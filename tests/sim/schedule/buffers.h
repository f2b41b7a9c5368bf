// SPDX-License-Identifier: BSD-3-Clause
// Computes the k of "k-buffer correct": how many messages a member of a global program may have to
// hold that it has not taken yet, in the worst of all executions.
//
// A member's state is the set R of receives that it has done. Events that do not wait for other
// receives of this member continue without it, so that it holds |messages that wait for no receive
// outside R| − |R|. The worst R is a closure of greatest weight: a message (+1) brings the receives
// of this member that it waits for (−1 each). By König, k = |messages| − |the largest matching of
// messages with receives that they wait for|. This covers every execution: the member may be late
// or early, or take the messages in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ulc::sim {

/// The events of a global program, seen from one member.
struct Arrivals {
    /// For each event, those that may happen only after it; and all events in some possible order.
    const std::vector<std::vector<std::size_t>>& next;
    const std::vector<std::size_t>& order;
    std::vector<std::size_t> sent;   ///< a message to this member starts
    std::vector<std::size_t> taken;  ///< this member is done with a receive
};

/// An execution that reaches the worst case: these events happen, and no other of those in
/// question.
struct WorstArrivals {
    std::uint32_t held = 0;          ///< k
    std::vector<std::size_t> sent;   ///< some of Arrivals::sent
    std::vector<std::size_t> taken;  ///< some of Arrivals::taken
};

/// Cost: events · receives / 64, and messages · receives² / 64 at worst.
[[nodiscard]] WorstArrivals worst_arrivals(const Arrivals& arrivals);

}  // namespace ulc::sim
