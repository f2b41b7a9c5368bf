// SPDX-License-Identifier: BSD-3-Clause
// A message arrived (PCODE fig. 3): too late, too early, or next. The next one is accepted whatever
// its global counter, which may show that another member's message is missing (§5.1). One that is
// too early is saved, as many as the buffer holds (§5.4).
#include <algorithm>
#include <bit>

#include "urtp/profiles/pcode/rules.h"

namespace ulc::urtp::pcode {

namespace {

/// Returns how far counters may be ahead: every member may be a window beyond the slowest.
std::uint32_t range_of(const Group& group) noexcept {
    return std::bit_ceil(std::clamp(4 * group.ack_modulus * (group.window / 16), 1024U, 1U << 20));
}

}  // namespace

Rules::Rules(const TransportParts& parts, Group& group, Version version)
    : parts_(parts),
      group_(group),
      version_(version),
      global_(static_cast<std::uint32_t>(group.ranks.size()), group.own, range_of(group)) {
    group.counted = true;
    timer_.kind = TimerOwner::kGroup;
    timer_.owner = &group;
    parts_.context.timers.enroll();
}

Rules::~Rules() {
    parts_.context.timers.remove(timer_);
    parts_.context.timers.resign();
}

bool Rules::may_hold(const RxStream& rx) const noexcept {
    return rx.held < params().early_messages;
}

/// A message of rx's source is in order: its PersonalCount was next.
void Rules::in_order(RxStream& rx, std::uint32_t global, Nanos now) noexcept {
    rx.acked = rx.next;  // STATUS tells, no acknowledgement does
    if (!global_.on_message(group_.index_of[rx.session->rank], global))
        count(Counter::drop_counter_range);
    counters_moved(now);
}

/// The global counter, or what is known of the others', moved: gaps, and whether to tell.
void Rules::counters_moved(Nanos now) noexcept {
    const Params& p = params();
    if (version_ != Version::kFull) return;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    if (!global_.gap(from, to)) {
        gap_.satisfied();
    } else if (now > 0) {
        gap_.want(from, now, p.reorder_wait + parts_.context.random_below(p.req_spread));
        parts_.context.timers.arm_by(timer_, gap_.at());
    }
    // STATUS by the growth of the counter (§5.5); PROGRESS before we are what holds the others
    // back (§5.2).
    if (global_.since_status() >= p.status_window || global_.untold() > p.flow_window / 2)
        make_status_due(false);
}

void Rules::remove(std::uint16_t index) noexcept { global_.remove(index); }

}  // namespace ulc::urtp::pcode
