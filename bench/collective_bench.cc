// Barrier, broadcast and allgather over sizes, on all ranks of a job, each with the table's choice and with every
// named algorithm. The time of an operation is that of the rank that was done last. The root of a broadcast goes round
// (URTP §4.1), so that one broadcast cannot run ahead of the next.
//
//   ulc run -n 8 --nodes 8 ulc-bench-collective
//   mpirun -np 8 --mca btl tcp,self ulc-bench-collective-mpi        (the reference)
#include <chrono>
#include <cstring>
#include <string>

#include "bench/common/driver.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

enum What : std::uint32_t { kBarrier, kBroadcast, kAllgather };

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

Outcome execute(Transport& transport, const Command& command) {
    switch (static_cast<What>(command.what)) {
        case kBarrier:
            return run_barrier(transport, command);
        case kBroadcast:
            return run_broadcast(transport, command);
        case kAllgather:
            return run_allgather(transport, command);
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
    if (what == kBroadcast) one.command.rounds = std::max<std::uint32_t>(one.command.rounds, ranks);
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
    return all;
}

}  // namespace

int main(int argc, char** argv) { return run_benchmarks(argc, argv, 2, cases, execute); }
