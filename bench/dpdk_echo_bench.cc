// SPDX-License-Identifier: BSD-3-Clause
// ulc-bench-dpdk: bare DPDK echo over memif and af_packet, one-way latency and throughput. The
// denominator of ULC's figures.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "dpdk_echo.h"

namespace {

using ulc::bench::DpdkEcho;
using ulc::bench::DpdkLink;

constexpr std::uint32_t kRoundTripsPerIteration = 1000;
constexpr std::uint32_t kFramesPerIteration = 100'000;
constexpr int kLatencyIterations = 30;
constexpr int kStreamIterations = 10;

void one_way(benchmark::State& state, DpdkEcho* echo) {
    const auto octets = static_cast<std::uint32_t>(state.range(0));
    // The far side was asleep; and caches fill.
    if (echo->round_trips_ns(octets, kRoundTripsPerIteration) < 0)
        return state.SkipWithError("an echo was lost");
    for (auto _ : state) {
        const double ns = echo->round_trips_ns(octets, kRoundTripsPerIteration);
        if (ns < 0) {
            state.SkipWithError("an echo was lost");
            break;
        }
        state.SetIterationTime(ns * 1e-9 / (2.0 * kRoundTripsPerIteration));
    }
}

void stream(benchmark::State& state, DpdkEcho* echo) {
    const auto octets = static_cast<std::uint32_t>(state.range(0));
    double frames = 0;
    for (auto _ : state) {
        std::uint32_t received = 0;
        const double ns = echo->one_way_ns(octets, kFramesPerIteration, received);
        if (ns < 0 || received == 0) {
            state.SkipWithError("the stream was lost");
            break;
        }
        frames += received;
        state.SetIterationTime(ns * 1e-9);
    }
    state.counters["frames/s"] = benchmark::Counter(frames, benchmark::Counter::kIsRate);
    state.SetBytesProcessed(static_cast<std::int64_t>(frames) * octets);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::unique_ptr<DpdkEcho>> echoes;
    for (const DpdkLink link : {DpdkLink::kMemif, DpdkLink::kVeth}) {
        std::string why;
        auto echo = DpdkEcho::start(link, why);
        const std::string name = std::string("dpdk/") + name_of(link);
        if (echo == nullptr) {
            std::fprintf(stderr, "note: no %s figures: %s\n", name.c_str(), why.c_str());
            continue;
        }
        auto* latency =
            benchmark::RegisterBenchmark((name + "/one_way").c_str(), one_way, echo.get());
        for (const std::int64_t octets : {8, 64, 256, 1024, 1500})
            latency->Arg(octets);
        latency->Iterations(kLatencyIterations)->UseManualTime()->Unit(benchmark::kMicrosecond);
        benchmark::RegisterBenchmark((name + "/stream").c_str(), stream, echo.get())
            ->Arg(64)
            ->Arg(1500)
            ->Iterations(kStreamIterations)
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
        echoes.push_back(std::move(echo));
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
