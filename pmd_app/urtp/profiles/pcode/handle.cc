// A message arrived (PCODE fig. 3): too late, too early, or next. What is next is accepted whatever its global counter, which may
// show that somebody else's message is missing (§5.1). What is too early is saved, as many as the buffer holds (§5.4).
#include "urtp/impl.h"

namespace ulc::urtp {

/// Returns whether the segment was kept.
bool Member::Impl::on_counted(const wire::FrameView& frame, Segment* segment, RxStream& rx,
                              Nanos now) {
    const bool early = !frame.seq.before(rx.next) && frame.seq != rx.next;
    if (early && rx.held >= config_.params.early_messages) {
        count(Counter::drop_out_of_order);
        return false;
    }
    return on_packet(frame, segment, rx, now);
}

/// A message of rx's source is in order: its PersonalCount was next.
void Member::Impl::counted_in_order(RxStream& rx, std::uint32_t global, Nanos now) noexcept {
    rx.acked = rx.next;  // STATUS tells, no acknowledgement does
    Group& group = *rx.group;
    const std::uint16_t index = group.index_of[rx.session->rank];
    if (!group.pcode->global.on_message(index, global)) count(Counter::drop_counter_range);
    group_counters_moved(group, now);
}

/// The global counter, or what is known of the others', moved: gaps, and whether to tell.
void Member::Impl::group_counters_moved(Group& group, Nanos now) noexcept {
    pcode::GroupState& state = *group.pcode;
    const Params& p = config_.params;
    if (p.group_rules != GroupRules::kPcode) return;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    if (!state.global.gap(from, to)) {
        state.gap.satisfied();
    } else if (now > 0) {
        state.gap.want(from, now, p.reorder_wait + random_below(p.req_spread));
        timers_.arm_by(state.timer, state.gap.at());
    }
    // STATUS by the growth of the counter (§5.5); PROGRESS before we are what holds the others back (§5.2).
    if (state.global.since_status() >= p.status_window ||
        state.global.untold() > p.flow_window / 2) {
        make_status_due(group, false);
    }
}

}  // namespace ulc::urtp
