// SPDX-License-Identifier: BSD-3-Clause
// Requests (docs/PROTOCOL.md §4): a gap is asked for once each; everything missing is asked for
// again after ask_wait, which doubles until the gap closes. A pending receive that names its source
// asks for `next` in the same way, though nothing shows that it was sent.
#include <algorithm>
#include <array>

#include "urtp/receiver/receiver.h"
#include "urtp/receiver/told.h"

namespace ulc::urtp {

namespace {

/// Returns how long a repair may take before it counts as lost.
Nanos first_wait(const Params& p, const RxStream& rx) noexcept {
    Nanos wait = p.min_recv_wait;
    if (p.timed_by_rtt) wait = std::max(wait, rx.session->rtt.bound());
    if (rx.group != nullptr) wait += p.repair_gather;
    return std::clamp(wait, kMicrosecond, std::max(kMicrosecond, p.max_recv_wait));
}

/// Returns how long a packet may be missing before it counts as lost. Frames for a group go by one
/// link.
Nanos reorder_wait(const Params& p, const RxStream& rx) noexcept {
    if (p.reorder_wait <= 0 || rx.group != nullptr) return p.reorder_wait;
    return rx.reorder.wait(p.reorder_wait, p.max_recv_wait);
}

/// Returns one past the last number that a request may ask for: where packets overtake each other,
/// the packets of a gap are late until `reorder_wait` has passed.
Seq asks_to(const Params& p, const RxStream& rx) noexcept {
    if (p.reorder_wait <= 0 || rx.ask_new_at == kNever) return rx.high;
    return rx.lost_to.before(rx.next) ? rx.next : rx.lost_to;
}

/// Returns whether a packet before `end` is missing that was not asked for. O(window), called by
/// timers alone.
bool lacks_before(const RxStore& store, const RxStream& rx, Seq end) noexcept {
    for (Seq seq = rx.asked_to.before(rx.next) ? rx.next : rx.asked_to; seq.before(end); ++seq)
        if (store.find(&rx, seq) == nullptr) return true;
    return false;
}

}  // namespace

Nanos Receiver::deadline(const RxStream& rx) noexcept {
    return std::min(std::min(rx.ack_by, rx.answer_at), std::min(rx.ask_new_at, rx.ask_all_at));
}

void Receiver::arm(RxStream& rx) noexcept { context_.timers.arm_by(rx.timer, deadline(rx)); }

void Receiver::make_request_due(RxStream& rx, bool all) noexcept {
    rx.request_due = true;
    rx.request_all |= all;
    control_.push(*rx.session);
}

/// A packet came that had come before: after a request for it, that was spurious.
void Receiver::count_duplicate(RxStream& rx, Seq seq) noexcept {
    context_.count(Counter::drop_duplicate);
    if (seq.before(rx.asked_to)) rx.reorder.came_again();
}

void Receiver::stop_asking(RxStream& rx) noexcept {
    if (rx.asked_at != kNever) rx.reorder.repaired();
    rx.request_due = false;
    rx.request_all = false;
    rx.timed = false;
    rx.ask_new_at = kNever;
    rx.ask_all_at = kNever;
    rx.asked_at = kNever;
    rx.ask_wait = 0;
}

/// Something below high is missing. new_gap: more than before.
void Receiver::ask_for_gap(RxStream& rx, bool new_gap, Nanos now) noexcept {
    rx.patience = 0;
    if (rx.ask_new_at != kNever || (rx.request_due && params().reorder_wait <= 0)) return;
    const bool asking = rx.ask_all_at != kNever;
    if (asking && !new_gap) return;
    if (!asking) rx.asked_to = rx.lost_to = rx.next;
    if (rx.lost_to.before(rx.asked_to)) rx.lost_to = rx.asked_to;
    Nanos wait = reorder_wait(params(), rx);
    if (rx.group != nullptr && rx.group->ranks.size() > 2) {
        wait += context_.random_below(params().req_spread);
    }
    if (wait <= 0) {
        make_request_due(rx, false);
        return;
    }
    rx.late_to = rx.high;
    rx.ask_new_at = now + wait;
    rx.reorder.missed(now);
    arm(rx);
}

/// Asks again for a packet that the full store dropped: when a node returns, or from time to time.
void Receiver::ask_later(RxStream& rx, Nanos now) noexcept {
    if (rx.ask_all_at != kNever) return;
    if (rx.ask_wait == 0) rx.ask_wait = first_wait(params(), rx);
    rx.ask_all_at = now + rx.ask_wait;
    arm(rx);
}

/// The packets that were missing when ask_new_at was set had their time. Those that were missed
/// since get theirs.
void Receiver::on_late(RxStream& rx, Nanos now) noexcept {
    if (!rx.missing()) return;
    const Nanos wait = reorder_wait(params(), rx);
    rx.lost_to = wait > 0 ? rx.late_to : rx.high;
    if (wait <= 0 || lacks_before(store_, rx, rx.lost_to)) make_request_due(rx, false);
    if (!rx.lost_to.before(rx.high)) return;
    rx.late_to = rx.high;
    rx.ask_new_at = now + wait;
    rx.reorder.missed(now);
}

void Receiver::on_timer(RxStream& rx, Nanos now) noexcept {
    if (rx.ack_by <= now) {
        rx.ack_by = kNever;
        rx.patience = std::min<std::uint8_t>(rx.patience + 1, kPatienceMax);
        make_ack_due(rx);
    }
    if (rx.answer_at <= now) {
        rx.answer_at = kNever;
        answer(rx);
    }
    if (rx.ask_new_at <= now) {
        // The missing packets may lie in the port: then the timer fires again in the next round.
        const bool taken = params().reorder_wait <= 0 || context_.arrivals == nullptr ||
                           context_.arrivals->has_all_before(rx.ask_new_at);
        if (taken) {
            rx.ask_new_at = kNever;
            on_late(rx, now);
        }
    }
    if (rx.ask_all_at <= now) {
        rx.ask_all_at = kNever;
        if (rx.missing()) {
            rx.ask_wait = std::min(2 * rx.ask_wait, std::max(kMicrosecond, params().max_recv_wait));
            rx.ask_all_at = now + rx.ask_wait;
            rx.timed = false;
            if (context_.policy.credit(*this, rx) > 0) make_request_due(rx, true);
        }
    }
    context_.timers.arm_by(rx.timer, std::max(deadline(rx), now + 1));
}

void Receiver::asked(RxStream& rx, Nanos now) noexcept {
    // Where packets overtake each other, the answer may be the packet itself, which was late.
    rx.timed = rx.asked_at == kNever && params().reorder_wait <= 0;
    rx.asked_at = now;
    if (rx.ask_wait == 0) rx.ask_wait = first_wait(params(), rx);
    if (rx.ask_all_at == kNever || rx.request_all) rx.ask_all_at = now + rx.ask_wait;
    arm(rx);
}

/// Makes a REQ: the acknowledgement, and a bit for each number from next on: zero asks for it
/// (docs/PROTOCOL.md §4).
Segment* Receiver::send_request(RxStream& rx, Nanos now) {
    Segment* segment = context_.control_frame();
    if (segment == nullptr) return nullptr;
    std::array<std::byte, wire::kReqBitmapOctetsMax> bitmap;
    std::size_t octets = 0;
    if (rx.missing() && !params().single_request) {
        const auto span = static_cast<std::uint32_t>(asks_to(params(), rx) - rx.next);
        std::uint32_t bits = std::min<std::uint32_t>(span, bitmap.size() * 8);
        std::uint32_t room =
            std::max(1U, store_.room(rx.session->local));  // no frame would hold more
        const bool all = rx.request_all || rx.asked_to.before(rx.next);
        const Seq from = all ? rx.next : rx.asked_to;
        bitmap.fill(std::byte{0xff});
        for (auto i = static_cast<std::uint32_t>(from - rx.next); i < bits; ++i) {
            if (store_.find(&rx, rx.next + i) != nullptr) continue;
            if (room-- == 0) {
                bits = i;
                break;
            }
            bitmap[i / 8] &= ~(std::byte{1} << (i % 8));
            octets = i / 8 + 1;
        }
        rx.asked_to = rx.next + bits;
        asked(rx, now);
        if (octets == 0) bitmap[octets++] = std::byte{0xff};  // all asked for already
    }
    rx.request_due = false;
    rx.request_all = false;
    const wire::AckEntry ack = tell(rx, now);
    segment->length = static_cast<std::uint32_t>(
        wire::build_req(segment->frame, sessions_.head_to(rx.session->rank, wire::FrameType::kReq),
                        ack, std::span<const std::byte>(bitmap).first(octets)));
    context_.count(Counter::req_sent);
    context_.count_repair(&rx.session->counts, &RepairCounts::requests_sent);
    return segment;
}

/// A message came that no pending receive names. It waits for one, but not without end: a receive
/// from any source names none.
void Receiver::put_in_slot(Session& session, Nanos now) noexcept {
    session.in_slot = true;
    session.expect_at = now + std::max(kMicrosecond, params().max_recv_wait);
    context_.timers.arm_by(session.expect_timer, session.expect_at);
}

void Receiver::empty_slot(Session& session) noexcept {
    session.in_slot = false;
    session.expect_at = kNever;
    ready_.add(session);
}

bool Receiver::expect(Session& session, Nanos now) {
    if (session.in_slot) [[unlikely]] {
        empty_slot(session);
        return true;
    }
    if (session.expecting || session.ready_head != nullptr) return false;
    const Nanos longest = std::max(kMicrosecond, params().max_recv_wait);
    session.expecting = true;
    ++expecting_;
    session.expected_since = now;
    // Nothing shows that it was sent: not before what such receives mostly take.
    session.expect_wait =
        std::max(first_wait(params(), session.unicast), std::min(session.reply.bound(), longest));
    const Nanos first = params().first_recv_wait;
    const Nanos wait = first != kFromRtt ? first : session.expect_wait;
    if (first != kFromRtt) session.expect_wait /= 2;  // is doubled at the first request
    session.expect_at = now + wait + context_.random_below(params().req_spread);
    if (params().receives_in_turn) {
        awaited_.add(session);
        if (awaited_.front() != &session) session.expect_at = kNever;
    }
    context_.timers.arm_by(session.expect_timer, session.expect_at);
    return false;
}

/// Its packet is here, or it is gone: the turn goes to the next that a receive names.
void Receiver::expect_ends(Session& session, Nanos now) noexcept {
    session.expecting = false;
    --expecting_;
    if (!params().receives_in_turn) return;
    const bool had_turn = awaited_.front() == &session;
    awaited_.remove(session);
    Session* next = awaited_.front();
    if (!had_turn || next == nullptr) return;
    next->expect_at = now + std::max<Nanos>(params().first_recv_wait, 0);
    context_.timers.arm_by(next->expect_timer, next->expect_at);
}

void Receiver::on_timer(Session& session, Nanos now) {
    if (session.in_slot) [[unlikely]] {
        if (session.expect_at <= now) return empty_slot(session);
        return context_.timers.arm_by(session.expect_timer, session.expect_at);
    }
    if (!session.expecting) return;
    if (session.expect_at <= now) {
        if (session.unicast.sibling == nullptr) {  // no group of it was heard: ask about the world
            if (Group* world = sessions_.find_group(context_.config.world))
                (void)group_stream(*world, session);
        }
        const RxStream* only = nullptr;
        if (params().receives_in_turn) {
            only = session.ask_by != nullptr ? session.ask_by : session.unicast.sibling;
            session.ask_by = only->sibling != nullptr ? only->sibling : &session.unicast;
        }
        std::uint32_t members = 1;
        for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
            if (rx->group != nullptr) {
                members = std::max(members, static_cast<std::uint32_t>(rx->group->ranks.size()));
            }
            const bool asked_about = only == nullptr || only == rx;
            if (asked_about && rx->held == 0 && !rx->missing()) make_request_due(*rx, true);
        }
        // The longest wait is shared among all who are awaited: each member asks, and each is
        // asked, once in that time, however many they are.
        const std::uint32_t asking = params().receives_in_turn ? 1 : expecting_;
        session.expect_wait = std::min(2 * session.expect_wait,
                                       std::max(kMicrosecond, params().max_recv_wait) * asking);
        session.expect_at =
            now + session.expect_wait + context_.random_below(members * params().probe_slot);
    }
    context_.timers.arm_by(session.expect_timer, session.expect_at);
}

}  // namespace ulc::urtp
