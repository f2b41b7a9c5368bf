// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter over a tree of unicasts: a binomial reduction to rank 0, which sends each its
// block.
#include <vector>

#include "coll/algorithms/rooted/reduce_tree.h"

namespace ulc::coll {

void reduce_scatter_binomial(const Call& call, Plan& plan) {
    using abi::BufferId;
    const Range result = plan.scratch(call.rank == 0 ? call.octets : 0);
    TreeReduction tree(call, Shape::kBinomial, 0, given(call), result, plan);
    std::vector<std::uint32_t> steps;
    for (std::uint32_t i = 0; i < tree.segments().count(); ++i)
        steps.push_back(tree.segment(i));
    const std::uint32_t reduced = plan.after_all(steps).join();
    const Range own{BufferId::kOutput, 0, call.in.length(call.rank)};
    if (call.rank != 0) {
        const Segments segments = segments_of(call, own.length);
        Window window;
        for (std::uint32_t i = 0; i < segments.count(); ++i) {
            plan.after(call.in_place ? reduced : kNoStep).after(window.leaving());
            window.push(plan.receive(0, segments.of(own, i)));
        }
        return;
    }
    plan.after(reduced).copy(own,
                             result.part(call.in.range(0, BufferId::kScratch).offset, own.length));
    Window window;
    for (std::uint16_t rank = 1; rank < call.ranks; ++rank) {
        const Range block =
            result.part(call.in.range(rank, BufferId::kScratch).offset, call.in.length(rank));
        const Segments segments = segments_of(call, block.length);
        for (std::uint32_t i = 0; i < segments.count(); ++i) {
            plan.after(reduced).after(window.leaving());
            window.push(plan.send(rank, segments.of(block, i)));
        }
    }
}

}  // namespace ulc::coll
