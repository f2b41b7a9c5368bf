// SPDX-License-Identifier: BSD-3-Clause
// Broadcast over a binomial tree of unicasts (coll/algorithms/tree.h): the reference that multicast
// is compared with. Larger subtrees go first. Segments are forwarded as they arrive, so the tree is
// a pipeline.
#include "coll/algorithm.h"
#include "coll/algorithms/tree.h"

namespace ulc::coll {

void broadcast_binomial(const Call& call, Plan& plan) {
    const std::uint32_t position = position_of(call.rank, call.root, call.ranks);
    const Place place = place_in(Shape::kBinomial, position, call.ranks);
    const Range whole{abi::BufferId::kOutput, 0, call.octets};
    const Segments segments(call.octets, call.segment, kSegmentsMax / 16);
    Window window;  // of each segment its last step
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        const Range range = segments.of(whole, i);
        const std::uint32_t before = window.leaving();
        std::uint32_t received = before;
        std::uint32_t last = kNoStep;
        if (position != 0) {
            last = received =
                plan.after(before).receive(rank_at(place.parent, call.root, call.ranks), range);
        }
        for (std::size_t child = place.children.size(); child-- > 0;) {
            last = plan.after(received).send(rank_at(place.children[child], call.root, call.ranks),
                                             range);
        }
        window.push(last);
    }
}

}  // namespace ulc::coll
