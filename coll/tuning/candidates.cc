// SPDX-License-Identifier: BSD-3-Clause
#include "coll/tuning/candidates.h"

namespace ulc::coll {

std::span<const Candidates> candidates() {
    static const std::vector<std::uint64_t> blocks{8, 64, 256, 1024, 4096, 16384};
    static const std::vector<std::uint64_t> vectors{8,     64,    256,    1024,   4096,
                                                    16384, 65536, 262144, 1048576};
    static const std::vector<Candidates> all{
        {Op::kBarrier,
         false,
         {"gather_broadcast", "dissemination", "dissemination:2", "dissemination:3",
          "dissemination:4", "dissemination:7", "chain:2", "chain:3", "chain"},
         {0}},
        {Op::kBroadcast, false, {"multicast", "binomial"}, vectors},
        {Op::kGather, true, {"direct", "token:4", "token:2", "token", "binomial"}, blocks},
        {Op::kScatter, true, {"direct", "packed", "binomial"}, blocks},
        {Op::kAllgather,
         true,
         {"concurrent", "concurrent@4096", "concurrent@1486", "concurrent:2@4096",
          "concurrent:4@1486", "round_robin", "ring"},
         blocks},
        {Op::kAlltoall,
         true,
         {"pairwise:4", "pairwise:2", "pairwise", "pairwise:64", "multicast"},
         blocks},
        {Op::kReduce,
         false,
         {"binomial", "chain@4096", "chain@16384", "chain", "chain@1024", "flat"},
         vectors},
        {Op::kAllreduce,
         false,
         {"binomial_multicast", "pairwise_multicast:4", "pairwise_multicast",
          "chain_multicast@4096", "chain_multicast", "multicast", "binomial"},
         vectors},
        {Op::kReduceScatter,
         true,
         {"pairwise:4", "pairwise:2", "pairwise", "pairwise:64", "multicast", "binomial"},
         blocks},
        {Op::kScan,
         false,
         {"doubling", "chain@4096", "chain@16384", "chain", "chain@1024", "multicast"},
         vectors},
    };
    return all;
}

std::span<const Follower> followers() noexcept {
    static constexpr Follower kAll[] = {
        {Op::kGatherv, Op::kGather, true},
        {Op::kScatterv, Op::kScatter, true},
        {Op::kAlltoallv, Op::kAlltoall, true},
        {Op::kExscan, Op::kScan, false},
    };
    return kAll;
}

}  // namespace ulc::coll
