// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter in a tournament of pairs (coll/algorithms/pairwise.h), k rounds at a time: each
// port carries each byte of the vector once out and once in.
//
// Operands arrive in the order of ranks from (−r) mod ranks on, modulo ranks. Two folds take them
// as they come: one of the ranks from there to the last, one from rank 0 to there. The second ∘ the
// first is the fold in the order of ranks, so no operator needs to commute, and no more than a few
// segments wait.
#include <vector>

#include "coll/algorithms/exchange.h"
#include "coll/algorithms/fold.h"
#include "coll/algorithms/pairwise.h"

namespace ulc::coll {

Exchanged exchange_and_fold(const Call& call, const Blocks& blocks, abi::BufferId vector,
                            Range result, Plan& plan) {
    const Range own = blocks.range(call.rank, vector);
    const Segments segments = segments_of(call, own.length);
    const std::uint32_t first = (call.ranks - call.rank) % call.ranks;
    const Range upper = first == 0 ? result : plan.scratch(own.length);
    std::vector<Fold> from_first;
    std::vector<Fold> before_first;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        from_first.emplace_back(plan, segments.of(upper, i));
        before_first.emplace_back(plan, segments.of(result, i));
    }
    Slots slots(plan, segments.longest());
    Window sends;
    Pace pace(call.concurrent);
    for (std::uint32_t round = 0; round < call.ranks; ++round) {
        const std::uint16_t partner = partner_of(call.rank, round, call.ranks);
        std::vector<Fold>& folds = partner < first ? before_first : from_first;
        if (partner == call.rank) {
            for (std::uint32_t i = 0; i < segments.count(); ++i)
                folds[i].add(segments.of(own, i));
            pace.received(kNoStep);
            continue;
        }
        const Range block = blocks.range(partner, vector);
        const Segments out = segments_of(call, block.length);
        for (std::uint32_t i = 0; i < out.count(); ++i) {
            plan.after(pace.of(round)).after(sends.leaving());
            sends.push(plan.send(partner, out.of(block, i)));
        }
        std::uint32_t last = kNoStep;
        for (Fold& fold : folds)
            last = fold.receive(partner, slots);
        pace.received(last);
    }
    std::vector<std::uint32_t> folded;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        if (first > 0) before_first[i].add(segments.of(upper, i), from_first[i].done());
        folded.push_back(first > 0 ? before_first[i].done() : from_first[i].done());
    }
    const std::uint32_t all_folded = plan.after_all(folded).join();
    return {sends.all(plan).after(all_folded).join(), all_folded};
}

void reduce_scatter_pairwise(const Call& call, Plan& plan) {
    using abi::BufferId;
    const std::uint64_t octets = call.in.length(call.rank);
    const Range output{BufferId::kOutput, 0, octets};
    const Range result = call.in_place ? plan.scratch(octets) : output;
    const Exchanged done = exchange_and_fold(
        call, call.in, call.in_place ? BufferId::kOutput : BufferId::kInput, result, plan);
    if (call.in_place) plan.after(done.sent).copy(output, result);
}

}  // namespace ulc::coll
