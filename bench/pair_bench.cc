// SPDX-License-Identifier: BSD-3-Clause
// One-way latency of the daemon, without a second core for a second application: one thread holds
// both endpoints, so the measurement covers app → engine (→ wire → engine) → app, without a
// scheduler's delays.
//
//   ulc run -n 1 ulc-bench-pair                                  both endpoints on one engine, no
//                                                                wire
//   ulc-bench-pair --a=/run/ulc/one.sock --b=/run/ulc/two.sock   on two linked engines
//
// Every byte of a message with another stamp is compared in a pass without a clock; in the timed
// one, the last.
#include <benchmark/benchmark.h>

#include <string_view>

#include "bench/common/pair.h"

namespace {

using namespace ulc::bench;

/// Takes --a=… and --b=… out of the arguments.
void take_engines(int& argc, char** argv, const char*& a, const char*& b) {
    int kept = 1;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word.starts_with("--a=")) {
            a = argv[i] + 4;
        } else if (word.starts_with("--b=")) {
            b = argv[i] + 4;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argc = kept;
}

}  // namespace

int main(int argc, char** argv) {
    const char* a = nullptr;  // ULC_ENGINE, else the default socket
    const char* b = nullptr;
    take_engines(argc, argv, a, b);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    Pair pair(a, b);
    benchmark::RegisterBenchmark("ulc/pair/one_way",
                                 [&](benchmark::State& state) { one_way(state, pair); })
        ->Arg(8)
        ->Arg(64)
        ->Arg(1024)
        ->Arg(65536)
        ->Iterations(20)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
