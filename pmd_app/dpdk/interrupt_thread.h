// SPDX-License-Identifier: BSD-3-Clause
// Steps on the thread of EAL that runs the handlers of drivers, so that no handler runs at the same
// time. Used by ethdev_port.cc.
#pragma once

#include <functional>

#include "base/error.h"
#include "base/units.h"

namespace ulc::dpdk {

/// Limit of a wait for that thread: a device takes milliseconds to stop and start.
inline constexpr Nanos kInterruptThreadMax = 10 * kSecond;

/// Runs a step on that thread, or here if it has no place for one. Waits for its end, at most
/// `limit`. Errors: the step's; kTimeout: the step may run at any later time, so what it
/// uses must never be freed. The step itself is kept.
[[nodiscard]] Err on_interrupt_thread(std::function<Err()> step, Nanos limit = kInterruptThreadMax);

/// Waits until `done()`, at most `limit`. Returns the last value of `done()`.
[[nodiscard]] bool wait_for_interrupt_thread(const std::function<bool()>& done,
                                             Nanos limit = kInterruptThreadMax);

}  // namespace ulc::dpdk
