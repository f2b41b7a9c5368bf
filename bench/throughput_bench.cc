// SPDX-License-Identifier: BSD-3-Clause
// Throughput from rank 0 to rank 1: bursts of equal messages of 1 byte to 4 MiB, up to 16 pending,
// until the receiver has compared every byte of the last one and reported it. Reports time a
// message, bytes a second.
//
//   ulc run -n 2 ulc-bench-throughput
#include <algorithm>
#include <chrono>
#include <string>

#include "bench/common/driver.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

Outcome execute(Transport& transport, const Command& command) {
    Outcome outcome;
    if (transport.rank() > 1) return outcome;
    const std::size_t octets = command.octets;
    const std::vector<unsigned char> payload = payload_of(1, octets);
    unsigned char answer = 0;
    if (transport.rank() == 0) {
        const auto start = Clock::now();
        transport.stream_out(1, payload.data(), octets, command.rounds);
        const unsigned char question = 1;
        transport.round_trip(1, &question, &answer, 1);
        outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    } else {
        std::vector<unsigned char> memory(kStreamWindow * octets);
        outcome.right =
            transport.stream_in(0, memory.data(), payload.data(), octets, command.rounds);
        transport.echo(0, &answer, 1);
    }
    return outcome;
}

std::vector<Case> cases(const Transport&) {
    std::vector<Case> all;
    for (const std::uint64_t octets :
         {1U, 8U, 64U, 1024U, 4096U, 16384U, 65536U, 262144U, 1048576U, 4194304U}) {
        constexpr std::uint64_t kOctetsPerIteration = 16U << 20;
        Case one;
        one.name = "stream/" + std::to_string(octets);
        one.command.octets = octets;
        one.command.rounds = static_cast<std::uint32_t>(
            std::clamp<std::uint64_t>(kOctetsPerIteration / octets, 8, 5000));
        one.octets_processed = octets * one.command.rounds;
        all.push_back(one);
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) { return run_benchmarks(argc, argv, 2, cases, execute); }
