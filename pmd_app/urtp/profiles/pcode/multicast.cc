// SPDX-License-Identifier: BSD-3-Clause
// A message of ours: whether it may be sent now, and its counters (PCODE fig. 4, §5.1, §5.2).
#include "urtp/profiles/pcode/rules.h"

namespace ulc::urtp::pcode {

/// The flow window over the gcv. While it holds us back, the others are asked how far they have
/// come.
bool Rules::may_send(Nanos now) noexcept {
    if (global_.spread() <= params().flow_window) return true;
    if (progress_at_ == kNever) {
        progress_at_ = now;
        parts_.context.timers.arm_by(timer_, now);
    }
    return false;
}

/// PersonalCount is the packet's number in its stream; this is the other one. The buffer of sent
/// messages is the stream's ring.
std::uint32_t Rules::next_count() noexcept {
    const std::uint32_t counter = global_.on_send();
    counters_moved(0);
    return counter;
}

}  // namespace ulc::urtp::pcode
