// SPDX-License-Identifier: BSD-3-Clause
// Calls that other threads have an engine's thread make. When a call was made, the engine may sleep
// again: nothing is left on the descriptor that wakes it.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "main/engine_loop.h"

namespace ulc::daemon {
namespace {

constexpr int kCalls = 5000;

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
    int made = 0;
    int left = 0;
    for (int n = 0; n < kCalls; ++n) {
        EXPECT_TRUE(calls.run([&](Core&, Nanos) { ++made; }));
        pollfd wake{calls.wake_fd(), POLLIN, 0};
        left += poll(&wake, 1, 0);
    }
    over = true;
    engine.join();
    EXPECT_EQ(made, kCalls);
    EXPECT_EQ(left, 0) << "the engine polls although nothing is queued";
    EXPECT_FALSE(calls.run([](Core&, Nanos) {})) << "the engine has ended";
}

}  // namespace
}  // namespace ulc::daemon
