// SPDX-License-Identifier: BSD-3-Clause
// Times one call of a collective by one clock, at the rank that ends last ([NN97], GAMMA §2.4).
//
//   rank 0   start ─ call ─────────── word of rank L ─▶ stop      less the way of that word
//   rank L           call ─ end ─▶ word to rank 0
//
// A loop finds L first: it takes each rank in turn as L, and keeps the one whose word comes latest.
// Each call is alone, behind a barrier, so that no call runs into the next. Used by
// ulc-bench-collective and its unit test.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/common/transport.h"

namespace ulc::bench {

/// The result at rank 0; the others get zeros.
struct LastProcess {
    std::uint16_t rank = 0;  ///< ended last in the loop
    double seconds = 0;      ///< one call, until that rank has ended; median
    /// Time by which the second last ended before it in the loop, by medians. At most the way of a
    /// word if rank 0 is the last: rank 0 sees no word before its own end.
    double ahead_seconds = 0;
};

/// Returns the seconds of the monotonic clock.
[[nodiscard]] double seconds_now();

/// Collective. `call` runs the collective; each of the ranks is looked at for `looks` calls, then
/// `calls` calls are timed. The way of a word is half of a round trip, mean of `looks`. `clock`:
/// the caller's, in seconds.
[[nodiscard]] LastProcess time_to_last(Transport& transport, const std::function<void()>& call,
                                       unsigned looks, unsigned calls,
                                       const std::function<double()>& clock = seconds_now);

}  // namespace ulc::bench
