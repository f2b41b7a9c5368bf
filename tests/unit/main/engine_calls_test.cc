// SPDX-License-Identifier: BSD-3-Clause
// Calls that other threads have an engine's thread make. When a call was made, the engine may sleep
// again: nothing is left on the descriptor that wakes it. A call that the engine does not begin is
// withdrawn, and one that does not return is abandoned. A thread that does not end is not awaited
// without limit.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "main/engine_loop.h"
#include "main/service/limited_thread.h"

namespace {

constexpr auto kPauseMax = std::chrono::milliseconds(20);

std::atomic<int> wake_fd{-1};  ///< a write to it pauses; -1: none
std::atomic<int> made{0};      ///< calls that the engine's thread has made

/// Gives the engine's thread time to make the call of the thread that wakes it now.
void pause_before_wake() {
    const int before = made;
    const auto end = std::chrono::steady_clock::now() + kPauseMax;
    while (made == before && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
}

}  // namespace

// Stands in for the C library's.
extern "C" ssize_t write(int fd, const void* data, size_t length) {
    if (fd == wake_fd) pause_before_wake();
    return syscall(SYS_write, fd, data, length);
}

namespace ulc::daemon {
namespace {

constexpr int kCalls = 20;
constexpr auto kPatience = std::chrono::seconds(20);

TEST(EngineCalls, the_engine_may_sleep_after_a_call) {
    EngineCalls calls;
    std::atomic<bool> over{false};
    std::thread engine([&] {
        // The calls of this test do not use the core, so its memory is enough.
        alignas(Core) std::byte memory[sizeof(Core)] = {};
        Core& core = *reinterpret_cast<Core*>(memory);
        while (!over)
            if (!calls.serve(core, 0)) std::this_thread::yield();
        calls.close();
    });
    wake_fd = calls.wake_fd();
    int left = 0;
    for (int n = 0; n < kCalls; ++n) {
        EXPECT_TRUE(calls.run([&](Core&, Nanos) { ++made; }));
        pollfd wake{calls.wake_fd(), POLLIN, 0};
        left += poll(&wake, 1, 0);
    }
    wake_fd = -1;
    over = true;
    engine.join();
    EXPECT_EQ(made, kCalls);
    EXPECT_EQ(left, 0) << "the engine polls although nothing is queued";
    EXPECT_FALSE(calls.run([](Core&, Nanos) {})) << "the engine has ended";
}

TEST(EngineCalls, are_withdrawn_from_an_engine_that_does_not_come_round) {
    EngineCalls calls;
    unsigned runs = 0;
    EXPECT_FALSE(calls.run([&](Core&, Nanos) { ++runs; }, 0));
    alignas(Core) std::byte memory[sizeof(Core)] = {};
    calls.serve(*reinterpret_cast<Core*>(memory), 0);
    EXPECT_EQ(runs, 0U) << "its thread has gone on";
    calls.close();
}

// An engine that is stuck keeps the first caller for the limit, and the next ones not at all.
TEST(EngineCalls, are_refused_at_once_until_the_engine_comes_round) {
    EngineCalls calls;
    unsigned runs = 0;
    EXPECT_FALSE(calls.run([&](Core&, Nanos) { ++runs; }, 0));
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_FALSE(calls.run([&](Core&, Nanos) { ++runs; }));
    EXPECT_LT(std::chrono::steady_clock::now() - begun,
              std::chrono::nanoseconds(EngineCalls::kCallMax / 2));
    alignas(Core) std::byte memory[sizeof(Core)] = {};
    Core& core = *reinterpret_cast<Core*>(memory);
    EXPECT_TRUE(calls.serve(core, 0)) << "it has come round";
    std::atomic<bool> over{false};
    std::thread engine([&] {
        while (!over)
            if (!calls.serve(core, 0)) std::this_thread::yield();
    });
    EXPECT_TRUE(calls.run([&](Core&, Nanos) { ++runs; }));
    EXPECT_EQ(runs, 1U);
    over = true;
    engine.join();
    calls.close();
}

TEST(LimitedThread, that_is_stuck_is_awaited_until_the_limit) {
    LimitedThread thread;
    EXPECT_TRUE(thread.join(0)) << "none was started";
    std::promise<void> go_on;
    thread.start([waits = go_on.get_future().share()] { waits.wait(); });
    EXPECT_FALSE(thread.join(kMillisecond));
    EXPECT_TRUE(thread.joinable());
    go_on.set_value();
    EXPECT_TRUE(thread.join(20 * kSecond));
    EXPECT_FALSE(thread.joinable());
}

// Under the sanitizers, a call that used its caller's memory would be found.
TEST(EngineCalls, a_call_that_does_not_return_is_abandoned) {
    struct Shared {
        std::atomic<bool> begun{false};
        std::promise<void> abandoned;
        bool gave_up = false;  ///< the call was awaited to its end
        bool undone = false;
        std::atomic<bool> over{false};
    };
    const auto shared = std::make_shared<Shared>();
    EngineCalls calls(kMillisecond);
    std::thread engine([&] {
        alignas(Core) std::byte memory[sizeof(Core)] = {};
        Core& core = *reinterpret_cast<Core*>(memory);
        while (!shared->over)
            if (!calls.serve(core, 0)) std::this_thread::yield();
        calls.close();
    });
    const auto hang = [shared](Core&, Nanos) {
        shared->begun = true;
        const auto abandoned = shared->abandoned.get_future();
        shared->gave_up = abandoned.wait_for(kPatience) != std::future_status::ready;
    };
    const auto undo = [shared](Core&, Nanos) { shared->undone = true; };
    std::weak_ptr<Shared> owned;
    {
        const auto result = std::make_shared<Shared>();
        owned = result;
        EXPECT_FALSE(calls.run(
            [hang, result](Core& core, Nanos now) {
                hang(core, now);
                result->undone = true;
            },
            EngineCalls::kCallMax, undo));
    }
    EXPECT_TRUE(shared->begun);
    EXPECT_FALSE(owned.expired()) << "the call that still runs has lost its memory";
    unsigned runs = 0;
    EXPECT_FALSE(calls.run([&](Core&, Nanos) { ++runs; })) << "queued behind a stuck call";
    shared->abandoned.set_value();
    while (!calls.run([&](Core&, Nanos) { ++runs; }))
        std::this_thread::yield();
    EXPECT_EQ(runs, 1U) << "the engine came round again";
    EXPECT_FALSE(shared->gave_up) << "a begun call was awaited without limit";
    EXPECT_TRUE(shared->undone);
    EXPECT_TRUE(owned.expired());
    shared->over = true;
    engine.join();
}

}  // namespace
}  // namespace ulc::daemon
