// SPDX-License-Identifier: BSD-3-Clause
// Allgather around a ring of unicasts: in round t a member passes on to its right neighbour the
// block that came from the left in round t − 1 (its own in round 0). ranks − 1 rounds; each byte
// crosses the wire ranks − 1 times. Segments are passed on as they arrive.
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {

void allgather_ring(const Call& call, Plan& plan) {
    copy_own_block(call, plan);
    if (call.ranks < 2) return;
    const std::uint32_t ranks = call.ranks;
    const auto right = static_cast<std::uint16_t>((call.rank + 1U) % ranks);
    const auto left = static_cast<std::uint16_t>((call.rank + ranks - 1U) % ranks);
    std::vector<std::uint32_t> there;  // of the outgoing block: the step that brought each segment
    Window sends;
    Window receives;
    for (std::uint32_t round = 0; round + 1 < ranks; ++round) {
        const std::uint32_t outgoing = (call.rank + ranks - round) % ranks;
        const std::uint32_t incoming = (outgoing + ranks - 1) % ranks;
        const Range from =
            round == 0 ? own_block(call) : call.out.range(outgoing, abi::BufferId::kOutput);
        const Range into = call.out.range(incoming, abi::BufferId::kOutput);
        const Segments out = segments_of(call, from.length);
        const Segments in = segments_of(call, into.length);
        for (std::uint32_t i = 0; i < out.count(); ++i) {
            plan.after(round == 0 ? sends.leaving() : there[i]);
            sends.push(plan.send(right, out.of(from, i)));
        }
        there.clear();
        for (std::uint32_t i = 0; i < in.count(); ++i) {
            plan.after(receives.leaving());
            there.push_back(receives.push(plan.receive(left, in.of(into, i))));
        }
    }
}

}  // namespace ulc::coll
