// SPDX-License-Identifier: BSD-3-Clause
// The references of streams over shared memory: copies alone.
//
//   copy/stream    A process announces messages that lie in a mapping of both; the other one copies
//                  each into its memory. The message stays the same, so the cache of the receiver
//                  keeps it: no transport that moves new bytes between two cores reaches this.
//   copy/pipeline  The sender copies each message from its memory into a ring in the mapping, in
//                  pieces; the receiver copies each piece out. A transport with a ring does this
//                  at least.
//
// As in throughput_bench.cc, 16 messages may be pending. The ring has the size of the shared-memory
// wire's, 512 KiB. The receiver compares every byte of the last message.
//
//   ulc-bench-copy --benchmark_filter=/65536
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

constexpr std::size_t kRingBytes = 512U << 10;
constexpr std::size_t kPieceBytes = 16U << 10;
constexpr std::uint64_t kPieces = kRingBytes / kPieceBytes;

/// The progress of one benchmark. Each counter has the cache line of its writer.
struct Channel {
    alignas(64) std::atomic<std::uint64_t> wanted{0};  ///< number to send, over all iterations
    alignas(64) std::atomic<std::uint64_t> sent{0};
    alignas(64) std::atomic<std::uint64_t> copied{0};
};

/// The mapping of both processes.
struct Shared {
    Channel messages;
    Channel pieces;
    std::atomic<std::uint64_t> message_bytes{0};  ///< length of a message of the pipeline
    alignas(4096) unsigned char payload[kBytesMax];
    alignas(4096) unsigned char ring[kRingBytes];
};

/// Waits until `is_met` holds; yields now and then, for a machine with one processor.
template <typename Condition>
void wait_until(Condition is_met) {
    for (unsigned looks = 1; !is_met(); ++looks)
        if (looks % kLooksBeforeYield == 0) ::sched_yield();
}

/// Returns whether the sender may announce one more.
bool may_send(const Channel& channel, std::uint64_t window) {
    const std::uint64_t sent = channel.sent.load(std::memory_order_relaxed);
    return channel.wanted.load(std::memory_order_acquire) > sent &&
           sent - channel.copied.load(std::memory_order_acquire) < window;
}

void announce(Channel& channel) {
    channel.sent.store(channel.sent.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

/// Pieces of a message of that many bytes.
std::uint64_t pieces_of(std::size_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

/// Copies piece number `at` of all messages between a message and the ring.
void copy_piece(unsigned char* to, const unsigned char* from, std::size_t bytes, std::uint64_t at) {
    const std::size_t begin = at % pieces_of(bytes) * kPieceBytes;
    std::memcpy(to, from, std::min(kPieceBytes, bytes - begin));
}

[[noreturn]] void send_without_end(Shared& shared, const unsigned char* message) {
    for (;;) {
        wait_until(
            [&] { return may_send(shared.messages, kWindow) || may_send(shared.pieces, kPieces); });
        if (may_send(shared.messages, kWindow)) announce(shared.messages);
        if (!may_send(shared.pieces, kPieces)) continue;
        const std::uint64_t at = shared.pieces.sent.load(std::memory_order_relaxed);
        const std::size_t bytes = shared.message_bytes.load(std::memory_order_relaxed);
        copy_piece(shared.ring + at % kPieces * kPieceBytes,
                   message + at % pieces_of(bytes) * kPieceBytes, bytes, at);
        announce(shared.pieces);
    }
}

/// Memory for kWindow messages, aligned as the message: memcpy() between addresses that differ by a
/// few bytes in a page is slower on AMD processors (glibc bug 30994).
class Memory {
public:
    explicit Memory(std::size_t bytes) : bytes_(bytes), space_(kWindow * bytes + kPage) {
        first_ = space_.data() + (kPage - reinterpret_cast<std::uintptr_t>(space_.data()) % kPage);
    }
    [[nodiscard]] unsigned char* at(std::uint64_t message) const {
        return first_ + message % kWindow * bytes_;
    }

private:
    std::size_t bytes_;
    std::vector<unsigned char> space_;
    unsigned char* first_;
};

/// Measures rounds of messages that receive(memory) copies; it returns the place of the last one.
template <typename Receive>
void measure(benchmark::State& state, const Shared& shared, std::uint64_t rounds, Receive receive) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Memory memory(bytes);
    for (auto _ : state) {
        const auto start = Clock::now();
        unsigned char* const last = receive(memory);
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count() /
                               static_cast<double>(rounds));
        if (std::memcmp(last, shared.payload, bytes) != 0) {
            state.SkipWithError("a copy differs from the message");
            break;
        }
        std::fill_n(last, bytes, 0);
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

std::uint64_t rounds_of(const benchmark::State& state) {
    const auto bytes = static_cast<std::uint64_t>(state.range(0));
    return std::clamp<std::uint64_t>(kBytesPerIteration / bytes, 8, 5000);
}

void stream(benchmark::State& state, Shared& shared) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const std::uint64_t rounds = rounds_of(state);
    Channel& channel = shared.messages;
    measure(state, shared, rounds, [&](const Memory& memory) {
        std::uint64_t copied = channel.copied.load(std::memory_order_relaxed);
        const std::uint64_t end = copied + rounds;
        channel.wanted.store(end, std::memory_order_release);
        while (copied < end) {
            wait_until([&] { return channel.sent.load(std::memory_order_acquire) > copied; });
            std::memcpy(memory.at(copied), shared.payload, bytes);
            channel.copied.store(++copied, std::memory_order_release);
        }
        return memory.at(end - 1);
    });
}

void pipeline(benchmark::State& state, Shared& shared) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const std::uint64_t rounds = rounds_of(state);
    const std::uint64_t pieces = pieces_of(bytes);
    Channel& channel = shared.pieces;
    // The sender waits as long as nothing is wanted. Piece numbers begin at 0 for each length, so
    // that a message begins with a multiple of pieces_of().
    for (std::atomic<std::uint64_t>* count : {&channel.wanted, &channel.sent, &channel.copied})
        count->store(0, std::memory_order_release);
    shared.message_bytes.store(bytes, std::memory_order_relaxed);
    measure(state, shared, rounds, [&](const Memory& memory) {
        std::uint64_t copied = channel.copied.load(std::memory_order_relaxed);
        const std::uint64_t end = copied + rounds * pieces;
        channel.wanted.store(end, std::memory_order_release);
        while (copied < end) {
            wait_until([&] { return channel.sent.load(std::memory_order_acquire) > copied; });
            copy_piece(memory.at(copied / pieces) + copied % pieces * kPieceBytes,
                       shared.ring + copied % kPieces * kPieceBytes, bytes, copied);
            channel.copied.store(++copied, std::memory_order_release);
        }
        return memory.at(end / pieces - 1);
    });
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
    std::vector<unsigned char> message(kBytesMax);
    for (std::size_t i = 0; i < kBytesMax; ++i)
        shared.payload[i] = message[i] = static_cast<unsigned char>(i * 7 + 1);
    const pid_t sender = ::fork();
    if (sender < 0) {
        std::perror("fork failed");
        return 1;
    }
    if (sender == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        send_without_end(shared, message.data());
    }
    benchmark::Initialize(&argc, argv);
    const bool understood = !benchmark::ReportUnrecognizedArguments(argc, argv);
    if (understood) {
        const auto add = [&](const char* name, void (*run)(benchmark::State&, Shared&)) {
            benchmark::RegisterBenchmark(
                name, [run, &shared](benchmark::State& state) { run(state, shared); })
                ->RangeMultiplier(16)
                ->Range(1024, kBytesMax)
                // Fixed, since the time reported is a message's, not that of all in an iteration.
                ->Iterations(kIterations)
                ->UseManualTime()
                ->Unit(benchmark::kMicrosecond);
        };
        add("copy/stream", stream);
        add("copy/pipeline", pipeline);
        benchmark::RunSpecifiedBenchmarks();
        benchmark::Shutdown();
    }
    ::kill(sender, SIGKILL);
    ::waitpid(sender, nullptr, 0);
    return understood ? 0 : 2;
}
