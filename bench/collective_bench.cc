// Every collective over sizes, on all ranks of a job, each with the table's choice and with named algorithms, among them the
// tree over unicast for reference. The time of an operation is that of the rank that was done last. The root of a broadcast goes round
// (URTP §4.1), so that one broadcast cannot run ahead of the next.
//
//   ulc run -n 8 --nodes 8 ulc-bench-collective
//   mpirun -np 8 --mca btl tcp,self ulc-bench-collective-mpi        (the reference)
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "bench/common/driver.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

enum What : std::uint32_t {
    kBarrier,
    kBroadcast,
    kAllgather,
    kGather,
    kScatter,
    kAlltoall,
    kReduce,
    kAllreduce,
    kReduceScatter,
    kScan,
};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

Outcome run_barrier(Transport& transport, const Command& command) {
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < command.rounds; ++i)
        transport.barrier(command.algorithm_or_null());
    return {seconds_since(start), true};
}

Outcome run_broadcast(Transport& transport, const Command& command) {
    const std::uint16_t ranks = transport.size();
    std::vector<unsigned char> buffer = payload_of(transport.rank(), command.octets);
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < command.rounds; ++i) {
        const auto root = static_cast<std::uint16_t>(i % ranks);
        transport.broadcast(root, buffer.data(), command.octets, command.algorithm_or_null());
    }
    const double seconds = seconds_since(start);
    // The first root's octets went round from root to root.
    return {seconds, buffer == payload_of(0, command.octets)};
}

Outcome run_allgather(Transport& transport, const Command& command) {
    const std::size_t octets = command.octets;
    const std::vector<unsigned char> input = payload_of(transport.rank(), octets);
    std::vector<unsigned char> output(octets * transport.size());
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < command.rounds; ++i)
        transport.allgather(input.data(), output.data(), octets, command.algorithm_or_null());
    Outcome outcome{seconds_since(start), true};
    for (std::uint16_t rank = 0; rank < transport.size(); ++rank) {
        const std::vector<unsigned char> expected = payload_of(rank, octets);
        outcome.right = std::memcmp(output.data() + rank * octets, expected.data(), octets) == 0 &&
                        outcome.right;
    }
    return outcome;
}

/// Blocks to or from a root that goes round, or to and from all.
Outcome run_blocks(Transport& transport, const Command& command) {
    const std::size_t octets = command.octets;
    const std::uint16_t ranks = transport.size();
    const std::uint16_t self = transport.rank();
    const char* algorithm = command.algorithm_or_null();
    std::vector<unsigned char> one = payload_of(self, octets);
    std::vector<unsigned char> in;  // what goes to each rank is that rank's
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        const std::vector<unsigned char> block =
            payload_of(command.what == kAlltoall ? self * 1000U + rank : rank, octets);
        in.insert(in.end(), block.begin(), block.end());
    }
    std::vector<unsigned char> out(octets * ranks);
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < command.rounds; ++i) {
        const auto root = static_cast<std::uint16_t>(i % ranks);
        if (command.what == kGather) {
            transport.gather(root, one.data(), out.data(), octets, algorithm);
        } else if (command.what == kScatter) {
            transport.scatter(root, in.data(), one.data(), octets, algorithm);
        } else {
            transport.alltoall(in.data(), out.data(), octets, algorithm);
        }
    }
    Outcome outcome{seconds_since(start), one == payload_of(self, octets)};
    if (command.what == kScatter) return outcome;
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        const std::vector<unsigned char> expected =
            payload_of(command.what == kAlltoall ? rank * 1000U + self : rank, octets);
        outcome.right =
            std::memcmp(out.data() + rank * octets, expected.data(), octets) == 0 && outcome.right;
    }
    return outcome;
}

/// Sums of doubles that are exact: element i of rank r is r + i.
Outcome run_reduction(Transport& transport, const Command& command) {
    const std::uint16_t ranks = transport.size();
    const std::size_t count = command.octets / sizeof(double);
    const char* algorithm = command.algorithm_or_null();
    const std::size_t given = command.what == kReduceScatter ? count * ranks : count;
    std::vector<double> in(given);
    for (std::size_t i = 0; i < given; ++i)
        in[i] = static_cast<double>(transport.rank() + i);
    std::vector<double> out(count);
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < command.rounds; ++i) {
        const auto root = static_cast<std::uint16_t>(i % ranks);
        if (command.what == kReduce) {
            transport.reduce(root, in.data(), out.data(), count, algorithm);
        } else if (command.what == kAllreduce) {
            transport.allreduce(in.data(), out.data(), count, algorithm);
        } else if (command.what == kReduceScatter) {
            transport.reduce_scatter(in.data(), out.data(), count, algorithm);
        } else {
            transport.scan(in.data(), out.data(), count, algorithm);
        }
    }
    Outcome outcome{seconds_since(start), true};
    const std::size_t before = command.what == kReduceScatter ? transport.rank() * count : 0;
    const std::size_t folded = command.what == kScan ? transport.rank() + 1U : ranks;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t sum = folded * (folded - 1) / 2 + folded * (before + i);
        outcome.right = outcome.right && out[i] == static_cast<double>(sum);
    }
    return outcome;
}

Outcome execute(Transport& transport, const Command& command) {
    switch (static_cast<What>(command.what)) {
        case kBarrier:
            return run_barrier(transport, command);
        case kBroadcast:
            return run_broadcast(transport, command);
        case kAllgather:
            return run_allgather(transport, command);
        case kGather:
        case kScatter:
        case kAlltoall:
            return run_blocks(transport, command);
        case kReduce:
        case kAllreduce:
        case kReduceScatter:
        case kScan:
            return run_reduction(transport, command);
    }
    return {0, false};
}

void add(std::vector<Case>& all, What what, const char* name, const std::string& algorithm,
         std::uint64_t octets, std::uint16_t ranks) {
    Case one;
    one.name = name;
    if (!algorithm.empty()) one.name += '/' + algorithm;
    if (what != kBarrier) one.name += '/' + std::to_string(octets);
    one.command.what = what;
    one.command.octets = octets;
    one.command.rounds = octets <= 4096 ? 100 : octets <= 65536 ? 20 : 4;
    // Every rank is the root at least once.
    one.command.rounds = std::max<std::uint32_t>(one.command.rounds, ranks);
    set_algorithm(one.command, algorithm);
    all.push_back(one);
}

std::vector<Case> cases(const Transport& transport) {
    std::vector<Case> all;
    const auto with = [&](What what, const char* name, std::uint64_t octets,
                          std::initializer_list<const char*> algorithms) {
        add(all, what, name, "", octets, transport.size());
        if (!transport.has_algorithms()) return;
        for (const char* algorithm : algorithms)
            add(all, what, name, algorithm, octets, transport.size());
    };
    with(kBarrier, "barrier", 0, {"gather_broadcast", "dissemination"});
    for (const std::uint64_t octets : {8U, 1024U, 16384U, 65536U, 1048576U})
        with(kBroadcast, "broadcast", octets, {"multicast", "binomial"});
    for (const std::uint64_t octets : {8U, 1024U, 16384U, 65536U})
        with(kAllgather, "allgather", octets,
             {"round_robin", "concurrent:1", "concurrent:4", "ring"});
    for (const std::uint64_t octets : {8U, 1024U, 16384U}) {
        with(kGather, "gather", octets, {"direct", "token:2", "binomial"});
        with(kScatter, "scatter", octets, {"packed", "direct", "binomial"});
        with(kAlltoall, "alltoall", octets, {"multicast", "pairwise:4"});
        with(kReduceScatter, "reduce_scatter", octets, {"multicast", "pairwise:4", "binomial"});
    }
    for (const std::uint64_t octets : {8U, 1024U, 16384U, 65536U, 1048576U}) {
        with(kReduce, "reduce", octets, {"flat", "chain@16384", "binomial"});
        with(kAllreduce, "allreduce", octets,
             {"multicast", "binomial_multicast", "pairwise_multicast:2", "binomial"});
        with(kScan, "scan", octets, {"multicast", "chain@16384", "doubling"});
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) { return run_benchmarks(argc, argv, 2, cases, execute); }
