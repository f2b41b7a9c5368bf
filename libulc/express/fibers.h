// SPDX-License-Identifier: BSD-3-Clause
// The switch of stacks by ucontext. Each stack has a page below it that no code may touch, so that
// an overflow ends the program where it happens. Tells the address and the thread sanitizer of each
// switch. Used by Process.
#pragma once

#include <cstddef>

#include "express/scheduler.h"

namespace ulc::express {

inline constexpr std::size_t kStackBytes = 256U << 10;

/// Returns the switch. It has no state but for the sanitizers, which one kernel thread may use.
[[nodiscard]] Switch fiber_switch() noexcept;

}  // namespace ulc::express
