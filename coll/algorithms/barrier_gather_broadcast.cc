// SPDX-License-Identifier: BSD-3-Clause
// Barrier as URTP §4.5 and GAMMA §5.2.1 ("concurrent"): every member sends an empty message to
// index 0, which then multicasts an empty one. Two latencies and `ranks` frames, one of them for
// all. The gather hits one port with ranks − 1 minimum frames at once: harmless on a switch, a
// burst of collisions on a hub (GAMMA §5.4).
#include "coll/algorithm.h"

namespace ulc::coll {

void barrier_gather_broadcast(const Call& call, Plan& plan) {
    if (call.ranks < 2) return;
    if (call.rank != 0) {
        plan.send(0, {});
        plan.receive(0, {});
        return;
    }
    for (std::uint16_t peer = 1; peer < call.ranks; ++peer)
        plan.receive(peer, {});
    for (std::uint32_t i = 0; i + 1U < call.ranks; ++i)
        plan.after(i);
    plan.multicast({});
}

}  // namespace ulc::coll
