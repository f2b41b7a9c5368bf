// Broadcast over a binomial tree of unicasts: the reference that multicast is compared with. With v the rank
// relative to the root, v's parent is v without its lowest set bit, and its children are v + 2^i for every 2^i
// below that bit (all below the tree's height for the root), larger subtrees first. Segments are forwarded as
// they arrive, so the tree is a pipeline.
#include "coll/algorithm.h"

namespace ulc::coll {

void broadcast_binomial(const Call& call, Plan& plan) {
    const std::uint32_t ranks = call.ranks;
    const std::uint32_t v = (call.rank + ranks - call.root) % ranks;
    const auto absolute = [&](std::uint32_t relative) {
        return static_cast<std::uint16_t>((relative + call.root) % ranks);
    };
    std::uint32_t lowest_bit =
        1;  // the root has none: the first power of two that covers all ranks
    while (lowest_bit < ranks && (v & lowest_bit) == 0)
        lowest_bit *= 2;

    const Segments segments(call.octets, call.segment, kSegmentsMax / 16);
    std::uint32_t in_window[kSegmentWindow];  // the last step of the segment that was here before
    for (std::uint32_t& step : in_window)
        step = kNoStep;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        const Range range = segments.range(i, abi::BufferId::kOutput, 0);
        std::uint32_t& last = in_window[i % kSegmentWindow];
        const std::uint32_t before = last;
        std::uint32_t received = kNoStep;
        if (v != 0) last = received = plan.after(before).receive(absolute(v - lowest_bit), range);
        for (std::uint32_t bit = lowest_bit / 2; bit > 0; bit /= 2) {
            if (v + bit >= ranks) continue;
            last = plan.after(received)
                       .after(v == 0 ? before : kNoStep)
                       .send(absolute(v + bit), range);
        }
    }
}

}  // namespace ulc::coll
