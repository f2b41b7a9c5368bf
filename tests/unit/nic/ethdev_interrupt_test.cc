// SPDX-License-Identifier: BSD-3-Clause
// A wait for EAL's interrupt thread ends although that thread does not come, and what it would use
// then stays (dpdk/interrupt_thread.h). The thread is the test's.
#include "dpdk/interrupt_thread.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include <rte_alarm.h>

namespace {

enum class Alarms { kRefused, kKept, kRun } alarms;
rte_eal_alarm_callback kept = nullptr;
void* kept_context = nullptr;
std::thread runner;

}  // namespace

// Stands in for DPDK's.
extern "C" __attribute__((visibility("default"))) int rte_eal_alarm_set(uint64_t /*us*/,
                                                                        rte_eal_alarm_callback call,
                                                                        void* context) {
    if (alarms == Alarms::kRefused) return -1;
    if (alarms == Alarms::kRun) runner = std::thread(call, context);
    kept = call;
    kept_context = context;
    return 0;
}

namespace ulc::dpdk {
namespace {

TEST(InterruptThread, runs_a_step_and_returns_its_result) {
    for (const Alarms how : {Alarms::kRun, Alarms::kRefused}) {
        alarms = how;
        const auto here = std::this_thread::get_id();
        auto there = here;
        const auto step = [&] {
            there = std::this_thread::get_id();
            return Err::kNoMemory;
        };
        EXPECT_EQ(on_interrupt_thread(step, kNever / 2), Err::kNoMemory);
        EXPECT_EQ(there == here, how == Alarms::kRefused);
        if (runner.joinable()) runner.join();
    }
}

TEST(InterruptThread, is_not_waited_for_longer_than_the_limit) {
    alarms = Alarms::kKept;
    auto runs = std::make_shared<int>(0);
    EXPECT_EQ(on_interrupt_thread(
                  [runs] {
                      ++*runs;
                      return Err::kOk;
                  },
                  0),
              Err::kTimeout);
    EXPECT_EQ(*runs, 0);
    kept(kept_context);  // it comes at last
    EXPECT_EQ(*runs, 1);
    EXPECT_FALSE(wait_for_interrupt_thread([] { return false; }, 0));
}

}  // namespace
}  // namespace ulc::dpdk
