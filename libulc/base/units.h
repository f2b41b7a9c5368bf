// SPDX-License-Identifier: BSD-3-Clause
// Time as the protocol core sees it: nanoseconds of a monotonic clock that the caller reads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ulc {

/// Nanoseconds; a point on the engine's monotonic (or the simulator's virtual) clock, or a span.
using Nanos = std::int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;
inline constexpr Nanos kNever = INT64_MAX;

/// One cache line of every machine we support, in bytes.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace ulc
