// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan of large vectors along a chain: each rank receives the fold of those before it,
// and sends that with its own added. Segments in a pipeline: each port carries the vector once in
// and once out.
#include "coll/algorithm.h"
#include "coll/algorithms/fold.h"

namespace ulc::coll {
namespace {

/// The end of the chain, which needs only its own prefix.
void receive_prefixes(std::uint16_t before, const Segments& segments, Range output, Plan& plan) {
    Window window;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        plan.after(window.leaving());
        window.push(plan.receive(before, segments.of(output, i)));
    }
}

/// The beginning: its data are the fold.
void begin_chain(const Call& call, const Segments& segments, Range output, Plan& plan) {
    const Range own = given(call);
    Window sends;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        const Range mine = segments.of(own, i);
        if (call.op == Op::kScan && !call.in_place) plan.copy(segments.of(output, i), mine);
        if (call.ranks > 1) sends.push(plan.after(sends.leaving()).send(1, mine));
    }
}

}  // namespace

void scan_chain(const Call& call, Plan& plan) {
    const Range own = given(call);
    const Range output{abi::BufferId::kOutput, 0, call.octets};
    const Segments segments = segments_of(call, call.octets);
    const auto before = static_cast<std::uint16_t>(call.rank - 1);
    const auto behind = static_cast<std::uint16_t>(call.rank + 1);
    const bool last = behind == call.ranks;
    const bool scan = call.op == Op::kScan;
    if (call.rank == 0) return begin_chain(call, segments, output, plan);
    if (last && !scan) return receive_prefixes(before, segments, output, plan);
    Slots slots(plan, segments.longest());
    Window receives;
    Window sends;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        const Range mine = segments.of(own, i);
        const Range into = segments.of(output, i);
        // The input may not be written before it is folded, and the result not after.
        const Slots::Slot slot = slots.next();
        const Range prefix = call.in_place ? slots.memory(slot, mine.length) : into;
        const Range sum = scan || call.in_place ? into : slots.memory(slot, mine.length);
        if (call.in_place) plan.after(*slot.free);
        const std::uint32_t received = plan.after(receives.leaving()).receive(before, prefix);
        if (!call.in_place) plan.after(*slot.free);
        *slot.free = receives.push(plan.after(received).reduce(sum, prefix, mine));
        if (last) continue;
        const std::uint32_t sent = plan.after(*slot.free).after(sends.leaving()).send(behind, sum);
        sends.push(sent);
        if (scan) continue;
        *slot.free = call.in_place ? plan.after(sent).copy(into, prefix) : sent;
    }
}

}  // namespace ulc::coll
