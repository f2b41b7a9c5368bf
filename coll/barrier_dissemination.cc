// Dissemination barrier (Hensgen, Finkel, Manber 1988): in round i member r tells (r + 2^i) and hears from
// (r − 2^i), modulo ranks. After ⌈log2 ranks⌉ rounds each has heard, through others, from all. No member is a
// hot spot, and no multicast is needed; ranks · ⌈log2 ranks⌉ frames.
//
// A round's send waits for the receives of *all* earlier rounds: what it says is "everyone up to 2^i − 1 behind
// me has arrived".
#include "coll/algorithm.h"

namespace ulc::coll {

void barrier_dissemination(const Call& call, Plan& plan) {
    std::uint32_t round = 0;
    for (std::uint32_t distance = 1; distance < call.ranks; distance *= 2, ++round) {
        const auto to = static_cast<std::uint16_t>((call.rank + distance) % call.ranks);
        const auto from =
            static_cast<std::uint16_t>((call.rank + call.ranks - distance) % call.ranks);
        for (std::uint32_t i = 0; i < round; ++i)
            plan.after(2 * i + 1);
        plan.send(to, {});
        plan.receive(from, {});
    }
}

}  // namespace ulc::coll
