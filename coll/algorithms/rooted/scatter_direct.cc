// SPDX-License-Identifier: BSD-3-Clause
// Scatter by unicast: the root sends each member its block. The blocks take turns by segments.
#include <algorithm>
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {
namespace {

void deal(const Call& call, Plan& plan) {
    std::vector<Segments> segments;
    std::uint32_t rounds = 0;
    for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
        segments.push_back(segments_of(call, call.in.length(rank)));
        if (rank != call.root) rounds = std::max(rounds, segments.back().count());
    }
    Window window;
    for (std::uint32_t i = 0; i < rounds; ++i) {
        for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
            if (rank == call.root || i >= segments[rank].count()) continue;
            const Range block = call.in.range(rank, abi::BufferId::kInput);
            plan.after(window.leaving());
            window.push(plan.send(static_cast<std::uint16_t>(rank), segments[rank].of(block, i)));
        }
    }
}

}  // namespace

void scatter_direct(const Call& call, Plan& plan) {
    const Range own{abi::BufferId::kOutput, 0, call.octets};
    if (call.rank == call.root) {
        if (!call.in_place) plan.copy(own, call.in.range(call.rank, abi::BufferId::kInput));
        deal(call, plan);
        return;
    }
    const Segments segments = segments_of(call, own.length);
    Window window;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        plan.after(window.leaving());
        window.push(plan.receive(call.root, segments.of(own, i)));
    }
}

}  // namespace ulc::coll
