// SPDX-License-Identifier: BSD-3-Clause
// The reference of streams over shared memory: the copy alone. A process announces messages in a
// mapping that both processes have; the other one copies each into its memory by memcpy(), as a
// receive into a buffer must at least. 16 messages may be pending, as in throughput_bench.cc, and
// every byte of the last one is compared.
//
//   ulc-bench-copy --benchmark_filter=stream/65536
#include <benchmark/benchmark.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytesMax = 4U << 20;
constexpr std::uint64_t kBytesPerIteration = 16U << 20;
constexpr std::uint64_t kWindow = 16;  ///< messages that may be pending
constexpr int kIterations = 200;       ///< seconds: both processes may begin on one core
constexpr std::size_t kPage = 4096;
constexpr unsigned kLooksBeforeYield = 10'000;

/// The mapping of both processes. Each counter has the cache line of its writer.
struct Shared {
    alignas(64) std::atomic<std::uint64_t> wanted{0};  ///< messages to send, of all iterations
    alignas(64) std::atomic<std::uint64_t> sent{0};
    alignas(64) std::atomic<std::uint64_t> copied{0};
    alignas(4096) unsigned char payload[kBytesMax];
};

/// Waits until `is_met` holds; yields now and then, for a machine with one processor.
template <typename Condition>
void wait_until(Condition is_met) {
    for (unsigned looks = 1; !is_met(); ++looks)
        if (looks % kLooksBeforeYield == 0) ::sched_yield();
}

[[noreturn]] void send_without_end(Shared& shared) {
    for (std::uint64_t sent = 0;; ++sent) {
        wait_until([&] {
            return shared.wanted.load(std::memory_order_acquire) > sent &&
                   sent - shared.copied.load(std::memory_order_acquire) < kWindow;
        });
        shared.sent.store(sent + 1, std::memory_order_release);
    }
}

void stream(benchmark::State& state, Shared& shared) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const std::uint64_t rounds = std::clamp<std::uint64_t>(kBytesPerIteration / bytes, 8, 5000);
    // Aligned as the message: memcpy() between addresses that differ by a few bytes in a page is
    // slower on AMD processors (glibc bug 30994).
    std::vector<unsigned char> space(kWindow * bytes + kPage);
    unsigned char* const memory =
        space.data() + (kPage - reinterpret_cast<std::uintptr_t>(space.data()) % kPage);
    std::uint64_t copied = shared.copied.load(std::memory_order_relaxed);
    for (auto _ : state) {
        const auto start = Clock::now();
        const std::uint64_t end = copied + rounds;
        shared.wanted.store(end, std::memory_order_release);
        unsigned char* to = nullptr;
        while (copied < end) {
            wait_until([&] { return shared.sent.load(std::memory_order_acquire) > copied; });
            to = memory + copied % kWindow * bytes;
            std::memcpy(to, shared.payload, bytes);
            shared.copied.store(++copied, std::memory_order_release);
        }
        const bool right = std::memcmp(to, shared.payload, bytes) == 0;
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count() /
                               static_cast<double>(rounds));
        if (!right) {
            state.SkipWithError("a copy differs from the message");
            break;
        }
        std::fill_n(to, bytes, 0);
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

}  // namespace

int main(int argc, char** argv) {
    void* const place =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) {
        std::perror("mmap of 4 MiB failed; free memory");
        return 1;
    }
    auto& shared = *std::construct_at(static_cast<Shared*>(place));
    for (std::size_t i = 0; i < kBytesMax; ++i)
        shared.payload[i] = static_cast<unsigned char>(i * 7 + 1);
    const pid_t sender = ::fork();
    if (sender < 0) {
        std::perror("fork failed");
        return 1;
    }
    if (sender == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        send_without_end(shared);
    }
    benchmark::Initialize(&argc, argv);
    const bool understood = !benchmark::ReportUnrecognizedArguments(argc, argv);
    if (understood) {
        benchmark::RegisterBenchmark("copy/stream",
                                     [&](benchmark::State& state) { stream(state, shared); })
            ->RangeMultiplier(16)
            ->Range(1024, kBytesMax)
            // Fixed, since the time reported is a message's, not that of all in an iteration.
            ->Iterations(kIterations)
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
        benchmark::RunSpecifiedBenchmarks();
        benchmark::Shutdown();
    }
    ::kill(sender, SIGKILL);
    ::waitpid(sender, nullptr, 0);
    return understood ? 0 : 2;
}
