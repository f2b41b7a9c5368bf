// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan of small vectors: each rank multicasts its own to those after it, and folds those
// before it (and its own) in the order of ranks. Beyond 64 ranks, where a multicast cannot name
// some, it goes to all, and those before throw it away.
#include "coll/algorithm.h"
#include "coll/algorithms/fold.h"

namespace ulc::coll {
namespace {

constexpr std::uint16_t kSubsetMax = 64;

[[nodiscard]] std::uint64_t members_from(std::uint32_t first, std::uint32_t ranks) noexcept {
    std::uint64_t subset = 0;
    for (std::uint32_t member = first; member < ranks; ++member)
        subset |= std::uint64_t{1} << member;
    return subset;
}

}  // namespace

void scan_multicast(const Call& call, Plan& plan) {
    std::uint32_t kept = kNoStep;
    const Range own = keep_given(call, plan, kept);
    const Range output{abi::BufferId::kOutput, 0, call.octets};
    const bool to_all = call.ranks > kSubsetMax;
    if (call.rank + 1 < call.ranks)
        plan.after(kept).multicast(own, to_all ? 0 : members_from(call.rank + 1U, call.ranks));
    Slots slots(plan, call.octets);
    Fold fold(plan, output, kept);
    for (std::uint16_t rank = 0; rank < call.rank; ++rank)
        fold.receive(rank, slots);
    if (call.op == Op::kScan) fold.add(own);
    static_cast<void>(fold.done());
    if (!to_all) return;
    for (std::uint32_t rank = call.rank + 1U; rank + 1 < call.ranks; ++rank) {
        const Slots::Slot slot = slots.next();
        const Range away = slots.memory(slot, call.octets);
        *slot.free = plan.after(*slot.free).receive(static_cast<std::uint16_t>(rank), away);
    }
}

}  // namespace ulc::coll
