// SPDX-License-Identifier: BSD-3-Clause
// The system's side of Hooks: time, and the ways to release the processor: yielding, and sleeping
// on a futex word in shared memory.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "base/clock.h"
#include "base/units.h"

namespace ulc::client {

/// Returns the monotonic time; a hook's context is not needed.
[[nodiscard]] inline Nanos monotonic_now(void*) noexcept { return ulc::monotonic_now(); }

inline void yield_core(void*) noexcept { sched_yield(); }

/// Performs FUTEX_WAIT, shared between processes; returns when woken, when the word has another
/// value, or after `nap`.
inline void futex_sleep(void*, std::atomic<std::uint32_t>& word, std::uint32_t expected,
                        Nanos nap) noexcept {
    const timespec timeout{static_cast<time_t>(nap / kSecond), static_cast<long>(nap % kSecond)};
    syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

}  // namespace ulc::client
