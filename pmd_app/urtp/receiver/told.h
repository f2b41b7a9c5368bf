// SPDX-License-Identifier: BSD-3-Clause
// A packet in order, and the acknowledgement of it: steps that the general path and the fast path
// share. Inline, for both.
#pragma once

#include <algorithm>

#include "urtp/receiver/receiver.h"

namespace ulc::urtp {

/// The entry that tells a source where its stream stands; whatever was due is thereby done.
[[gnu::always_inline]] inline wire::AckEntry Receiver::tell(RxStream& rx, Nanos now) noexcept {
    return tell(rx, rx.group == nullptr && grants_whole_window(*rx.session), now);
}

/// A whole window of credit is the default for a peer's stream while it has nodes.
inline bool Receiver::grants_whole_window(const Session& session) const noexcept {
    return plain_acks_ && store_.has_room(session.local, session.unicast.window + session.held);
}

/// plain: grants_whole_window() of its session.
[[gnu::always_inline]] inline wire::AckEntry Receiver::tell(RxStream& rx, bool plain,
                                                            Nanos now) noexcept {
    Session& session = *rx.session;
    const std::uint32_t credit = plain ? rx.window : context_.policy.credit(*this, rx);
    std::uint16_t delay_us = kDelayUnknown;
    if (rx.arrived != kNever) {
        const auto waited = static_cast<std::uint64_t>(now - rx.arrived);
        delay_us = 0;
        if (waited >= kMicrosecond)
            delay_us = static_cast<std::uint16_t>(
                std::min<std::uint64_t>(waited / kMicrosecond, kDelayUnknown));
    }
    rx.acked = rx.next;
    rx.limit_told = rx.next + credit;
    rx.ack_due = false;
    rx.ack_by = kNever;
    rx.answer_at = kNever;
    rx.ack_at = plain ? rx.next + plain_step_ : context_.policy.next_ack(rx, credit, params());
    if (session.unacked_group == &rx) session.unacked_group = nullptr;
    if (credit < rx.window / 2) room_.await(session);
    return {rx.id, rx.next.value, static_cast<std::uint16_t>(credit), delay_us};
}

/// Adds an acknowledgement to a DATA frame that goes to its source; in mid-message only one that is
/// nearly due.
[[gnu::always_inline]] inline bool Receiver::piggyback(Session& session, bool last,
                                                       wire::AckEntry& out, Nanos now) noexcept {
    RxStream* rx = &session.unicast;
    if (rx->unacknowledged() == 0 && !rx->ack_due) rx = session.unacked_group;
    if (rx == nullptr || !params().acknowledged) return false;
    if (!last && !rx->ack_due && rx->unacknowledged() < params().ack_window / 2) return false;
    out = tell(*rx, now);
    context_.count(Counter::ack_piggybacked);
    return true;
}

/// Adds an acknowledgement as piggyback() does to a whole message. whole_credit: the default's.
[[gnu::always_inline]] inline bool Receiver::piggyback_next(Session& session, bool whole_credit,
                                                            wire::AckEntry& out,
                                                            Nanos now) noexcept {
    RxStream& rx = session.unicast;
    const bool owed = rx.unacknowledged() != 0 || rx.ack_due;
    if (!owed && session.unacked_group == nullptr) return false;
    if (!owed || !whole_credit) [[unlikely]]
        return piggyback_any(session, out, now);
    out = tell(rx, true, now);
    context_.count(Counter::ack_piggybacked);
    return true;
}

[[gnu::always_inline]] inline void Receiver::advance(RxStream& rx, Nanos arrived) noexcept {
    ++rx.next;
    if (rx.high.before(rx.next)) rx.high = rx.next;
    rx.arrived = arrived;
}

/// A packet of the stream is in order.
[[gnu::always_inline]] inline void Receiver::arrived(RxStream& rx, Nanos at) noexcept {
    Session& session = *rx.session;
    if (session.expecting) {
        session.reply.sample(at - session.expected_since);
        expect_ends(session, at);
    }
    if (in_turn_) session.ask_by = &rx;
}

/// Looks, after next moved, whether an acknowledgement is due and whether the gap is closed.
[[gnu::always_inline]] inline void Receiver::moved(RxStream& rx, Nanos now) noexcept {
    if (!rx.next.before(rx.ack_at)) {
        make_ack_due(rx);
    } else if (rx.group != nullptr) {
        if (!rx.counted) rx.session->unacked_group = &rx;
    } else if (rx.ack_by == kNever && ack_delay_ != kNever) {
        rx.ack_by = now + (rx.patience == 0 ? ack_delay_ : context_.ack_delay(rx.patience));
        context_.timers.arm_by(rx.timer, rx.ack_by);
    }
    // Neither time is later than kNever, whose bits are all set.
    if ((rx.ask_all_at & rx.ask_new_at) != kNever && !rx.missing()) [[unlikely]]
        stop_asking(rx);
}

[[gnu::always_inline]] inline bool Receiver::may_pass(const Session& session,
                                                      Seq seq) const noexcept {
    const RxStream& rx = session.unicast;
    return is_next(rx, seq) && rx.acked == seq && !rx.ack_due && !rx.missing() && !rx.timed &&
           rx.ask_all_at == kNever && rx.ask_new_at == kNever;
}

[[gnu::always_inline]] inline void Receiver::take_passed(RxStream& rx, Nanos now) noexcept {
    advance(rx, now);
    arrived(rx, now);
    rx.acked = rx.next;  // its source knows
    ++rx.limit_told;
    ++rx.ack_at;
}

/// Returns whether the conditions hold that general steps alone change.
[[gnu::always_inline]] inline bool Receiver::is_predictable(const RxStream& rx) const noexcept {
    const Session& session = *rx.session;
    return takes_short_ && rx.held == 0 && session.blocked == 0 && session.ready_head == nullptr &&
           !rx.room.rationed;
}

/// Returns whether the rest hold.
[[gnu::always_inline]] inline bool Receiver::is_next(const RxStream& rx, Seq seq) const noexcept {
    return seq == rx.next && !room_.is_awaited();
}

[[gnu::always_inline]] inline void Receiver::take_clear(RxStream& rx, bool ack_now,
                                                        Nanos now) noexcept {
    Session& session = *rx.session;
    if (rx.timed) [[unlikely]] {
        session.rtt.sample(now - rx.asked_at);
        rx.timed = false;
    }
    advance(rx, now);
    arrived(rx, now);
    moved(rx, now);
    if (ack_now) make_ack_due(rx);
}

}  // namespace ulc::urtp
