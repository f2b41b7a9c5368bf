// SPDX-License-Identifier: BSD-3-Clause
// K-chain barrier (GAMMA §5.3), for a medium that all members share. Members 1 … ranks−1 form k
// chains of neighbours, as equal as can be; in each, a member waits for the one after it and then
// tells the one before it, and the first of the chain tells member 0, which multicasts that all may
// go on. `ranks` minimum frames whatever k is.
//
//   k = 2, 8 ranks:   0 ◀─ 1 ◀─ 2 ◀─ 3 ◀─ 4      0 ◀─ 5 ◀─ 6 ◀─ 7      0 ─▶ all
//
// k = 1 is the serialized barrier: never two that want to send at a time, so no collision on a hub,
// and a latency for each member. k = ranks − 1 is barrier_gather_broadcast, the concurrent one. k =
// 2 overlaps what one chain's members compute with what the other's send, at the price of one
// collision at the start.
#include <algorithm>

#include "coll/algorithm.h"

namespace ulc::coll {
namespace {

/// The members first … last of a chain.
struct Chain {
    std::uint16_t first;
    std::uint16_t last;
};

/// Chain c of k, 0 ≤ c < k ≤ members; the first chains have one more where they cannot be equal.
Chain chain_of(std::uint32_t c, std::uint32_t k, std::uint32_t members) noexcept {
    const std::uint32_t each = members / k;
    const std::uint32_t longer = members % k;
    const std::uint32_t first = 1 + c * each + std::min(c, longer);
    const std::uint32_t length = each + (c < longer ? 1 : 0);
    return {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(first + length - 1)};
}

void lead(std::uint32_t k, std::uint32_t members, Plan& plan) {
    for (std::uint32_t c = 0; c < k; ++c)
        plan.receive(chain_of(c, k, members).first, {});
    for (std::uint32_t step = 0; step < k; ++step)
        plan.after(step);
    plan.multicast({});
}

void follow(std::uint16_t rank, Chain chain, Plan& plan) {
    std::uint32_t behind = kNoStep;
    if (rank < chain.last) behind = plan.receive(static_cast<std::uint16_t>(rank + 1), {});
    const auto before = static_cast<std::uint16_t>(rank == chain.first ? 0 : rank - 1);
    plan.after(behind).send(before, {});
    plan.receive(0, {});
}

}  // namespace

void barrier_chain(const Call& call, Plan& plan) {
    if (call.ranks < 2) return;
    const std::uint32_t members = call.ranks - 1U;
    const std::uint32_t k = std::min(call.concurrent, members);
    if (call.rank == 0) {
        lead(k, members, plan);
        return;
    }
    for (std::uint32_t c = 0; c < k; ++c) {
        const Chain chain = chain_of(c, k, members);
        if (call.rank >= chain.first && call.rank <= chain.last) follow(call.rank, chain, plan);
    }
}

}  // namespace ulc::coll
