// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter of small vectors: each rank multicasts its whole vector, and folds its own block
// of all. One latency.
#include "coll/algorithm.h"
#include "coll/algorithms/fold.h"

namespace ulc::coll {

void reduce_scatter_multicast(const Call& call, Plan& plan) {
    using abi::BufferId;
    const Range vector = given(call);
    const Range block = call.in.range(call.rank, vector.buffer);
    const Range output{BufferId::kOutput, 0, block.length};
    const Range result = call.in_place ? plan.scratch(block.length) : output;
    const std::uint32_t sent = call.ranks > 1 ? plan.multicast(vector) : kNoStep;
    Slots slots(plan, vector.length);
    Fold fold(plan, result);
    for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
        if (rank == call.rank) {
            fold.add(block);
        } else {
            fold.receive(static_cast<std::uint16_t>(rank), vector.length, slots, block.offset);
        }
    }
    const std::uint32_t folded = fold.done();
    if (call.in_place) plan.after(folded).after(sent).copy(output, result);
}

}  // namespace ulc::coll
