// SPDX-License-Identifier: BSD-3-Clause
// Tests simulated Express processes: a message interrupts a thread that computes, or waits until it
// does not, and the time of both is charged; shared memory keeps its contents.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/sim/express/express_run.h"
#include "tests/sim/express/shared_memory.h"

namespace ulc::sim {
namespace {

constexpr Nanos kLong = 10 * kMillisecond;
constexpr Nanos kUpcall = 27 * kMicrosecond;
constexpr Nanos kWork = 40 * kMicrosecond;

ClusterConfig config_of(std::uint16_t processes) {
    ClusterConfig config;
    config.net.ports = processes;
    config.net.latency = 0;
    config.engine.profile = "optimistic";
    return config;
}

struct Seen {
    Nanos handled_at = 0;  ///< since the barrier
    Nanos computed = 0;
    std::uint64_t interrupted = 0;
    std::uint64_t polled = 0;
};

/// Process 0 sends to process 1, which computes for kLong; its handler takes kWork.
Seen send_to_one_that_computes(const ExpressRules& rules) {
    ExpressRun run(config_of(2), rules);
    Seen seen;
    EXPECT_TRUE(run.run([&](ExpressProcess& process) {
        Nanos begun = 0;
        const unsigned handler =
            process.add_handler([&](std::uint16_t, std::span<const std::byte>) {
                seen.handled_at = process.now() - begun;
                process.spend(kWork);
            });
        process.barrier();
        begun = process.now();
        const std::uint64_t before = process.polled();
        if (process.rank() == 0) {
            process.compute(kMillisecond);
            process.send(1, handler, {});
        } else {
            process.compute(kLong);
            seen.computed = process.now() - begun;
        }
        process.barrier();
        if (process.rank() == 1) {
            seen.interrupted = process.interrupted();
            seen.polled = process.polled() - before;
        }
    }));
    return seen;
}

TEST(ExpressRun, a_message_interrupts_a_thread_and_lengthens_what_it_computes) {
    const Seen seen = send_to_one_that_computes({.interrupts = true, .upcall = kUpcall});
    EXPECT_NEAR(static_cast<double>(seen.handled_at), 1e6, 20e3);
    // The message of the barrier is the second one.
    EXPECT_EQ(seen.interrupted, 2U);
    EXPECT_NEAR(static_cast<double>(seen.computed),
                static_cast<double>(kLong + 2 * kUpcall + kWork), 5e3);
}

TEST(ExpressRun, without_interrupts_a_message_waits_for_the_end_of_the_computation) {
    const Seen seen = send_to_one_that_computes({.interrupts = false, .upcall = kUpcall});
    EXPECT_GE(seen.handled_at, kLong);
    EXPECT_NEAR(static_cast<double>(seen.computed), static_cast<double>(kLong), 20e3);
    EXPECT_EQ(seen.interrupted, 0U);
    EXPECT_GE(seen.polled, 1U);
}

// Each process adds to each word under its lock.
TEST(ExpressRun, sums_under_a_lock_in_shared_memory_lose_nothing) {
    for (const bool interrupts : {true, false}) {
        constexpr unsigned kProcesses = 5;
        constexpr unsigned kTimes = 20;
        constexpr std::size_t kWords = 4;
        ExpressRun run(config_of(kProcesses), {.interrupts = interrupts, .upcall = kUpcall});
        std::vector<std::unique_ptr<SharedMemory>> memories(kProcesses);
        std::vector<std::uint32_t> sums(kWords);
        ASSERT_TRUE(run.run([&](ExpressProcess& process) {
            auto& memory = memories[process.rank()];
            memory = std::make_unique<SharedMemory>(process, kWords * SharedMemory::kPage,
                                                    MemoryCosts{});
            const auto word = [&](std::size_t n) {
                return reinterpret_cast<std::uint32_t*>(memory->data() + n * SharedMemory::kPage);
            };
            process.barrier();
            for (unsigned n = 0; n < kTimes * kWords; ++n) {
                const auto lock = static_cast<unsigned>((n + process.rank()) % kWords);
                memory->lock(lock);
                if (!memory->allows(word(lock), true)) memory->fetch(word(lock), true);
                const std::uint32_t old = *word(lock);
                memory->release();
                process.compute(30 * kMicrosecond);
                while (!memory->allows(word(lock), true))
                    memory->fetch(word(lock), true);
                *word(lock) = old + 1;
                memory->release();
                memory->unlock(lock);
            }
            process.barrier();
            if (process.rank() == 0) {
                for (std::size_t n = 0; n < kWords; ++n) {
                    if (!memory->allows(word(n), false)) memory->fetch(word(n), false);
                    sums[n] = *word(n);
                    memory->release();
                }
            }
            process.barrier();
        }));
        EXPECT_EQ(sums, std::vector<std::uint32_t>(kWords, kProcesses * kTimes));
    }
}

}  // namespace
}  // namespace ulc::sim
