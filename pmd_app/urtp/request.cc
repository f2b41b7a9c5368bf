// Requests for missing packets, both directions (URTP §3.2 and appendix A: Recv, HandleREQ, HandleSND, after correction of
// the window base of its figures 22-23, which lies one number short).
//
// A gap is asked for at once (unicast) or after a random part of `req_spread` (group); further gaps are asked for as they
// show, each once; everything missing is asked for again after ask_wait, which doubles until the gap closes.
// A pending receive that names its source asks for `next` in the same way, though nothing shows that it was sent.
#include <algorithm>

#include "urtp/impl.h"

namespace ulc::urtp {

void Member::Impl::arm(RxStream& rx) noexcept {
    timers_.arm_by(rx.timer, std::min(std::min(rx.ack_by, rx.answer_at),
                                      std::min(rx.ask_new_at, rx.ask_all_at)));
}

/// How long a repair may take before it counts as lost.
Nanos Member::Impl::first_wait(const RxStream& rx) const noexcept {
    const Params& p = config_.params;
    Nanos wait = p.min_recv_wait;
    if (p.timed_by_rtt) wait = std::max(wait, rx.session->rtt.bound());
    if (rx.group != nullptr) wait += p.repair_gather;
    return std::clamp(wait, kMicrosecond, std::max(kMicrosecond, p.max_recv_wait));
}

void Member::Impl::make_request_due(RxStream& rx, bool all) noexcept {
    rx.request_due = true;
    rx.request_all |= all;
    control_.push_back(*rx.session);
}

void Member::Impl::stop_asking(RxStream& rx) noexcept {
    rx.request_due = false;
    rx.request_all = false;
    rx.timed = false;
    rx.ask_new_at = kNever;
    rx.ask_all_at = kNever;
    rx.asked_at = kNever;
    rx.ask_wait = 0;
}

/// Something below high is missing. new_gap: more than before.
void Member::Impl::on_gap(RxStream& rx, bool new_gap, Nanos now) noexcept {
    rx.patience = 0;
    if (rx.ask_new_at != kNever || rx.request_due) return;
    const bool asking = rx.ask_all_at != kNever;
    if (asking && !new_gap) return;
    if (!asking) rx.asked_to = rx.next;
    Nanos wait = config_.params.reorder_wait;
    if (rx.group != nullptr && rx.group->ranks.size() > 2) {
        wait += random_below(config_.params.req_spread);
    }
    if (wait <= 0) {
        make_request_due(rx, false);
        return;
    }
    rx.ask_new_at = now + wait;
    arm(rx);
}

/// A packet was dropped for want of room: asked for again when room returns, or from time to time.
void Member::Impl::ask_later(RxStream& rx, Nanos now) noexcept {
    if (rx.ask_all_at != kNever) return;
    if (rx.ask_wait == 0) rx.ask_wait = first_wait(rx);
    rx.ask_all_at = now + rx.ask_wait;
    arm(rx);
}

void Member::Impl::receive_timer(RxStream& rx, Nanos now) noexcept {
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
        rx.ask_new_at = kNever;
        if (rx.missing()) make_request_due(rx, false);
    }
    if (rx.ask_all_at <= now) {
        rx.ask_all_at = kNever;
        if (rx.missing()) {
            rx.ask_wait =
                std::min(2 * rx.ask_wait, std::max(kMicrosecond, config_.params.max_recv_wait));
            rx.ask_all_at = now + rx.ask_wait;
            rx.timed = false;
            if (credit_of(rx) > 0) make_request_due(rx, true);
        }
    }
    arm(rx);
}

/// REQ: the acknowledgement, and a bit for each number from next on: zero asks for it (docs/PROTOCOL.md §4).
Segment* Member::Impl::send_request(RxStream& rx, Nanos now) {
    Segment* segment = control_frame();
    if (segment == nullptr) return nullptr;
    std::array<std::byte, wire::kReqBitmapOctetsMax> bitmap;
    std::size_t octets = 0;
    if (rx.missing() && !config_.params.single_request) {
        const auto span = static_cast<std::uint32_t>(rx.high - rx.next);
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
        rx.timed = rx.asked_at == kNever;
        rx.asked_at = now;
        if (rx.ask_wait == 0) rx.ask_wait = first_wait(rx);
        if (rx.ask_all_at == kNever || rx.request_all) rx.ask_all_at = now + rx.ask_wait;
        arm(rx);
        if (octets == 0) bitmap[octets++] = std::byte{0xff};  // all asked for already
    }
    rx.request_due = false;
    rx.request_all = false;
    const wire::AckEntry ack = tell(rx, now);
    segment->length = static_cast<std::uint32_t>(
        wire::build_req(segment->frame, head_to(rx.session->rank, wire::FrameType::kReq), ack,
                        std::span<const std::byte>(bitmap).first(octets)));
    count(Counter::req_sent);
    return segment;
}

/// The packet at next came after one REQ for it: a sample, also where nothing flows the other way.
void Member::Impl::repaired(RxStream& rx, Nanos arrived) noexcept {
    rx.session->rtt.sample(arrived - rx.asked_at);
    rx.timed = false;
}

void Member::Impl::on_request(const wire::FrameView& frame, Session& session, Nanos now) noexcept {
    const auto& body = *reinterpret_cast<const wire::ReqBody*>(frame.body);
    std::uint32_t at = 0;
    TxStream* tx = on_ack(body.ack, session, at, now);
    if (tx == nullptr) return;
    count(Counter::req_received);
    const Seq next{body.ack.next};
    const std::uint32_t octets = body.bitmap_octets;
    if (octets == 0) {
        request_one(*tx, next, at, false, now);
        return;
    }
    const auto* bitmap = reinterpret_cast<const std::uint8_t*>(frame.body + sizeof(wire::ReqBody));
    for (std::uint32_t i = 0; i < octets; ++i) {
        for (std::uint32_t zeros = static_cast<std::uint8_t>(~bitmap[i]); zeros != 0;
             zeros &= zeros - 1) {
            request_one(*tx, next + (8 * i + static_cast<std::uint32_t>(std::countr_zero(zeros))),
                        at, true, now);
        }
    }
}

/// Of a packet for which no repair waits: it is not off the wire for δ yet, or its repair is on the way, be it in the port or since
/// it left that. overtaken: the receiver has heard of what was sent after it, so it is not on its way, however short a time ago it left.
bool Member::Impl::asks_too_soon(const TxStream& tx, const TxSlot& slot, bool overtaken,
                                 Nanos now) const noexcept {
    const Params& p = config_.params;
    const Nanos srtt = tx.rtt.smoothed();
    const Nanos gap = p.timed_by_rtt ? std::min(p.min_req_gap, srtt / 2) : p.min_req_gap;
    const Nanos left_at = departures_->left_at(slot.ticket);
    // Some devices report in batches, the last of which may stay unfinished.
    if (left_at == kNever) return now - slot.sent_at < p.max_send_wait;
    if (!overtaken && now - std::max(slot.sent_at, left_at) < gap) return true;
    if (!p.timed_by_rtt || slot.transmissions <= 1) return false;
    Nanos wait = srtt - srtt / 4;
    if (slot.transmissions > kBadLuck && backs_off(tx)) {
        wait <<= std::min(slot.transmissions - kBadLuck, 20);
        wait = std::min(wait, std::max(srtt, p.max_send_wait / 2));
    }
    return now - std::max(slot.sent_at, left_at) < wait;
}

/// URTP's three cases (§3.2.1): sent long ago, sent just now, not sent yet.
void Member::Impl::request_one(TxStream& tx, Seq seq, std::uint32_t at, bool overtaken,
                               Nanos now) noexcept {
    if (!seq.before(tx.sent)) {
        count(Counter::req_unsent);
        return;
    }
    if (seq.before(tx.base) || seq.before(tx.next[at])) return;  // it has it: the request is old
    TxSlot& slot = tx.slot(seq);
    const auto asker = static_cast<std::uint16_t>(at);
    if (slot.asked_by != TxSlot::kNobody) {
        if (slot.asked_by != asker) slot.asked_by = TxSlot::kSeveral;
        return;
    }
    if (asks_too_soon(tx, slot, overtaken, now)) {
        count(Counter::req_too_soon);
        return;
    }
    tx.patience = 0;
    if (policy_.on_lost != nullptr) policy_.on_lost(*this, tx, seq, now);
    const bool gathers = tx.destinations > 1 && config_.params.repair_gather > 0;
    queue_repair(tx, seq, asker, gathers ? now + config_.params.repair_gather : now);
}

void Member::Impl::expect(Rank source, Nanos now) {
    if (!config_.params.request_on_receive || source == config_.rank) return;
    Session* session = session_of(source);
    if (session == nullptr || session->expecting || session->ready_head != nullptr) return;
    const Nanos longest = std::max(kMicrosecond, config_.params.max_recv_wait);
    session->expecting = true;
    ++expecting_;
    session->expected_since = now;
    // Nothing shows that it was sent: not before what such receives mostly take.
    session->expect_wait =
        std::max(first_wait(session->unicast), std::min(session->reply.bound(), longest));
    const Nanos first = config_.params.first_recv_wait;
    const Nanos wait = first != kFromRtt ? first : session->expect_wait;
    if (first != kFromRtt) session->expect_wait /= 2;  // is doubled at the first request
    session->expect_at = now + wait + random_below(config_.params.req_spread);
    if (config_.params.receives_in_turn) {
        awaited_.push_back(*session);
        if (awaited_.front() != session) session->expect_at = kNever;
    }
    timers_.arm_by(session->expect_timer, session->expect_at);
}

/// Its packet is here, or it is gone: the turn goes to the next that a receive names.
void Member::Impl::expect_ends(Session& session, Nanos now) noexcept {
    session.expecting = false;
    --expecting_;
    if (!config_.params.receives_in_turn) return;
    const bool had_turn = awaited_.front() == &session;
    awaited_.remove(session);
    Session* next = awaited_.front();
    if (!had_turn || next == nullptr) return;
    next->expect_at = now + std::max<Nanos>(config_.params.first_recv_wait, 0);
    timers_.arm_by(next->expect_timer, next->expect_at);
}

void Member::Impl::expect_timer(Session& session, Nanos now) {
    if (!session.expecting) return;
    if (session.expect_at <= now) {
        if (session.unicast.sibling == nullptr) {  // no group of it was heard: ask about the world
            if (Group* world = find_group(config_.world)) (void)group_stream(*world, session);
        }
        const RxStream* only = nullptr;
        if (config_.params.receives_in_turn) {
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
        // The longest wait is shared among all who are awaited: each member asks, and each is asked, once in that time, be they
        // ever so many.
        const std::uint32_t asking = config_.params.receives_in_turn ? 1 : expecting_;
        session.expect_wait = std::min(
            2 * session.expect_wait, std::max(kMicrosecond, config_.params.max_recv_wait) * asking);
        session.expect_at =
            now + session.expect_wait + random_below(members * config_.params.probe_slot);
    }
    timers_.arm_by(session.expect_timer, session.expect_at);
}

}  // namespace ulc::urtp
