// SPDX-License-Identifier: BSD-3-Clause
// Dissemination barrier (Hensgen, Finkel, Manber 1988) with k messages a round: in the round of
// distance d member r tells r + d, r + 2d, …, r + kd and hears from as many before it, modulo
// ranks. Then each knows of (k + 1)·d members that they have arrived, and d grows by as much. No
// member is a hot spot, and no multicast is needed. ⌈log(ranks) / log(k + 1)⌉ rounds of at most k
// frames at each port: k = 1 is the classical one; on a switch, where a frame is short against a
// latency, fewer rounds are worth more frames.
//
// A round's sends wait for the receives of *all* earlier rounds: what they say is "everyone up to d
// − 1 behind me has arrived".
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {

void barrier_dissemination(const Call& call, Plan& plan) {
    std::vector<std::uint32_t> heard;
    for (std::uint64_t distance = 1; distance < call.ranks; distance *= call.concurrent + 1ULL) {
        const std::size_t before = heard.size();
        for (std::uint64_t far = distance; far <= distance * call.concurrent && far < call.ranks;
             far += distance) {
            const auto to = static_cast<std::uint16_t>((call.rank + far) % call.ranks);
            for (std::size_t i = 0; i < before; ++i)
                plan.after(heard[i]);
            plan.send(to, {});
        }
        for (std::uint64_t far = distance; far <= distance * call.concurrent && far < call.ranks;
             far += distance) {
            const auto from =
                static_cast<std::uint16_t>((call.rank + call.ranks - far) % call.ranks);
            heard.push_back(plan.receive(from, {}));
        }
    }
}

}  // namespace ulc::coll
