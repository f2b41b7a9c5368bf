// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/schedule/bounds.h"

#include <algorithm>
#include <bit>

namespace ulc::sim {
namespace {

using coll::Call;
using coll::Op;

std::uint64_t others(const Call& call) { return call.ranks - 1U; }
std::uint64_t concurrent(const Call& call) { return call.concurrent; }
std::uint64_t segments(const Call& call, std::uint64_t octets) {
    return coll::segments_of(call, octets).count();
}

/// ⌈log2 n⌉: children of the top of a binomial tree.
std::uint64_t levels(const Call& call) {
    return static_cast<std::uint64_t>(std::bit_width(others(call)));
}

std::uint64_t one_each(const Call& call, std::uint64_t /*block*/) { return others(call); }
std::uint64_t all_of_all(const Call& call, std::uint64_t block) {
    return others(call) * segments(call, block);
}
std::uint64_t all_of_one(const Call& call, std::uint64_t block) {
    return call.ranks == 1 ? 0 : segments(call, block);
}
std::uint64_t one_a_level(const Call& call, std::uint64_t /*block*/) { return levels(call); }
std::uint64_t all_a_level(const Call& call, std::uint64_t block) {
    return levels(call) * segments(call, block);
}

std::uint64_t chains(const Call& call, std::uint64_t /*block*/) {
    return std::min(concurrent(call), others(call));
}

/// Returns all rounds that a member of a dissemination hears.
std::uint64_t rounds_heard(const Call& call, std::uint64_t /*block*/) {
    std::uint64_t heard = 0;
    for (std::uint64_t distance = 1; distance < call.ranks; distance *= concurrent(call) + 1)
        heard += std::min(concurrent(call), others(call) / distance);
    return heard;
}

/// Counts k members that may send at a time, and for each member before them the last segment,
/// which it keeps while the next ones get permission.
std::uint64_t tokens(const Call& call, std::uint64_t block) {
    const std::uint64_t with_leave = std::min(concurrent(call), others(call));
    const std::uint64_t count = segments(call, block);
    return with_leave * count + (count > 1 ? others(call) - with_leave : 0);
}

/// Counts the member's own full packets, and the remainders of all.
std::uint64_t packets_and_rests(const Call& call, std::uint64_t block) {
    constexpr std::uint64_t kPacketOctets = 1460;  // coll/algorithms/rooted/scatter_packed.cc
    const std::uint64_t rest = block % kPacketOctets;
    const std::uint64_t full = block - rest;
    if (call.ranks == 1) return 0;
    return (full > 0 ? segments(call, full) : 0) +
           (rest > 0 || full == 0 ? segments(call, others(call) * rest) : 0);
}

/// Returns the largest subtree below the top, p: the greatest power of 2 below n.
std::uint64_t largest_subtree(const Call& call, std::uint64_t block) {
    if (call.ranks == 1) return 0;
    const std::uint64_t power = std::bit_floor(others(call));
    return std::max(power / 2, call.ranks - power) * segments(call, block);
}

std::uint64_t two_rounds(const Call& call, std::uint64_t block) {
    return others(call) * std::min(2 * concurrent(call), segments(call, block));
}
std::uint64_t four_of_each(const Call& call, std::uint64_t block) {
    return others(call) * std::min<std::uint64_t>(4, segments(call, block));
}

std::uint64_t exchange_and_round(const Call& call, std::uint64_t /*block*/) {
    const std::uint64_t elements = call.octets / call.grain;
    const std::uint64_t share = (elements + others(call)) / call.ranks * call.grain;
    const std::uint64_t count = segments(call, share);
    return others(call) * (count + std::min(concurrent(call), count));
}

std::uint64_t vector_a_level(const Call& call, std::uint64_t /*block*/) {
    return levels(call) * segments(call, call.octets);
}

constexpr BufferBound kBounds[] = {
    {Op::kBarrier, "gather_broadcast", "n − 1", one_each},
    {Op::kBarrier, "chain", "min(k, n − 1)", chains},
    {Op::kBarrier, "dissemination", "Σ min(k, ⌊(n − 1) / d⌋) over d = 1, k + 1, (k + 1)², … < n",
     rounds_heard, false},
    {Op::kBroadcast, "multicast", "s", all_of_one},
    {Op::kBroadcast, "binomial", "s", all_of_one},
    {Op::kGather, "direct", "(n − 1) · s", all_of_all},
    {Op::kGather, "token", "m · s, and n − 1 − m more if s > 1; m = min(k, n − 1)", tokens},
    {Op::kGather, "binomial", "(n − 1) · s", all_of_all},
    {Op::kScatter, "packed", "segments of the own full packets, and of n − 1 rests",
     packets_and_rests},
    {Op::kScatter, "direct", "s", all_of_one},
    {Op::kScatter, "binomial", "max(p / 2, n − p) · s; p: greatest power of 2 below n",
     largest_subtree},
    {Op::kAllgather, "round_robin", "n − 1; with lengths by rank (n − 1) · s", one_each, true,
     all_of_all},
    {Op::kAllgather, "concurrent", "(n − 1) · min(2 k, s); with lengths by rank (n − 1) · s",
     two_rounds, true, all_of_all},
    {Op::kAllgather, "ring", "(n − 1) · s", all_of_all},
    {Op::kAlltoall, "pairwise", "(n − 1) · s", all_of_all},
    {Op::kAlltoall, "multicast", "n − 1", one_each},
    {Op::kReduce, "flat", "(n − 1) · s", all_of_all},
    {Op::kReduce, "chain", "s", all_of_one},
    {Op::kReduce, "binomial", "⌈log₂ n⌉ · s", all_a_level},
    {Op::kAllreduce, "multicast", "(n − 1) · min(4, s)", four_of_each},
    {Op::kAllreduce, "binomial_multicast", "⌈log₂ n⌉ · s", all_a_level},
    {Op::kAllreduce, "chain_multicast", "s", all_of_one},
    {Op::kAllreduce, "pairwise_multicast", "(n − 1) · (t + min(k, t)); t: segments of 1/n of it",
     exchange_and_round, false},
    {Op::kAllreduce, "binomial", "⌈log₂ n⌉ · s", all_a_level},
    {Op::kReduceScatter, "multicast", "n − 1", one_each},
    {Op::kReduceScatter, "pairwise", "(n − 1) · s", all_of_all},
    {Op::kReduceScatter, "binomial", "⌈log₂ n⌉ · segments of the whole vector", vector_a_level},
    {Op::kScan, "multicast", "n − 1", one_each},
    {Op::kScan, "chain", "s", all_of_one},
    {Op::kScan, "doubling", "⌈log₂ n⌉", one_a_level},
    {Op::kExscan, "multicast", "n − 1", one_each},
    {Op::kExscan, "chain", "s", all_of_one},
    {Op::kExscan, "doubling", "⌈log₂ n⌉", one_a_level},
};

Op without_v(Op op) {
    if (op == Op::kGatherv) return Op::kGather;
    if (op == Op::kScatterv) return Op::kScatter;
    if (op == Op::kAlltoallv) return Op::kAlltoall;
    return op;
}

}  // namespace

const BufferBound* buffer_bound(const coll::Algorithm& algorithm) {
    for (const BufferBound& bound : kBounds) {
        if (bound.op == without_v(algorithm.op) && bound.algorithm == algorithm.name) return &bound;
    }
    return nullptr;
}

}  // namespace ulc::sim
