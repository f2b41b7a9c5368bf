// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/interrupt_thread.h"

#include <atomic>
#include <ctime>
#include <memory>
#include <utility>

#include <rte_alarm.h>

#include "base/clock.h"

namespace ulc::dpdk {

bool wait_for_interrupt_thread(const std::function<bool()>& done, Nanos limit) {
    const Nanos give_up = monotonic_now() + limit;
    while (!done()) {
        if (monotonic_now() >= give_up) return false;
        const timespec nap{.tv_sec = 0, .tv_nsec = 100'000};
        nanosleep(&nap, nullptr);
    }
    return true;
}

Err on_interrupt_thread(std::function<Err()> step, Nanos limit) {
    struct Task {
        std::function<Err()> step;
        std::atomic<bool> done{false};
        Err result = Err::kOk;
    };
    auto task = std::make_unique<Task>();
    task->step = std::move(step);
    const auto run = [](void* context) {
        auto* self = static_cast<Task*>(context);
        self->result = self->step();
        self->done.store(true, std::memory_order_release);  // partner: below
    };
    if (rte_eal_alarm_set(1, run, task.get()) != 0) return task->step();
    const auto done = [&] { return task->done.load(std::memory_order_acquire); };
    if (wait_for_interrupt_thread(done, limit)) return task->result;
    static_cast<void>(task.release());  // that thread may still run it
    return Err::kTimeout;
}

}  // namespace ulc::dpdk
