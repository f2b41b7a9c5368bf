// Allgather around a ring of unicasts, the reference without multicast: in round t a member passes on to its
// right neighbour the block that came from the left in round t − 1 (its own in round 0). ranks − 1 rounds; each
// byte crosses the wire ranks − 1 times. Segments are passed on as they arrive.
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {

void allgather_ring(const Call& call, Plan& plan) {
    copy_own_block(call, plan);
    if (call.ranks < 2) return;
    const std::uint32_t ranks = call.ranks;
    const auto right = static_cast<std::uint16_t>((call.rank + 1U) % ranks);
    const auto left = static_cast<std::uint16_t>((call.rank + ranks - 1U) % ranks);
    const Segments segments(call.octets, call.segment, kSegmentsMax / 2 / ranks + 1);
    const Range own = own_block(call);
    std::vector<std::uint32_t> received(segments.count(), kNoStep);
    std::uint32_t window[kSegmentWindow];  // receives under way
    std::uint32_t sent[kSegmentWindow];    // sends of the own block under way
    for (std::uint32_t& step : window)
        step = kNoStep;
    for (std::uint32_t& step : sent)
        step = kNoStep;
    std::uint32_t at = 0;
    for (std::uint32_t round = 0; round + 1 < ranks; ++round) {
        const std::uint32_t outgoing = (call.rank + ranks - round) % ranks;
        const std::uint32_t incoming = (outgoing + ranks - 1) % ranks;
        for (std::uint32_t i = 0; i < segments.count(); ++i) {
            const Range from =
                round == 0 ? segments.range(i, own.buffer, own.offset)
                           : segments.range(i, abi::BufferId::kOutput, outgoing * call.octets);
            std::uint32_t& sent_before = sent[i % kSegmentWindow];
            plan.after(received[i]).after(round == 0 ? sent_before : kNoStep);
            sent_before = plan.send(right, from);
            std::uint32_t& oldest = window[at++ % kSegmentWindow];
            received[i] = plan.after(oldest).receive(
                left, segments.range(i, abi::BufferId::kOutput, incoming * call.octets));
            oldest = received[i];
        }
    }
}

}  // namespace ulc::coll
