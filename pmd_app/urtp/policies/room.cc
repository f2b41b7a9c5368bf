#include "urtp/policies/room.h"

#include <algorithm>

namespace ulc::urtp {

namespace {

std::uint32_t distance(Seq from, Seq to) noexcept { return static_cast<std::uint32_t>(to - from); }

/// Numbers that were granted and came as somebody else's packet, or not at all, give their nodes back.
void settle(Core& core, RxStream& rx) noexcept {
    KeptRoom& room = rx.room;
    if (room.granted == 0 || rx.next.before(room.granted_to)) return;
    core.kept_ -= room.granted;
    room.granted = 0;
}

}  // namespace

namespace room {

void give_slots(Core& core, RxStream& rx) noexcept {
    const std::uint32_t common =
        (core.store_.free_count() - core.kept_) / 2;  // the rest is granted
    const std::uint32_t wanted = std::min(core.config_.params.source_packets, rx.window);
    rx.room.rationed = true;
    rx.room.slots = static_cast<std::uint16_t>(std::min(wanted, common));
    rx.room.granted_to = rx.next;
    rx.limit_told = rx.next + std::min(wanted, rx.window);
    core.kept_ += rx.room.slots;
}

bool by_grant(Core& core, RxStream& rx, Seq seq) noexcept {
    if (rx.room.granted == 0 || !seq.before(rx.room.granted_to)) return false;
    --rx.room.granted;
    --core.kept_;
    return true;
}

bool by_grant_or_slot(Core& core, RxStream& rx, Seq seq, bool& slot) noexcept {
    if (by_grant(core, rx, seq)) return true;
    if (rx.room.slots_used == rx.room.slots) return false;
    ++rx.room.slots_used;
    --core.kept_;
    slot = true;
    return true;
}

std::uint32_t kept_for(Core& core, RxStream& rx) noexcept {
    settle(core, rx);
    const std::uint32_t slots = rx.room.slots - rx.room.slots_used;
    const std::uint32_t reserved = rx.session->reserved_used ? 0 : 1;
    return std::min(rx.window, std::max<std::uint32_t>(rx.room.granted + slots, reserved));
}

// ---------------------------------------------------------------- the receiver

namespace {

/// Keeps nodes for what is missing of the wanted numbers. True: for all of them.
bool grant(Core& core, RxStream& rx) noexcept {
    KeptRoom& room = rx.room;
    settle(core, rx);
    const Seq end = room.want_first + room.want;
    Seq at = room.want_first;
    if (room.granted > 0 && at.before(room.granted_to)) at = room.granted_to;
    if (at.before(rx.next)) at = rx.next;
    for (; at.before(end); ++at) {
        if (core.store_.find(&rx, at) == nullptr) {
            if (core.store_.free_count() <= core.kept_) break;
            ++room.granted;
            ++core.kept_;
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
    if (room.grant_due) core.control_.push_back(*rx.session);
    return all;
}

RxStream* receiving(Core& core, StreamId stream, Session& session) {
    if (!is_group(stream)) return stream == session.unicast.id ? &session.unicast : nullptr;
    Group* group = core.find_group(stream);
    return group != nullptr ? core.group_stream(*group, session) : nullptr;
}

void on_reserve(Core& core, const wire::FlowBody& body, Session& session) noexcept {
    RxStream* rx = receiving(core, body.stream, session);
    if (rx == nullptr) {
        core.count(Counter::drop_ack_stream);
        return;
    }
    const Seq first{body.first};
    const std::uint32_t count = body.count;
    if (count > rx->window || first - rx->next > static_cast<std::int32_t>(rx->window)) {
        core.count(Counter::drop_ack_range);
        return;
    }
    if (!rx->next.before(first + count)) {  // it has them: an old question
        core.make_ack_due(*rx);
        return;
    }
    rx->room.want_first = first;
    rx->room.want = static_cast<std::uint16_t>(count);
    if (grant(core, *rx)) return;
    session.starved = true;
    core.starved_.push_back(session);
}

}  // namespace

bool grant_waiting(Core& core, Session& session) noexcept {
    bool waits = false;
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
        if (rx->room.want == 0) continue;
        const bool done = !rx->next.before(rx->room.want_first + rx->room.want) || grant(core, *rx);
        if (done && !rx->room.grant_due) rx->room.want = 0;
        waits |= !done;
    }
    return waits;
}

void on_room(Core& core, Nanos now) noexcept {
    if (grant_waiting(core, *core.starved_.front())) {
        core.starved_.rotate();
    } else {
        core.room_returned(now);
    }
}

// ---------------------------------------------------------------- the sender

std::uint32_t packets(const Core& core, const TxStream& tx, std::uint64_t octets) noexcept {
    const std::uint64_t each = wire::payload_max(0, 0, core.config_.mtu);
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>((octets + each - 1) / each, 1, tx.window));
}

void ask(Core& core, TxStream& tx, Seq first, std::uint32_t count, std::uint32_t at) noexcept {
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
    core.probes_.push_back(tx);
}

namespace {

/// What was asked for came by another way.
void forget_settled(TxStream& tx) noexcept {
    if (tx.want != 0 && !tx.base.before(tx.want_first + tx.want)) tx.want = 0;
}

}  // namespace

bool may_start(Core& core, TxStream& tx, std::uint64_t left, Nanos) noexcept {
    bool all = true;
    for (std::uint32_t at = 0; at < tx.members; ++at)
        all &= !tx.is_destination(at) || tx.tail.before(tx.granted[at]);
    if (all) return true;
    forget_settled(tx);
    if (tx.want == 0) ask(core, tx, tx.tail, packets(core, tx, left), TxSlot::kSeveral);
    return false;
}

void on_tail(Core& core, TxStream& tx, Nanos) {
    forget_settled(tx);
    tx.want_turn = tx.want != 0 && (!tx.want_turn || !tx.on_wire());
    core.probes_.push_back(tx);
}

namespace {

/// What stands in order at the receiver, which every message tells (Express's `in`). One that moves nothing is no news.
void accepted(Core& core, const wire::FlowBody& body, TxStream& tx, std::uint32_t at,
              Nanos now) noexcept {
    const Seq next{body.first - body.lacks};
    if (body.lacks == wire::kLacksUnknown || tx.sent.before(next) || !tx.next[at].before(next))
        return;
    if (tx.acknowledge(at, next)) core.release_acknowledged(tx, now);
}

void on_grant(Core& core, const wire::FlowBody& body, TxStream& tx, std::uint32_t at,
              Nanos now) noexcept {
    const Seq first{body.first};
    const Seq end = first + body.count;
    if (end - tx.base > 2 * static_cast<std::int32_t>(tx.window)) {
        core.count(Counter::drop_ack_range);
        return;
    }
    if (!tx.base.before(end)) return;  // old news
    accepted(core, body, tx, at, now);
    if (tx.granted[at].before(end)) tx.granted[at] = end;
    if (tx.edge[at].before(end)) tx.allow(at, end);
    // What was refused goes again, to this member alone; two round trips have passed, or somebody repeats an old grant.
    const Nanos gap = std::min(core.config_.params.min_req_gap, tx.rtt.smoothed() / 2) / 4;
    Seq seq = first.before(tx.next[at]) ? tx.next[at] : first;
    for (; seq.before(end) && seq.before(tx.sent); ++seq) {
        TxSlot& slot = tx.slot(seq);
        if (slot.asked_by != TxSlot::kNobody || now - slot.sent_at < gap) continue;
        core.queue_repair(tx, seq, static_cast<std::uint16_t>(at), now);
    }
    for (std::uint32_t i = 0; i < tx.members; ++i) {
        const bool asked = tx.want_at == TxSlot::kSeveral || tx.want_at == i;
        const bool lacks = tx.next[i].before(tx.want_first + tx.want);
        if (asked && lacks && tx.is_destination(i) && !tx.want_first.before(tx.granted[i])) return;
    }
    tx.want = 0;
    tx.want_at = TxSlot::kNobody;
}

void on_refuse(Core& core, const wire::FlowBody& body, TxStream& tx, std::uint32_t at) noexcept {
    Seq first{body.first};
    const Seq end = first + body.count;
    if (tx.sent.before(end) || first - tx.base < -static_cast<std::int32_t>(tx.window)) {
        core.count(Counter::drop_ack_range);
        return;
    }
    if (first.before(tx.next[at])) first = tx.next[at];
    if (first.before(end)) ask(core, tx, first, distance(first, end), at);
}

}  // namespace

void on_flow(Core& core, const wire::FrameView& frame, Session& session, Nanos now) noexcept {
    const auto& body = *reinterpret_cast<const wire::FlowBody*>(frame.body);
    if (body.kind == wire::FlowKind::kReserve) {
        on_reserve(core, body, session);
        return;
    }
    std::uint32_t at = 0;
    TxStream* tx = core.sending(body.stream, session, at);
    if (tx == nullptr || tx->granted == nullptr) {
        core.count(Counter::drop_ack_stream);
    } else if (body.kind == wire::FlowKind::kGrant) {
        on_grant(core, body, *tx, at, now);
    } else {
        on_refuse(core, body, *tx, at);
    }
}

}  // namespace room

// ---------------------------------------------------------------- frames, and the parts of the core

Segment* Member::Impl::send_reserve(TxStream& tx) noexcept {
    Segment* segment = control_frame();
    if (segment == nullptr) return nullptr;
    const bool all = tx.group != nullptr && tx.want_at == TxSlot::kSeveral;
    const wire::FrameHead head =
        all ? head_to(*tx.group, wire::FrameType::kFlow)
            : head_to(tx.rank[tx.group != nullptr ? tx.want_at : 0], wire::FrameType::kFlow);
    const wire::FlowBody body{tx.id, tx.want_first.value, tx.want, wire::FlowKind::kReserve, 0};
    segment->length = static_cast<std::uint32_t>(wire::build_flow(segment->frame, head, body));
    count(Counter::reserve_sent);
    return segment;
}

Segment* Member::Impl::send_flow(RxStream& rx) noexcept {
    Segment* segment = control_frame();
    if (segment == nullptr) return nullptr;
    KeptRoom& room = rx.room;
    wire::FlowBody body{rx.id, 0, 0, wire::FlowKind::kRefuse, 0};
    if (room.refuse_due) {
        room.refuse_due = false;
        Seq first = rx.next;  // the first run of missing numbers; further ones have their turn
        while (store_.find(&rx, first) != nullptr)
            ++first;
        Seq end = first + 1;
        while (end.before(rx.high) && store_.find(&rx, end) == nullptr)
            ++end;
        body.first = first.value;
        body.count = static_cast<std::uint16_t>(end - first);
        count(Counter::refuse_sent);
    } else {
        room.grant_due = false;
        body.kind = wire::FlowKind::kGrant;
        body.first = room.want_first.value;
        body.count = static_cast<std::uint16_t>(room.granted_to - room.want_first);
        body.lacks = static_cast<std::uint8_t>(
            std::clamp<std::int32_t>(room.want_first - rx.next, 0, wire::kLacksUnknown));
        // As good as an acknowledgement, but for credit, which is due by number.
        if (body.lacks != wire::kLacksUnknown && rx.next.before(rx.ack_at)) {
            rx.acked = rx.next;
            rx.ack_due = false;
            rx.ack_by = kNever;
        }
        if (!room.granted_to.before(room.want_first + room.want)) room.want = 0;
        count(Counter::grant_sent);
    }
    const wire::FrameHead head = head_to(rx.session->rank, wire::FrameType::kFlow);
    segment->length = static_cast<std::uint32_t>(wire::build_flow(segment->frame, head, body));
    return segment;
}

/// A node of a stream's own share was popped.
void Member::Impl::slot_returned(Session& session, StreamId stream) noexcept {
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
        if (rx->id != stream || rx->room.slots_used == 0) continue;
        --rx->room.slots_used;
        ++kept_;
        return;
    }
}

/// The stream ends: nothing is kept for it any more.
void Member::Impl::end_keeping(RxStream& rx) noexcept {
    kept_ -= rx.room.granted + (rx.room.slots - rx.room.slots_used);
    rx.room = {};
}

}  // namespace ulc::urtp
