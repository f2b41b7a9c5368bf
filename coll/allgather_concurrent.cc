// Allgather, URTP §4.3 algorithm 2: in every round all members multicast k segments at once, then receive k from
// each other member. Fewer points of synchronisation than round robin (the paper: 1.5 to 2 times faster with
// k = 1, best near k = 4 on four nodes), at the price of buffers for 2 · k segments a source: a member that has
// heard from all may be a round ahead of one that has not.
//
// A round's multicasts wait for the receives of the round before; receives are posted a round ahead. Multicasts
// start in index order, so the first of a round waits for all of them.
#include <algorithm>
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {

void allgather_concurrent(const Call& call, Plan& plan) {
    copy_own_block(call, plan);
    if (call.ranks < 2) return;
    const Segments segments(call.octets, call.segment, kSegmentsMax / call.ranks + 1);
    const Range own = own_block(call);
    const std::uint32_t k = std::max(call.concurrent, 1U);
    // Each source's last receive of the last round and of the one before.
    std::vector<std::uint32_t> last(call.ranks, kNoStep);
    std::vector<std::uint32_t> older(call.ranks, kNoStep);
    std::uint32_t end = 0;
    for (std::uint32_t first = 0; first < segments.count(); first = end) {
        end = first + std::min(k, segments.count() - first);
        for (const std::uint32_t step : last)
            plan.after(step);
        for (std::uint32_t i = first; i < end; ++i) {
            plan.multicast(segments.range(i, own.buffer, own.offset));
        }
        std::vector<std::uint32_t> received(call.ranks, kNoStep);
        for (std::uint32_t i = first; i < end; ++i) {
            for (std::uint32_t source = 0; source < call.ranks; ++source) {
                if (source == call.rank) continue;
                const Range into = segments.range(i, abi::BufferId::kOutput, source * call.octets);
                received[source] =
                    plan.after(older[source]).receive(static_cast<std::uint16_t>(source), into);
            }
        }
        older.swap(last);
        last.swap(received);
    }
}

}  // namespace ulc::coll
