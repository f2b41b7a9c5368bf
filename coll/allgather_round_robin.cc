// Allgather, URTP §4.3 algorithm 1: in every round each member in turn multicasts one segment. A member waits
// for its predecessors of the round and its successors of the round before, so one source is on the medium at a
// time: no collisions on a hub, ranks latencies a round. No source can be more than one segment ahead of a
// member, so it needs ranks − 1 buffers, and one posted receive a source.
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {

void allgather_round_robin(const Call& call, Plan& plan) {
    copy_own_block(call, plan);
    if (call.ranks < 2) return;
    const Segments segments(call.octets, call.segment, kSegmentsMax / call.ranks + 1);
    const Range own = own_block(call);
    std::vector<std::uint32_t> before(call.ranks, kNoStep);  // each source's receive a round ago
    for (std::uint32_t round = 0; round < segments.count(); ++round) {
        std::vector<std::uint32_t> received(call.ranks, kNoStep);
        const auto receive_from = [&](std::uint32_t source) {
            received[source] =
                plan.after(before[source])
                    .receive(static_cast<std::uint16_t>(source),
                             segments.range(round, abi::BufferId::kOutput, source * call.octets));
        };
        for (std::uint32_t source = 0; source < call.rank; ++source)
            receive_from(source);
        for (std::uint32_t source = 0; source < call.rank; ++source)
            plan.after(received[source]);
        for (std::uint32_t source = call.rank + 1U; source < call.ranks; ++source) {
            plan.after(before[source]);
        }
        plan.multicast(segments.range(round, own.buffer, own.offset));
        for (std::uint32_t source = call.rank + 1U; source < call.ranks; ++source) {
            receive_from(source);
        }
        before.swap(received);
    }
}

}  // namespace ulc::coll
