// SPDX-License-Identifier: BSD-3-Clause
// A clock that costs little and shows milliseconds, for times that people read.
#pragma once

#include <cstdint>
#include <ctime>

#include "base/units.h"

namespace ulc {

/// Returns the monotonic time in milliseconds, up to one tick of the kernel late. Wraps after 49
/// days. About 5 ns.
[[nodiscard]] inline std::uint32_t coarse_milliseconds() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint32_t>(now.tv_sec * 1000 + now.tv_nsec / kMillisecond);
}

}  // namespace ulc
