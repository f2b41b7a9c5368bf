// SPDX-License-Identifier: BSD-3-Clause
// Gather with a token (GAMMA §6.3): k senders at a time, for a medium that all share, or a port
// that many senders would overrun. The root grants the token: an empty message lets the next sender
// begin when the one k places before has only its last segment left.
#include <vector>

#include "coll/algorithm.h"
#include "coll/algorithms/tree.h"

namespace ulc::coll {
namespace {

void grant_and_collect(const Call& call, Plan& plan) {
    // By position behind the root: the step that lets the one k places later begin.
    std::vector<std::uint32_t> nearly(call.ranks, kNoStep);
    for (std::uint32_t position = 1; position < call.ranks; ++position) {
        const std::uint16_t source = rank_at(position, call.root, call.ranks);
        const Range block = call.out.range(source, abi::BufferId::kOutput);
        const Segments segments = segments_of(call, block.length);
        const std::uint32_t granted =
            position > call.concurrent ? nearly[position - call.concurrent] : kNoStep;
        plan.after(granted).send(source, {block.buffer, block.offset, 0});
        Window window;
        for (std::uint32_t i = 0; i < segments.count(); ++i) {
            plan.after(window.leaving());
            const std::uint32_t step = window.push(plan.receive(source, segments.of(block, i)));
            if (i == 0 || i + 1 < segments.count()) nearly[position] = step;
        }
    }
}

}  // namespace

void gather_token(const Call& call, Plan& plan) {
    if (call.rank == call.root) {
        copy_own_block(call, plan);
        grant_and_collect(call, plan);
        return;
    }
    const std::uint32_t token = plan.receive(call.root, plan.scratch(0));
    const Segments segments = segments_of(call, call.octets);
    Window window;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        plan.after(token).after(window.leaving());
        window.push(plan.send(call.root, segments.of(given(call), i)));
    }
}

}  // namespace ulc::coll
