// SPDX-License-Identifier: BSD-3-Clause
// The monotonic clock of the system, for programs and ports. Sans-IO code takes the time as an
// argument.
#pragma once

#include <chrono>

#include "base/units.h"

namespace ulc {

/// Returns the monotonic time in nanoseconds. Read in user space (vDSO), about 25 ns.
[[nodiscard]] inline Nanos monotonic_now() noexcept {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace ulc
