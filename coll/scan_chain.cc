// Scan and exscan of large vectors along a chain: each rank receives the fold of those before it, and sends that with its own
// added. Segments in a pipeline: each port carries the vector once in and once out.
#include "coll/algorithm.h"
#include "coll/fold.h"

namespace ulc::coll {
namespace {

/// The end of the chain, to which nothing but its own prefix matters.
void receive_prefixes(std::uint16_t before, const Segments& segments, Range output, Plan& plan) {
    Window window;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        plan.after(window.leaving());
        window.push(plan.receive(before, segments.of(output, i)));
    }
}

/// The beginning: what is given is the fold.
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
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        const Range mine = segments.of(own, i);
        const Range into = segments.of(output, i);
        const Slots::Slot slot = slots.next();
        const std::uint32_t free = *slot.free;
        if (call.in_place) {  // the sum takes the place of what is given
            const Range prefix = slots.memory(slot, mine.length);
            const std::uint32_t received = plan.after(free).receive(before, prefix);
            *slot.free = plan.after(received).reduce_in_front(into, prefix);
            if (!last) *slot.free = plan.after(*slot.free).send(behind, into);
            if (!scan) *slot.free = plan.after(*slot.free).copy(into, prefix);
            continue;
        }
        const std::uint32_t received = plan.after(free).receive(before, into);
        const Range sum = scan ? into : slots.memory(slot, mine.length);
        const std::uint32_t there = scan ? received : plan.after(received).copy(sum, into);
        *slot.free = plan.after(there).reduce(sum, mine);
        if (!last) *slot.free = plan.after(*slot.free).send(behind, sum);
    }
}

}  // namespace ulc::coll
