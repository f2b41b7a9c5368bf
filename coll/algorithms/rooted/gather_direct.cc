// SPDX-License-Identifier: BSD-3-Clause
// Gather as in URTP §4.4: all send their blocks to the root at once. The root's port carries every
// octet, whatever the algorithm; the senders' congestion control shares it. On a hub their frames
// collide: see gather_token.
#include <algorithm>
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {
namespace {

void collect(const Call& call, Plan& plan) {
    std::vector<Segments> segments;
    std::uint32_t rounds = 0;
    for (std::uint32_t source = 0; source < call.ranks; ++source) {
        segments.push_back(segments_of(call, call.out.length(source)));
        if (source != call.root) rounds = std::max(rounds, segments.back().count());
    }
    std::vector<Window> windows(call.ranks);
    for (std::uint32_t i = 0; i < rounds; ++i) {
        for (std::uint32_t source = 0; source < call.ranks; ++source) {
            if (source == call.root || i >= segments[source].count()) continue;
            const Range block = call.out.range(source, abi::BufferId::kOutput);
            plan.after(windows[source].leaving());
            windows[source].push(
                plan.receive(static_cast<std::uint16_t>(source), segments[source].of(block, i)));
        }
    }
}

}  // namespace

void gather_direct(const Call& call, Plan& plan) {
    if (call.rank == call.root) {
        copy_own_block(call, plan);
        collect(call, plan);
        return;
    }
    const Segments segments = segments_of(call, call.octets);
    Window window;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        plan.after(window.leaving());
        window.push(plan.send(call.root, segments.of(given(call), i)));
    }
}

}  // namespace ulc::coll
