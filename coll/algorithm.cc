// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithm.h"

namespace ulc::coll {
namespace {

constexpr std::string_view kNames[kOps] = {
    "barrier",  "broadcast", "gather", "gatherv",   "scatter",        "scatterv", "allgather",
    "alltoall", "alltoallv", "reduce", "allreduce", "reduce_scatter", "scan",     "exscan"};

constexpr Algorithm kAlgorithms[] = {
    {Op::kBarrier, "gather_broadcast", barrier_gather_broadcast,
     "empty messages to index 0, which multicasts an empty one (URTP §4.5)"},
    {Op::kBarrier, "chain", barrier_chain,
     "k chains of neighbours, then a multicast (GAMMA §5.3); k: \"chain:2\", 1 is the serialized "
     "one",
     true},
    {Op::kBarrier, "dissemination", barrier_dissemination,
     "rounds of k unicasts, log(ranks) of them to the base k + 1; k: \"dissemination:3\"", true},
    {Op::kBroadcast, "multicast", broadcast_multicast, "the root multicasts (URTP §4.2)"},
    {Op::kBroadcast, "binomial", broadcast_binomial, "tree over unicast, for reference"},
    {Op::kGather, "direct", gather_direct, "all send to the root (URTP §4.4)"},
    {Op::kGather, "token", gather_token,
     "k at a time send to the root (GAMMA §6.3), for hubs; k: \"token:2\"", true},
    {Op::kGather, "binomial", gather_binomial, "tree over unicast, for many ranks"},
    {Op::kGatherv, "direct", gather_direct, "all send to the root"},
    {Op::kGatherv, "token", gather_token, "k at a time send to the root", true},
    {Op::kScatter, "packed", scatter_packed,
     "full packets by unicast, the rest of all blocks in one multicast (URTP §4.4)"},
    {Op::kScatter, "direct", scatter_direct, "the root sends to each"},
    {Op::kScatter, "binomial", scatter_binomial, "tree over unicast, for the nodes of one machine"},
    {Op::kScatterv, "direct", scatter_direct, "the root sends to each"},
    {Op::kAllgather, "round_robin", allgather_round_robin, "one multicasts at a time (URTP §4.3)"},
    {Op::kAllgather, "concurrent", allgather_concurrent,
     "all multicast k segments a round (URTP §4.3); k: \"concurrent:4\"", true},
    {Op::kAllgather, "ring", allgather_ring,
     "blocks passed to the right, for the nodes of one machine"},
    {Op::kAlltoall, "pairwise", alltoall_pairwise,
     "a tournament of pairs, k rounds under way: \"pairwise:4\"", true},
    {Op::kAlltoall, "multicast", alltoall_multicast,
     "all multicast all their blocks, for small ones"},
    {Op::kAlltoallv, "pairwise", alltoall_pairwise, "a tournament of pairs, k rounds under way",
     true},
    {Op::kReduce, "flat", reduce_flat, "all send to the root, which folds"},
    {Op::kReduce, "chain", reduce_chain, "a pipeline along a chain, for large vectors"},
    {Op::kReduce, "binomial", reduce_binomial, "tree over unicast"},
    {Op::kAllreduce, "multicast", allreduce_multicast,
     "all multicast their vectors, for small ones"},
    {Op::kAllreduce, "binomial_multicast", allreduce_binomial_multicast,
     "a tree up to index 0, which multicasts"},
    {Op::kAllreduce, "chain_multicast", allreduce_chain_multicast,
     "a pipeline along a chain to index 0, which multicasts"},
    {Op::kAllreduce, "pairwise_multicast", allreduce_pairwise_multicast,
     "reduce_scatter in pairs, then all multicast their blocks; k: \"pairwise_multicast:4\"", true},
    {Op::kAllreduce, "binomial", allreduce_binomial, "a tree up and down, for reference"},
    {Op::kReduceScatter, "multicast", reduce_scatter_multicast,
     "all multicast their vectors, for small ones"},
    {Op::kReduceScatter, "pairwise", reduce_scatter_pairwise,
     "a tournament of pairs, k rounds under way: \"pairwise:4\"", true},
    {Op::kReduceScatter, "binomial", reduce_scatter_binomial,
     "a tree up to index 0, which sends the blocks, for small ones"},
    {Op::kScan, "multicast", scan_multicast, "all multicast to those behind, for small vectors"},
    {Op::kScan, "chain", scan_chain, "a pipeline along a chain, for large vectors"},
    {Op::kScan, "doubling", scan_doubling, "log2(ranks) rounds of unicast, for small vectors"},
    {Op::kExscan, "multicast", scan_multicast, "all multicast to those behind, for small vectors"},
    {Op::kExscan, "chain", scan_chain, "a pipeline along a chain, for large vectors"},
    {Op::kExscan, "doubling", scan_doubling, "log2(ranks) rounds of unicast, for small vectors"},
};

}  // namespace

std::string_view name_of(Op op) noexcept { return kNames[static_cast<std::uint8_t>(op)]; }

std::span<const Algorithm> algorithms() noexcept { return kAlgorithms; }

Range keep_given(const Call& call, Plan& plan, std::uint32_t& ready) {
    ready = kNoStep;
    if (!call.in_place) return given(call);
    const Range kept = plan.scratch(call.octets);
    ready = plan.copy(kept, given(call));
    return kept;
}

const Algorithm* find_algorithm(Op op, std::string_view name) noexcept {
    for (const Algorithm& algorithm : kAlgorithms) {
        if (algorithm.op == op && algorithm.name == name) return &algorithm;
    }
    return nullptr;
}

}  // namespace ulc::coll
