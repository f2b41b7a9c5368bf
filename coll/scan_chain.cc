// Scan and exscan of large vectors along a chain: each rank receives the fold of those before it, and sends that with its own
// added. Segments in a pipeline: each port carries the vector once in and once out.
#include "coll/algorithm.h"
#include "coll/fold.h"

namespace ulc::coll {

void scan_chain(const Call& call, Plan& plan) {
    const Range own = given(call);
    const Range output{abi::BufferId::kOutput, 0, call.octets};
    const Segments segments = segments_of(call, call.octets);
    const auto before = static_cast<std::uint16_t>(call.rank - 1);
    const auto behind = static_cast<std::uint16_t>(call.rank + 1);
    const bool last = behind == call.ranks;
    Slots prefixes(plan, call.rank > 0 ? segments.longest() : 0);
    Slots sums(plan, call.rank > 0 ? segments.longest() : 0);
    Window sends;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        const Range mine = segments.of(own, i);
        const Range into = segments.of(output, i);
        if (call.rank == 0) {
            if (call.op == Op::kScan && !call.in_place) plan.copy(into, mine);
            plan.after(sends.leaving());
            if (!last) sends.push(plan.send(behind, mine));
            continue;
        }
        const Slots::Slot prefix = prefixes.next(mine.length);
        const Slots::Slot sum = sums.next(mine.length);
        const std::uint32_t received = plan.after(*prefix.free).receive(before, prefix.range);
        Fold fold(plan, sum.range, *sum.free);
        fold.add(prefix.range, received);
        const std::uint32_t folded = fold.add(mine);
        const Range& result = call.op == Op::kScan ? sum.range : prefix.range;
        // In place, the result lies over what was folded; either way it is read out of a slot that must not be written meanwhile.
        const std::uint32_t copied = plan.after(folded).copy(into, result);
        *prefix.free = copied;
        *sum.free = last ? copied : plan.after(copied).send(behind, sum.range);
    }
}

}  // namespace ulc::coll
