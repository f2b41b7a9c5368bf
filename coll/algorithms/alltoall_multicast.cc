// SPDX-License-Identifier: BSD-3-Clause
// Total exchange of small blocks: every rank multicasts all of its blocks as one message, and takes
// its own out of each. ranks messages instead of ranks · (ranks − 1); every port carries all of the
// bytes. A window of messages has its place in scratch memory; if they may come early, each of
// them.
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {

void alltoall_multicast(const Call& call, Plan& plan) {
    using abi::BufferId;
    const std::uint64_t all = call.in.each * call.ranks;
    const Range from{call.in_place ? BufferId::kOutput : BufferId::kInput, 0, all};
    std::uint32_t sent = kNoStep;
    if (call.ranks > 1) sent = plan.multicast(from);
    if (!call.in_place) {
        plan.copy(call.out.range(call.rank, BufferId::kOutput),
                  call.in.range(call.rank, BufferId::kInput));
    }
    // freed: the step that frees each piece of scratch; early: the arrival of each message.
    Window slots;
    std::vector<Range> pieces;
    for (std::uint32_t i = 0; (call.early || i < kSegmentWindow) && i + 1U < call.ranks; ++i)
        pieces.push_back(plan.scratch(all));
    std::size_t next = 0;
    for (std::uint32_t source = 0; source < call.ranks; ++source) {
        if (source == call.rank) continue;
        const Range piece = pieces[next++ % pieces.size()];
        const std::uint32_t received =
            plan.after(slots.leaving()).receive(static_cast<std::uint16_t>(source), piece);
        const std::uint32_t taken = plan.after(received)
                                        .after(call.in_place ? sent : kNoStep)
                                        .copy(call.out.range(source, BufferId::kOutput),
                                              piece.part(call.rank * call.in.each, call.in.each));
        slots.push(call.early ? received : taken);
    }
}

}  // namespace ulc::coll
