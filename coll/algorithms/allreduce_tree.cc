// SPDX-License-Identifier: BSD-3-Clause
// Allreduce up a tree to rank 0 (rooted/reduce_tree.h), which multicasts each segment of the
// result as soon as it is there. The multicast of one segment overlaps with the reduction of the
// next. "binomial" goes down a tree of unicasts instead: the reference.
#include "coll/algorithms/rooted/reduce_tree.h"

namespace ulc::coll {
namespace {

enum class Down : std::uint8_t { kMulticast, kTree };

void allreduce(const Call& call, Shape shape, Down down, Plan& plan) {
    const Range output{abi::BufferId::kOutput, 0, call.octets};
    TreeReduction up(call, shape, 0, given(call), output, plan);
    const Place place = place_in(Shape::kBinomial, call.rank, call.ranks);
    const auto parent = static_cast<std::uint16_t>(down == Down::kMulticast ? 0 : place.parent);
    Window window;
    for (std::uint32_t i = 0; i < up.segments().count(); ++i) {
        const Range segment = up.segments().of(output, i);
        std::uint32_t there = up.segment(i);
        if (call.rank != 0) {
            plan.after(window.leaving()).after(call.in_place ? there : kNoStep);
            there = window.push(plan.receive(parent, segment));
        }
        if (down == Down::kMulticast) {
            if (call.rank == 0 && call.ranks > 1) plan.after(there).multicast(segment);
            continue;
        }
        for (std::size_t child = place.children.size(); child-- > 0;)
            plan.after(there).send(static_cast<std::uint16_t>(place.children[child]), segment);
    }
}

}  // namespace

void allreduce_binomial_multicast(const Call& call, Plan& plan) {
    allreduce(call, Shape::kBinomial, Down::kMulticast, plan);
}
void allreduce_chain_multicast(const Call& call, Plan& plan) {
    allreduce(call, Shape::kChain, Down::kMulticast, plan);
}
void allreduce_binomial(const Call& call, Plan& plan) {
    allreduce(call, Shape::kBinomial, Down::kTree, plan);
}

}  // namespace ulc::coll
