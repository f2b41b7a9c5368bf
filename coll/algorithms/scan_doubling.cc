// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan by recursive doubling over unicast (Hillis, Steele 1986): in round t a rank sends
// the fold of the 2^t ranks up to itself to the one 2^t behind, and puts the received fold in front
// of its fold. log2(ranks) rounds.
#include "coll/algorithm.h"

namespace ulc::coll {
namespace {

struct Held {
    Range range;
    std::uint32_t ready = kNoStep;
};

/// received ∘ held, in new scratch.
Held in_front(Plan& plan, const Held& received, const Held& held) {
    const Range sum = plan.scratch(held.range.length);
    plan.after(received.ready).after(held.ready);
    return {sum, plan.reduce(sum, received.range, held.range)};
}

/// The same where received is, which no step reads after step `free`.
Held in_front_there(Plan& plan, const Held& received, const Held& held, std::uint32_t free) {
    plan.after(received.ready).after(held.ready).after(free);
    return {received.range, plan.reduce(received.range, received.range, held.range)};
}

}  // namespace

void scan_doubling(const Call& call, Plan& plan) {
    const Range output{abi::BufferId::kOutput, 0, call.octets};
    Held with{given(call)};  // of the ranks up to this one
    Held without{};          // the same without this one
    bool any = false;
    std::uint32_t sent = kNoStep;  // the one send from the input
    for (std::uint32_t distance = 1; distance < call.ranks; distance *= 2) {
        const std::uint32_t to = call.rank + distance;
        if (to < call.ranks) {
            plan.after(with.ready);
            const std::uint32_t step = plan.send(static_cast<std::uint16_t>(to), with.range);
            if (distance == 1) sent = step;
        }
        if (call.rank < distance) continue;
        const bool stays = call.op == Op::kExscan && !any;  // it is the result, or the end of it
        const bool last = call.op == Op::kScan && call.rank < 2 * distance;
        const bool to_output = !call.in_place && (stays || last);
        Held received{to_output ? output : plan.scratch(call.octets)};
        received.ready =
            plan.receive(static_cast<std::uint16_t>(call.rank - distance), received.range);
        if (call.op == Op::kExscan) without = any ? in_front(plan, received, without) : received;
        any = true;
        if (call.op == Op::kExscan && call.rank + 2 * distance >= call.ranks)
            continue;  // no rank gets it
        with = stays ? in_front(plan, received, with)
                     : in_front_there(plan, received, with, without.ready);
    }
    const Held& result = call.op == Op::kScan ? with : without;
    const bool there = result.range.at(output) || (call.op == Op::kExscan && !any);
    // In place, the input is overwritten: after it was folded and sent.
    if (!there) plan.after(result.ready).after(with.ready).after(sent).copy(output, result.range);
}

}  // namespace ulc::coll
