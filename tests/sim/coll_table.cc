// Times of every algorithm over sizes and ranks on a simulated Fast Ethernet switch: what coll/selection.cc was made by.
//   build/release/tests/sim/coll_table [RANKS ...] [OPERATION]     one line each: operation, algorithm, octets, µs, frames, payload octets
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/programs/collective_timing.h"

namespace {

using namespace ulc::sim;

struct Entry {
    CollectiveKind kind;
    std::vector<const char*> algorithms;
    std::vector<std::size_t> octets;
};

const std::vector<Entry>& entries() {
    static const std::vector<std::size_t> blocks{8, 64, 256, 1024, 4096, 16384};
    static const std::vector<std::size_t> vectors{8, 256, 1024, 4096, 16384, 65536, 262144};
    static const std::vector<Entry> all{
        {CollectiveKind::kBarrier,
         {"gather_broadcast", "chain:2", "dissemination", "dissemination:2", "dissemination:3",
          "dissemination:4", "dissemination:7"},
         {0}},
        {CollectiveKind::kBroadcast, {"multicast", "binomial"}, vectors},
        {CollectiveKind::kGather, {"direct", "token", "token:2", "token:4", "binomial"}, blocks},
        {CollectiveKind::kScatter, {"packed", "direct", "binomial"}, blocks},
        {CollectiveKind::kAllgather,
         {"round_robin", "concurrent", "concurrent:2", "concurrent:4", "ring"},
         blocks},
        {CollectiveKind::kAlltoall,
         {"multicast", "pairwise", "pairwise:2", "pairwise:4", "pairwise:64"},
         blocks},
        {CollectiveKind::kReduce, {"flat", "binomial", "chain@4096", "chain@16384"}, vectors},
        {CollectiveKind::kAllreduce,
         {"multicast", "binomial_multicast", "chain_multicast@4096", "pairwise_multicast",
          "pairwise_multicast:4", "binomial"},
         vectors},
        {CollectiveKind::kReduceScatter,
         {"multicast", "pairwise", "pairwise:2", "pairwise:4", "pairwise:64", "binomial"},
         blocks},
        {CollectiveKind::kScan, {"multicast", "chain@4096", "chain@16384", "doubling"}, vectors},
    };
    return all;
}

void print(std::uint16_t ranks, const Entry& entry) {
    for (const std::size_t octets : entry.octets) {
        for (const char* algorithm : entry.algorithms) {
            const CollectiveTiming t =
                time_collective(fast_ethernet(ranks),
                                {.kind = entry.kind, .algorithm = algorithm, .octets = octets}, 2);
            const std::string_view name = ulc::coll::name_of(operation_of(entry.kind));
            std::printf("%3u %-15.*s %-22s %7zu %10.1f %8.0f %10.0f%s\n", unsigned{ranks},
                        static_cast<int>(name.size()), name.data(), algorithm, octets, t.us,
                        t.wire_frames, t.payload_octets, t.ok ? "" : "  FAILED");
        }
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::uint16_t> ranks;
    std::string_view only;
    for (int i = 1; i < argc; ++i) {
        const auto number = static_cast<std::uint16_t>(std::strtoul(argv[i], nullptr, 10));
        if (number > 0) {
            ranks.push_back(number);
        } else {
            only = argv[i];
        }
    }
    if (ranks.empty()) ranks = {4, 16};
    for (const std::uint16_t count : ranks)
        for (const Entry& entry : entries())
            if (only.empty() || only == ulc::coll::name_of(operation_of(entry.kind)))
                print(count, entry);
    return 0;
}
