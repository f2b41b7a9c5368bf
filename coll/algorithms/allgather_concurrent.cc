// SPDX-License-Identifier: BSD-3-Clause
// Allgather, URTP §4.3 algorithm 2: in every round all members multicast k segments at once, then
// receive k from each other member. Fewer points of synchronisation than round robin (the paper:
// 1.5 to 2 times faster with k = 1, best near k = 4 on four nodes), at the price of buffers for 2 ·
// k segments a source: a member that has heard from all may be a round ahead of one that has not.
// With lengths by rank, one whose block has ended holds no other back: the rest of the others' may
// wait for it.
//
// A round's multicasts wait for the receives of the round before; receives are posted a round
// ahead. Multicasts start in index order, so the first of a round waits for all of them.
#include <algorithm>
#include <vector>

#include "coll/algorithms/allgather.h"

namespace ulc::coll {

void multicast_blocks(const Call& call, const Blocks& blocks, Range own, std::uint32_t begin,
                      Plan& plan) {
    std::vector<Segments> segments;
    std::uint32_t count = 0;
    for (std::uint32_t source = 0; source < call.ranks; ++source) {
        segments.push_back(segments_of(call, blocks.length(source)));
        count = std::max(count, segments.back().count());
    }
    const std::uint32_t k = std::max(call.concurrent, 1U);
    // Each source's last receive of the last round and of the one before.
    std::vector<std::uint32_t> last(call.ranks, begin);
    std::vector<std::uint32_t> older(call.ranks, begin);
    std::uint32_t end = 0;
    for (std::uint32_t first = 0; first < count; first = end) {
        end = first + std::min(k, count - first);
        if (first < segments[call.rank].count()) plan.after_all(last);
        for (std::uint32_t i = first; i < std::min(end, segments[call.rank].count()); ++i)
            plan.after(begin).multicast(segments[call.rank].of(own, i));
        std::vector<std::uint32_t> received(last);  // of a source that has no more: its last of all
        for (std::uint32_t i = first; i < end; ++i) {
            for (std::uint32_t source = 0; source < call.ranks; ++source) {
                if (source == call.rank || i >= segments[source].count()) continue;
                const Range block = blocks.range(source, abi::BufferId::kOutput);
                received[source] =
                    plan.after(older[source])
                        .receive(static_cast<std::uint16_t>(source), segments[source].of(block, i));
            }
        }
        older.swap(last);
        last.swap(received);
    }
}

void allgather_concurrent(const Call& call, Plan& plan) {
    copy_own_block(call, plan);
    if (call.ranks < 2) return;
    multicast_blocks(call, call.out, own_block(call), kNoStep, plan);
}

}  // namespace ulc::coll
