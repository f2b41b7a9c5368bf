// SPDX-License-Identifier: BSD-3-Clause
// Reduce up a tree of unicasts, segments in a pipeline. Three shapes:
//   flat      all send to the root, which folds: one latency, but the root's port and processor
//             carry all (small vectors, few ranks)
//   binomial  log2(ranks) latencies
//   chain     each port carries the vector once in and once out: large ones take the wire's time
//
// A commutative operator is folded in the order of ranks from the root round. Others are folded
// from rank 0, which sends the result on.
#include "coll/algorithms/rooted/reduce_tree.h"

namespace ulc::coll {

TreeReduction::TreeReduction(const Call& call, Shape shape, std::uint32_t top, Range own,
                             Range result, Plan& plan)
    : call_(call),
      plan_(plan),
      top_(top),
      place_(place_in(shape, position_of(call.rank, top, call.ranks), call.ranks)),
      is_top_(call.rank == top),
      own_(own),
      result_(result),
      segments_(segments_of(call, call.octets)),
      received_(plan, segments_.longest()),
      folded_(plan, segments_.longest()) {}

std::uint32_t TreeReduction::segment(std::uint32_t i) {
    const Range own = segments_.of(own_, i);
    const std::uint16_t parent = rank_at(place_.parent, top_, call_.ranks);
    if (place_.children.empty() && !is_top_) {
        plan_.after(sends_.leaving());
        return sends_.push(plan_.send(parent, own));
    }
    const Slots::Slot slot = folded_.next();
    const Range into = is_top_ ? segments_.of(result_, i) : folded_.memory(slot, own.length);
    Fold fold(plan_, into, is_top_ ? kNoStep : *slot.free);
    fold.add(own);
    for (const std::uint32_t child : place_.children)
        fold.receive(rank_at(child, top_, call_.ranks), received_);
    if (is_top_) return fold.done();
    return *slot.free = plan_.after(fold.done()).send(parent, into);
}

namespace {

void reduce(const Call& call, Shape shape, Plan& plan) {
    using abi::BufferId;
    const Range output{BufferId::kOutput, 0, call.octets};
    const bool round = call.commutative || call.root == 0;
    const bool forwards = !round && call.rank == 0;
    const Range result = forwards ? plan.scratch(call.octets) : output;
    TreeReduction tree(call, shape, round ? call.root : 0, given(call), result, plan);
    const Segments& segments = tree.segments();
    Window window;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        const std::uint32_t done = tree.segment(i);
        if (forwards) {
            plan.after(done).send(call.root, segments.of(result, i));
        } else if (!round && call.rank == call.root) {
            plan.after(window.leaving()).after(call.in_place ? done : kNoStep);
            window.push(plan.receive(0, segments.of(output, i)));
        }
    }
}

}  // namespace

void reduce_flat(const Call& call, Plan& plan) { reduce(call, Shape::kFlat, plan); }
void reduce_binomial(const Call& call, Plan& plan) { reduce(call, Shape::kBinomial, plan); }
void reduce_chain(const Call& call, Plan& plan) { reduce(call, Shape::kChain, plan); }

}  // namespace ulc::coll
