// The fast path of a received packet: order, the ready queue and pop() in one function, for the
// next packet of a unicast stream while nothing waits. Everything is decided before the first
// store.
#include "urtp/receiver/receiver.h"

namespace ulc::urtp {

bool Receiver::is_clear(const Session& session, Seq seq) const noexcept {
    const RxStream& rx = session.unicast;
    return takes_short_ && seq == rx.next && rx.held == 0 && session.blocked == 0 &&
           session.ready_head == nullptr && !rx.room.rationed && starved_.empty();
}

[[gnu::flatten]] void Receiver::take_clear(RxStream& rx, bool ack_now, Nanos now) noexcept {
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

bool Receiver::may_pass(const Session& session, Seq seq) const noexcept {
    const RxStream& rx = session.unicast;
    return is_clear(session, seq) && rx.acked == seq && !rx.ack_due && !rx.missing() && !rx.timed &&
           rx.ask_all_at == kNever && rx.ask_new_at == kNever;
}

void Receiver::take_passed(RxStream& rx, Nanos now) noexcept {
    advance(rx, now);
    arrived(rx, now);
    rx.acked = rx.next;  // its source knows
    ++rx.limit_told;
    ++rx.ack_at;
}

}  // namespace ulc::urtp
