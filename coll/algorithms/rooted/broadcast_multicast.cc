// SPDX-License-Identifier: BSD-3-Clause
// Broadcast as in URTP §4.2: the root multicasts, the others receive. Each byte is on the wire
// once. The message is cut into segments, and a window of them is pending at a time: it bounds the
// root's send memory and a receiver's lent memory for any length. Receivers place early segments
// while later ones are on the wire.
#include "coll/algorithm.h"

namespace ulc::coll {

void broadcast_multicast(const Call& call, Plan& plan) {
    if (call.ranks < 2) return;
    const Range whole{abi::BufferId::kOutput, 0, call.octets};
    const Segments segments(call.octets, call.segment, kSegmentsMax);
    Window window;
    for (std::uint32_t i = 0; i < segments.count(); ++i) {
        plan.after(window.leaving());
        window.push(call.rank == call.root ? plan.multicast(segments.of(whole, i))
                                           : plan.receive(call.root, segments.of(whole, i)));
    }
}

}  // namespace ulc::coll
