// SPDX-License-Identifier: BSD-3-Clause
// Allgather, URTP §4.3 algorithm 1: in every round each member in turn multicasts one segment. A
// member waits for its predecessors of the round and its successors of the round before, so one
// source is on the medium at a time: no collisions on a hub, ranks latencies a round. While all
// have something to send, no source can be more than one segment ahead of a member, so it needs
// ranks − 1 buffers, and one posted receive a source. With lengths by rank, a member whose block
// has ended holds no other back: the rest of the others' may wait for it.
#include <algorithm>
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {

void allgather_round_robin(const Call& call, Plan& plan) {
    copy_own_block(call, plan);
    if (call.ranks < 2) return;
    std::vector<Segments> segments;
    std::uint32_t rounds = 0;
    for (std::uint32_t source = 0; source < call.ranks; ++source) {
        segments.push_back(segments_of(call, call.out.length(source)));
        rounds = std::max(rounds, segments.back().count());
    }
    // Each source's last receive: of a round before until this round's is appended.
    std::vector<std::uint32_t> last(call.ranks, kNoStep);
    for (std::uint32_t round = 0; round < rounds; ++round) {
        for (std::uint32_t source = 0; source < call.ranks; ++source) {
            if (round >= segments[source].count()) continue;
            if (source == call.rank) {
                plan.after_all(last).multicast(segments[source].of(own_block(call), round));
                continue;
            }
            const Range block = call.out.range(source, abi::BufferId::kOutput);
            last[source] =
                plan.after(last[source])
                    .receive(static_cast<std::uint16_t>(source), segments[source].of(block, round));
        }
    }
}

}  // namespace ulc::coll
