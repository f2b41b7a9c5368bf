// SPDX-License-Identifier: BSD-3-Clause
// Allreduce of small vectors: each rank multicasts its own, and folds all in the order of ranks.
// One latency; ranks messages, and every port carries all of them.
#include <algorithm>
#include <vector>

#include "coll/algorithm.h"
#include "coll/algorithms/fold.h"

namespace ulc::coll {

void allreduce_multicast(const Call& call, Plan& plan) {
    std::uint32_t kept = kNoStep;
    const Range own = keep_given(call, plan, kept);
    const Range output{abi::BufferId::kOutput, 0, call.octets};
    const Segments segments = segments_of(call, call.octets);
    Slots slots(plan, segments.longest());
    std::vector<std::uint32_t> folded;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        const Range mine = segments.of(own, i);
        // No rank sends more than two segments beyond those that it has from all; so at most four
        // of one wait at the slowest.
        if (call.ranks > 1) plan.after(kept).after(i < 2 ? kNoStep : folded[i - 2]).multicast(mine);
        Fold fold(plan, segments.of(output, i), kept);
        for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
            if (rank == call.rank) {
                fold.add(mine);
            } else {
                fold.receive(static_cast<std::uint16_t>(rank), slots);
            }
        }
        folded.push_back(fold.done());
    }
}

}  // namespace ulc::coll
