// The k of "k-buffer correct": how many messages a member of a global program may have to hold that it has not taken yet, in the
// worst of all executions.
//
// A member's state is the set R of receives that it has done. Whatever does not wait for others of its receives goes on without
// it, so that it holds |messages that wait for no receive outside R| − |R|. The worst R is a closure of greatest weight: a message
// (+1) brings the receives of this member that it waits for (−1 each). By König, k = |messages| − |the largest matching of messages
// with receives that they wait for|. Every execution is in it: the member may be late, early, or take what it likes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ulc::sim {

/// What happens in a global program, seen from one member.
struct Arrivals {
    /// Of each event, those that may happen only after it; and all events in some order in which they may.
    const std::vector<std::vector<std::size_t>>& next;
    const std::vector<std::size_t>& order;
    std::vector<std::size_t> sent;   ///< a message to this member starts
    std::vector<std::size_t> taken;  ///< this member is done with a receive
};

/// An execution that comes to the worst: these events happen, and no other of those asked about.
struct WorstArrivals {
    std::uint32_t held = 0;          ///< k
    std::vector<std::size_t> sent;   ///< some of Arrivals::sent
    std::vector<std::size_t> taken;  ///< some of Arrivals::taken
};

/// Cost: events · receives / 64, and messages · receives² / 64 at worst.
[[nodiscard]] WorstArrivals worst_arrivals(const Arrivals& arrivals);

}  // namespace ulc::sim
