// SPDX-License-Identifier: BSD-3-Clause
// Allreduce of large vectors: a reduce_scatter in a tournament of pairs, then every rank multicasts
// its block of the result. Each octet crosses each port about twice, once for each half, whatever
// the number of ranks.
#include <vector>

#include "coll/algorithms/allgather.h"
#include "coll/algorithms/exchange.h"

namespace ulc::coll {

void allreduce_pairwise_multicast(const Call& call, Plan& plan) {
    using abi::BufferId;
    const std::uint64_t elements = call.octets / call.grain;
    std::vector<std::size_t> lengths(call.ranks);
    std::vector<std::size_t> offsets(call.ranks);
    std::size_t at = 0;
    for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
        const std::uint64_t share = elements / call.ranks + (rank < elements % call.ranks ? 1 : 0);
        lengths[rank] = share * call.grain;
        offsets[rank] = at;
        at += lengths[rank];
    }
    const Blocks blocks{0, lengths.data(), offsets.data()};
    const Range own = blocks.range(call.rank, BufferId::kOutput);
    const Range result = call.in_place ? plan.scratch(own.length) : own;
    Exchanged done = exchange_and_fold(call, blocks, given(call).buffer, result, plan);
    if (call.in_place) done.folded = done.sent = plan.after(done.sent).copy(own, result);
    if (call.ranks < 2) return;
    multicast_blocks(call, blocks, own, call.in_place ? done.sent : done.folded, plan);
}

}  // namespace ulc::coll
