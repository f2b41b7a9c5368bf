#include "coll/algorithm.h"

namespace ulc::coll {
namespace {

constexpr Algorithm kAlgorithms[] = {
    {Op::kBarrier, "gather_broadcast", barrier_gather_broadcast,
     "empty messages to index 0, which multicasts an empty one (URTP §4.5)"},
    {Op::kBarrier, "chain", barrier_chain,
     "k chains of neighbours, then a multicast (GAMMA §5.3); k: \"chain:2\", 1 is the serialized "
     "one"},
    {Op::kBarrier, "dissemination", barrier_dissemination, "log2(ranks) rounds of unicast"},
    {Op::kBroadcast, "multicast", broadcast_multicast, "the root multicasts (URTP §4.2)"},
    {Op::kBroadcast, "binomial", broadcast_binomial, "tree over unicast, for reference"},
    {Op::kAllgather, "round_robin", allgather_round_robin, "one multicasts at a time (URTP §4.3)"},
    {Op::kAllgather, "concurrent", allgather_concurrent,
     "all multicast k segments a round (URTP §4.3); k: \"concurrent:4\""},
    {Op::kAllgather, "ring", allgather_ring, "blocks passed to the right, for reference"},
};

}  // namespace

std::span<const Algorithm> algorithms() noexcept { return kAlgorithms; }

const Algorithm* find_algorithm(Op op, std::string_view name) noexcept {
    for (const Algorithm& algorithm : kAlgorithms) {
        if (algorithm.op == op && algorithm.name == name) return &algorithm;
    }
    return nullptr;
}

}  // namespace ulc::coll
