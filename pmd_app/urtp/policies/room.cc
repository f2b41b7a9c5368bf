// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/policies/room.h"

#include <algorithm>

namespace ulc::urtp {

namespace {

std::uint32_t distance(Seq from, Seq to) noexcept { return static_cast<std::uint32_t>(to - from); }

/// Releases the nodes that are still reserved once all granted numbers have passed: their packets
/// were for other members, or never came.
void settle(Receiver& receiver, RxStream& rx) noexcept {
    KeptRoom& room = rx.room;
    if (room.granted == 0 || rx.next.before(room.granted_to)) return;
    receiver.room().unkeep(room.granted);
    room.granted = 0;
}

}  // namespace

namespace kept_room {

void give_slots(Receiver& receiver, RxStream& rx) noexcept {
    const std::uint32_t common = receiver.room().unkept() / 2;  // the rest is granted
    const std::uint32_t wanted = std::min(receiver.params().source_packets, rx.window);
    rx.room.rationed = true;
    rx.room.slots = static_cast<std::uint16_t>(std::min(wanted, common));
    rx.room.granted_to = rx.next;
    rx.limit_told = rx.next + std::min(wanted, rx.window);
    receiver.room().keep(rx.room.slots);
}

bool by_grant(Receiver& receiver, RxStream& rx, Seq seq) noexcept {
    if (rx.room.granted == 0 || !seq.before(rx.room.granted_to)) return false;
    --rx.room.granted;
    receiver.room().unkeep(1);
    return true;
}

bool by_grant_or_slot(Receiver& receiver, RxStream& rx, Seq seq, bool& slot) noexcept {
    if (by_grant(receiver, rx, seq)) return true;
    if (rx.room.slots_used == rx.room.slots) return false;
    ++rx.room.slots_used;
    receiver.room().unkeep(1);
    slot = true;
    return true;
}

std::uint32_t kept_for(Receiver& receiver, RxStream& rx) noexcept {
    settle(receiver, rx);
    const std::uint32_t slots = rx.room.slots - rx.room.slots_used;
    const std::uint32_t reserved = rx.session->reserved_used ? 0 : 1;
    return std::min(rx.window, std::max<std::uint32_t>(rx.room.granted + slots, reserved));
}

// ---------------------------------------------------------------- the receiver

namespace {

/// Reserves nodes for the missing ones of the wanted numbers. Returns true if all got one.
bool grant(Receiver& receiver, RxStream& rx) noexcept {
    KeptRoom& room = rx.room;
    settle(receiver, rx);
    const Seq end = room.want_first + room.want;
    Seq at = room.want_first;
    if (room.granted > 0 && at.before(room.granted_to)) at = room.granted_to;
    if (at.before(rx.next)) at = rx.next;
    for (; at.before(end); ++at) {
        if (!receiver.holds(rx, at)) {
            if (receiver.room().unkept() == 0) break;
            ++room.granted;
            receiver.room().keep(1);
        }
        room.granted_to = at + 1;
    }
    // The next number may always come: the source has a packet reserved for it.
    if (room.granted == 0 && !rx.session->reserved_used && !rx.next.before(room.want_first) &&
        !rx.next.before(room.granted_to)) {
        room.granted_to = rx.next + 1;
    }
    const bool all = !room.granted_to.before(end);
    room.grant_due = room.want_first.before(room.granted_to);
    if (room.grant_due) receiver.speak_later(*rx.session);
    return all;
}

}  // namespace

void on_reserve(Receiver& receiver, const wire::FlowBody& body, Session& session) noexcept {
    RxStream* rx = receiver.find_or_make(body.stream, session);
    if (rx == nullptr) {
        receiver.count(Counter::drop_ack_stream);
        return;
    }
    const Seq first{body.first};
    const std::uint32_t count = body.count;
    if (count > rx->window || first - rx->next > static_cast<std::int32_t>(rx->window)) {
        receiver.count(Counter::drop_ack_range);
        return;
    }
    if (!rx->next.before(first + count)) {  // it has them: an old question
        receiver.make_ack_due(*rx);
        return;
    }
    rx->room.want_first = first;
    rx->room.want = static_cast<std::uint16_t>(count);
    if (grant(receiver, *rx)) return;
    receiver.room().await(session);
}

bool grant_waiting(Receiver& receiver, Session& session) noexcept {
    bool waits = false;
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
        if (rx->room.want == 0) continue;
        const bool done =
            !rx->next.before(rx->room.want_first + rx->room.want) || grant(receiver, *rx);
        if (done && !rx->room.grant_due) rx->room.want = 0;
        waits |= !done;
    }
    return waits;
}

void on_room(Receiver& receiver, Nanos) noexcept {
    if (grant_waiting(receiver, receiver.room().first_starved())) {
        receiver.room().starve_on();
    } else {
        receiver.offer_room();
    }
}

// ---------------------------------------------------------------- the sender

std::uint32_t packets(const Sender& sender, const TxStream& tx, std::uint64_t octets) noexcept {
    const std::uint64_t each = wire::payload_max(0, 0, sender.config().mtu);
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>((octets + each - 1) / each, 1, tx.window));
}

void ask(Sender& sender, TxStream& tx, Seq first, std::uint32_t count, std::uint32_t at) noexcept {
    const Seq end = first + count;
    if (tx.want != 0 && tx.want_first.before(end)) {  // one question for both
        const Seq old_end = tx.want_first + tx.want;
        if (tx.want_first.before(first)) first = tx.want_first;
        count = distance(first, old_end.before(end) ? end : old_end);
        if (tx.want_at != at) at = TxSlot::kSeveral;
    }
    tx.want_first = first;
    tx.want = static_cast<std::uint16_t>(std::min(count, tx.window));
    tx.want_at = static_cast<std::uint16_t>(at);
    tx.want_turn = true;
    sender.speak_later(tx);
}

namespace {

/// Forgets a question whose numbers came by another way.
void forget_settled(TxStream& tx) noexcept {
    if (tx.want != 0 && !tx.base.before(tx.want_first + tx.want)) tx.want = 0;
}

}  // namespace

bool may_start(Sender& sender, TxStream& tx, std::uint64_t left, Nanos) noexcept {
    bool all = true;
    for (std::uint32_t at = 0; at < tx.members; ++at)
        all &= !tx.is_destination(at) || tx.tail.before(tx.granted[at]);
    if (all) return true;
    forget_settled(tx);
    if (tx.want == 0) ask(sender, tx, tx.tail, packets(sender, tx, left), TxSlot::kSeveral);
    return false;
}

void on_tail(Sender& sender, TxStream& tx, Nanos) {
    forget_settled(tx);
    tx.want_turn = tx.want != 0 && (!tx.want_turn || !tx.on_wire());
    sender.speak_later(tx);
}

namespace {

/// Notes what is in order at the receiver, which every message reports (Express's `in`). A report
/// that advances nothing is no news.
void accepted(Sender& sender, const wire::FlowBody& body, TxStream& tx, std::uint32_t at,
              Nanos now) noexcept {
    const Seq next{body.first - body.lacks};
    if (body.lacks == wire::kLacksUnknown || tx.sent.before(next) || !tx.next[at].before(next))
        return;
    if (tx.acknowledge(at, next)) sender.release_acknowledged(tx, now);
}

void on_grant(Sender& sender, const wire::FlowBody& body, TxStream& tx, std::uint32_t at,
              Nanos now) noexcept {
    const Seq first{body.first};
    const Seq end = first + body.count;
    if (end - tx.base > 2 * static_cast<std::int32_t>(tx.window)) {
        sender.count(Counter::drop_ack_range);
        return;
    }
    if (!tx.base.before(end)) return;  // old news
    accepted(sender, body, tx, at, now);
    if (tx.granted[at].before(end)) tx.granted[at] = end;
    if (tx.edge[at].before(end)) tx.allow(at, end);
    // Refused packets are retransmitted to this member alone. Two round trips have passed, unless
    // an old grant was repeated.
    const Nanos gap = std::min(sender.params().min_req_gap, tx.rtt.smoothed() / 2) / 4;
    Seq seq = first.before(tx.next[at]) ? tx.next[at] : first;
    for (; seq.before(end) && seq.before(tx.sent); ++seq) {
        TxSlot& slot = tx.slot(seq);
        if (slot.asked_by != TxSlot::kNobody || now - slot.sent_at < gap) continue;
        sender.repairs().queue(tx, seq, static_cast<std::uint16_t>(at), now);
    }
    for (std::uint32_t i = 0; i < tx.members; ++i) {
        const bool asked = tx.want_at == TxSlot::kSeveral || tx.want_at == i;
        const bool lacks = tx.next[i].before(tx.want_first + tx.want);
        if (asked && lacks && tx.is_destination(i) && !tx.want_first.before(tx.granted[i])) return;
    }
    tx.want = 0;
    tx.want_at = TxSlot::kNobody;
}

void on_refuse(Sender& sender, const wire::FlowBody& body, TxStream& tx,
               std::uint32_t at) noexcept {
    Seq first{body.first};
    const Seq end = first + body.count;
    if (tx.sent.before(end) || first - tx.base < -static_cast<std::int32_t>(tx.window)) {
        sender.count(Counter::drop_ack_range);
        return;
    }
    if (first.before(tx.next[at])) first = tx.next[at];
    if (first.before(end)) ask(sender, tx, first, distance(first, end), at);
}

}  // namespace

void on_flow(Sender& sender, const wire::FlowBody& body, Session& session, Nanos now) noexcept {
    std::uint32_t at = 0;
    TxStream* tx = sender.sending(body.stream, session, at);
    if (tx == nullptr || tx->granted == nullptr) {
        sender.count(Counter::drop_ack_stream);
    } else if (body.kind == wire::FlowKind::kGrant) {
        on_grant(sender, body, *tx, at, now);
    } else {
        on_refuse(sender, body, *tx, at);
    }
}

}  // namespace kept_room

}  // namespace ulc::urtp
