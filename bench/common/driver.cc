// SPDX-License-Identifier: BSD-3-Clause
#include "bench/common/driver.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>

namespace ulc::bench {
namespace {

/// Runs one command on all ranks; returns the outcome of the slowest.
Outcome execute_everywhere(Transport& transport, const Execute& execute, const Command& command) {
    transport.barrier(nullptr);
    const Outcome own = execute(transport, command);
    std::vector<Outcome> all(transport.size());
    transport.allgather(&own, all.data(), sizeof own, nullptr);
    Outcome slowest = all[0];
    for (const Outcome& one : all) {
        slowest.seconds = std::max(slowest.seconds, one.seconds);
        slowest.right = slowest.right && one.right;
    }
    return slowest;
}

void follow(Transport& transport, const Execute& execute) {
    for (;;) {
        Command command;
        transport.broadcast(0, &command, sizeof command, nullptr);
        if (command.what == kEnd) return;
        static_cast<void>(execute_everywhere(transport, execute, command));
    }
}

/// Few rounds first, without a clock, as the references do: the far side slept, buffers are touched
/// first, caches fill. Then as many as the case wants, or as take kIterationSeconds.
void warm_up(Transport& transport, const Execute& execute, const Case& one, Command& command) {
    if (one.rounds_min != 0) command.rounds = std::min(one.command.rounds, 2 * one.rounds_min);
    transport.broadcast(0, &command, sizeof command, nullptr);
    const Outcome outcome = execute_everywhere(transport, execute, command);
    if (one.rounds_min == 0) return;
    const double wanted = kIterationSeconds * command.rounds / std::max(1e-9, outcome.seconds);
    command.rounds =
        std::max(one.rounds_min, wanted < one.command.rounds ? static_cast<std::uint32_t>(wanted)
                                                             : one.command.rounds);
}

void measure(benchmark::State& state, Transport& transport, const Execute& execute, const Case& one,
             bool& all_right) {
    Command command = one.command;
    warm_up(transport, execute, one, command);
    const double operations = command.rounds * one.operations_per_round;
    for (auto _ : state) {
        transport.broadcast(0, &command, sizeof command, nullptr);
        const Outcome outcome = execute_everywhere(transport, execute, command);
        state.SetIterationTime(outcome.seconds / operations);
        for (std::size_t i = 0; i < one.value_names.size(); ++i)
            state.counters[one.value_names[i]] +=
                outcome.values[i] / static_cast<double>(state.max_iterations);
        if (outcome.right) continue;
        all_right = false;
        state.SkipWithError("octets arrived wrong");
        break;
    }
    if (one.octets_processed == 0) return;
    // The reported time is that of one operation, and so are its bytes.
    state.SetBytesProcessed(
        static_cast<std::int64_t>(static_cast<double>(one.octets_processed) / operations *
                                  static_cast<double>(state.iterations())));
}

int lead(int argc, char** argv, Transport& transport, const std::vector<Case>& cases,
         const Execute& execute) {
    bool all_right = true;
    for (const Case& one : cases) {
        const std::string name = transport.name() + '/' + one.name;
        benchmark::RegisterBenchmark(
            name.c_str(),
            [&](benchmark::State& state) { measure(state, transport, execute, one, all_right); })
            ->Iterations(one.iterations)
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
    }
    benchmark::AddCustomContext("ranks", std::to_string(transport.size()));
    benchmark::Initialize(&argc, argv);
    const bool wrong_options = benchmark::ReportUnrecognizedArguments(argc, argv);
    if (!wrong_options) benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    Command end;
    end.what = kEnd;
    transport.broadcast(0, &end, sizeof end, nullptr);
    return wrong_options ? 2 : all_right ? 0 : 1;
}

}  // namespace

int run_benchmarks(int argc, char** argv, std::uint16_t ranks,
                   const std::function<std::vector<Case>(const Transport&)>& cases,
                   const Execute& execute) {
    std::string why;
    const std::unique_ptr<Transport> transport = make_transport(argc, argv, why);
    if (transport == nullptr) {
        std::fprintf(stderr, "%s: %s\n", argv[0], why.c_str());
        return 1;
    }
    if (transport->size() < ranks) {
        std::fprintf(stderr, "%s: needs at least %u ranks\n", argv[0], unsigned{ranks});
        return 1;
    }
    if (transport->rank() == 0) return lead(argc, argv, *transport, cases(*transport), execute);
    follow(*transport, execute);
    return 0;
}

void set_algorithm(Command& command, const std::string& name) {
    const std::size_t n = std::min(name.size(), sizeof command.algorithm - 1);
    std::copy_n(name.begin(), n, command.algorithm);
    command.algorithm[n] = '\0';
}

std::vector<unsigned char> payload_of(std::uint64_t stamp, std::size_t octets) {
    std::vector<unsigned char> payload(octets);
    for (std::size_t i = 0; i < octets; ++i)
        payload[i] = octet_of(stamp, i);
    return payload;
}

}  // namespace ulc::bench
