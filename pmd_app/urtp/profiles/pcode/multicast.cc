// A message of ours: whether it may be sent now, and its counters (PCODE fig. 4, §5.1, §5.2).
#include "urtp/impl.h"

namespace ulc::urtp {

/// The flow window over the gcv. While it holds us back, the others are asked how far they have come.
bool Member::Impl::flow_window_open(Group& group, Nanos now) noexcept {
    pcode::GroupState& state = *group.pcode;
    if (state.global.spread() <= config_.params.flow_window) return true;
    if (state.progress_at == kNever) {
        state.progress_at = now;
        timers_.arm_by(state.timer, now);
    }
    return false;
}

/// PersonalCount is the packet's number in its stream; this is the other one. The buffer of sent messages is the stream's ring.
std::uint32_t Member::Impl::next_global(Group& group) noexcept {
    const std::uint32_t counter = group.pcode->global.on_send();
    group_counters_moved(group, 0);
    return counter;
}

}  // namespace ulc::urtp
