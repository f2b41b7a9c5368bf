// SPDX-License-Identifier: BSD-3-Clause
// One-way latency between rank 0 and rank 1: half of a round trip (GAMMA §2.2), 1 octet to 4 MiB,
// kernel references in ulc-bench-kernel, MPI in ulc-bench-latency-mpi.
//
//   ulc run -n 2 ulc-bench-latency                        (two daemons)
//   ulc run -n 2 --embedded ulc-bench-latency --benchmark_filter=/8$
//
// Every octet of every message is compared. So that comparing is not measured, an iteration is two
// passes: one without a clock, in which each message has other octets and both sides compare all of
// them, and a timed one, in which each message has its number and the last is compared as a
// whole.
#include <chrono>
#include <cstring>
#include <string>

#include "bench/common/driver.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kCheckedRounds = 4;

/// The number of a message in its first octets.
void stamp(std::vector<unsigned char>& payload, std::uint32_t number) {
    std::memcpy(payload.data(), &number, std::min(sizeof number, payload.size()));
}

bool checked_pass(Transport& transport, std::size_t octets) {
    bool right = true;
    std::vector<unsigned char> in(octets);
    for (std::uint32_t i = 0; i < kCheckedRounds; ++i) {
        const std::vector<unsigned char> out = payload_of(i, octets);
        std::fill(in.begin(), in.end(), static_cast<unsigned char>(0));
        if (transport.rank() == 0) {
            transport.round_trip(1, out.data(), in.data(), octets);
        } else {
            transport.echo(0, in.data(), octets);
        }
        right = in == out && right;
    }
    return right;
}

Outcome execute(Transport& transport, const Command& command) {
    Outcome outcome;
    if (transport.rank() > 1) return outcome;
    const std::size_t octets = command.octets;
    outcome.right = checked_pass(transport, octets);
    std::vector<unsigned char> out = payload_of(99, octets);
    std::vector<unsigned char> in(octets);
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < command.rounds; ++i) {
        if (transport.rank() == 0) {
            stamp(out, i);
            transport.round_trip(1, out.data(), in.data(), octets);
            outcome.right = std::memcmp(in.data(), out.data(), std::min(sizeof i, octets)) == 0 &&
                            outcome.right;
        } else {
            transport.echo(0, in.data(), octets);
        }
    }
    outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    stamp(out, command.rounds - 1);
    outcome.right = in == out && outcome.right;
    return outcome;
}

std::vector<Case> cases(const Transport&) {
    std::vector<Case> all;
    for (const std::uint64_t octets :
         {1U, 8U, 40U, 64U, 256U, 1024U, 4096U, 16384U, 65536U, 262144U, 1048576U, 4194304U}) {
        Case one;
        one.name = "one_way/" + std::to_string(octets);
        one.command.octets = octets;
        one.command.rounds = octets <= 4096      ? 500
                             : octets <= 65536   ? 100
                             : octets <= 1048576 ? 40
                                                 : 10;
        one.iterations = octets <= 65536 ? 20 : 10;
        one.operations_per_round = 2;
        all.push_back(one);
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) { return run_benchmarks(argc, argv, 2, cases, execute); }
