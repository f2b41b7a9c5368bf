// SPDX-License-Identifier: BSD-3-Clause
// The reference of every ULC figure: kernel UDP and TCP between two processes, polled
// and blocking, over loopback and over a veth pair. One-way latency is half a round trip (GAMMA
// §2.2); every octet is checked. Runs in separate network namespaces when it may; nothing leaves
// the machine. On the bridge of `ulc run -n 2 --wire bridge ulc-bench-kernel` it measures that
// bridge, and rank 1 ends at once.
#include <benchmark/benchmark.h>

#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "reference/echo_peer.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

constexpr int kRoundTripsPerIteration = 64;
// Fixed, since the time of an iteration as reported is that of one way, not of all its round trips.
constexpr int kLatencyIterations = 200;
constexpr int kStreamIterations = 20;
constexpr std::uint32_t kDatagramMax = 60'000;

std::vector<unsigned char> patterned(std::size_t octets) {
    std::vector<unsigned char> data(octets);
    for (std::size_t i = 0; i < octets; ++i)
        data[i] = pattern(i);
    return data;
}

bool round_trip(int socket, Protocol protocol, Waiting waiting,
                const std::vector<unsigned char>& out, std::vector<unsigned char>& in) {
    if (!send_all(socket, out.data(), out.size(), waiting)) return false;
    if (protocol == Protocol::kTcp) return receive_all(socket, in.data(), in.size(), waiting);
    return receive_datagram(socket, in.data(), in.size(), waiting) ==
           static_cast<ssize_t>(in.size());
}

void latency(benchmark::State& state, EchoPeer* peer, Protocol protocol, Waiting waiting) {
    const auto octets = static_cast<std::uint32_t>(state.range(0));
    const int socket = peer->connect_echo(protocol, waiting, octets);
    if (socket < 0) return state.SkipWithError("cannot connect to the echo process");
    const auto out = patterned(octets);
    std::vector<unsigned char> in(octets);
    bool ok = true;
    for (auto _ : state) {
        const auto start = Clock::now();
        for (int i = 0; i < kRoundTripsPerIteration && ok; ++i)
            ok = round_trip(socket, protocol, waiting, out, in);
        const std::chrono::duration<double> spent = Clock::now() - start;
        state.SetIterationTime(spent.count() / (2.0 * kRoundTripsPerIteration));
        ok = ok && std::memcmp(in.data(), out.data(), octets) == 0;
        if (!ok) {
            state.SkipWithError("an echo was lost or wrong");
            break;
        }
    }
    peer->disconnect(socket, protocol);
}

void throughput(benchmark::State& state, EchoPeer* peer, Waiting waiting) {
    const auto octets = static_cast<std::uint32_t>(state.range(0));
    const int socket = peer->connect_sink(waiting, octets);
    if (socket < 0) return state.SkipWithError("cannot connect to the sink process");
    const auto out = patterned(octets);
    for (auto _ : state) {
        const auto start = Clock::now();
        unsigned char right = 0;
        const bool ok = send_all(socket, out.data(), octets, waiting) &&
                        receive_all(socket, &right, 1, waiting);
        const std::chrono::duration<double> spent = Clock::now() - start;
        state.SetIterationTime(spent.count());
        if (!ok || right != 1) {
            state.SkipWithError("the stream was cut or wrong");
            break;
        }
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(octets) * state.iterations());
    peer->disconnect(socket, Protocol::kTcp);
}

void register_on(Link link, EchoPeer* peer) {
    for (const Waiting waiting : {Waiting::kPolled, Waiting::kBlocking}) {
        for (const Protocol protocol : {Protocol::kUdp, Protocol::kTcp}) {
            const std::string name = std::string("kernel/") + name_of(protocol) + '/' +
                                     name_of(waiting) + '/' + name_of(link) + "/one_way";
            auto* b = benchmark::RegisterBenchmark(name.c_str(), latency, peer, protocol, waiting);
            for (const std::int64_t octets : {8, 64, 1024, 4096, 65536}) {
                if (protocol == Protocol::kTcp || octets <= kDatagramMax) b->Arg(octets);
            }
            b->Iterations(kLatencyIterations)->UseManualTime()->Unit(benchmark::kMicrosecond);
        }
        const std::string name =
            std::string("kernel/tcp/") + name_of(waiting) + '/' + name_of(link) + "/stream";
        benchmark::RegisterBenchmark(name.c_str(), throughput, peer, waiting)
            ->Arg(65536)
            ->Arg(4 << 20)
            ->Iterations(kStreamIterations)
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
    }
}

/// The links to measure.
std::vector<Link> links() {
    if (!bridge_network(1).empty()) return {Link::kBridge};
    if (enter_private_namespace()) return {Link::kLoopback, Link::kVeth};
    std::fprintf(stderr,
                 "note: no namespace of our own (not root); loopback only, veth is left out\n");
    return {Link::kLoopback};
}

bool is_rank_of_the_peer() {
    const char* rank = std::getenv("ULC_RANK");
    return !bridge_network(1).empty() && rank != nullptr && std::strcmp(rank, "0") != 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (is_rank_of_the_peer()) return 0;
    std::vector<std::unique_ptr<EchoPeer>> peers;
    for (const Link link : links()) {
        std::string why;
        auto peer = EchoPeer::start(link, why);
        if (peer == nullptr) {
            std::fprintf(stderr, "note: no %s figures: %s\n", name_of(link), why.c_str());
            continue;
        }
        register_on(link, peer.get());
        peers.push_back(std::move(peer));
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
