// SPDX-License-Identifier: BSD-3-Clause
// Acknowledgements and credit (docs/PROTOCOL.md §4).
//
// When: at the number that the policy set, or `ack_delay` after the first packet that waits for
// company; at once when asked, after a duplicate, or when nodes return to the store. The content:
// everything before `next` stands in delivery order, and the policy's credit.
#include <algorithm>
#include <array>

#include "urtp/receiver/receiver.h"
#include "urtp/receiver/told.h"

namespace ulc::urtp {

/// A lone acknowledgement goes at `at` if nothing takes it along.
void Receiver::acknowledge_by(RxStream& rx, Nanos at) noexcept {
    rx.ack_by = at;
    arm(rx);
}

void Receiver::make_ack_due(RxStream& rx) noexcept {
    if (!params().acknowledged) return;
    if (rx.counted) {
        rx.group->rules->acknowledge();
        return;
    }
    rx.ack_due = true;
    control_.push(*rx.session);
}

/// piggyback() of a whole message, out of the way of the fast path.
bool Receiver::piggyback_any(Session& session, wire::AckEntry& out, Nanos now) noexcept {
    return piggyback(session, true, out, now);
}

/// One frame with what the session's streams have to say: the due ones, then others that moved.
Segment* Receiver::send_ack(Session& session, Nanos now) {
    Segment* segment = context_.control_frame();
    if (segment == nullptr) return nullptr;
    std::array<wire::AckEntry, wire::kAckEntriesMax> entries;
    std::size_t used = 0;
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
        if (!rx->ack_due) continue;
        if (used == entries.size()) break;
        entries[used++] = tell(*rx, now);
    }
    for (RxStream* rx = session.streams(); rx != nullptr && used < entries.size();
         rx = rx->sibling) {
        if (rx->unacknowledged() > 0) entries[used++] = tell(*rx, now);
    }
    ULC_CHECK(used > 0);
    segment->length = static_cast<std::uint32_t>(
        wire::build_ack(segment->frame, sessions_.head_to(session.rank, wire::FrameType::kAck),
                        std::span(entries).first(used)));
    context_.count(Counter::ack_sent);
    return segment;
}

/// FLOW goes first, but not twice before the same stream's REQ.
Segment* Receiver::speak(RxStream& rx, Nanos now) noexcept {
    const bool flow = rx.flow_due() && !(rx.request_due && rx.room.flow_spoke);
    Segment* segment = flow              ? send_flow(rx)
                       : !rx.request_due ? send_ack(*rx.session, now)
                       : rx.counted      ? rx.group->rules->request(rx, now)
                                         : send_request(rx, now);
    if (segment == nullptr) return nullptr;
    rx.room.flow_spoke = flow;
    return segment;
}

Segment* Receiver::send_flow(RxStream& rx) noexcept {
    Segment* segment = context_.control_frame();
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
        context_.count(Counter::refuse_sent);
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
        context_.count(Counter::grant_sent);
    }
    const wire::FrameHead head = sessions_.head_to(rx.session->rank, wire::FrameType::kFlow);
    segment->length = static_cast<std::uint32_t>(wire::build_flow(segment->frame, head, body));
    return segment;
}

void Receiver::offer_room() noexcept {
    Session& session = room_.first_starved();
    bool still = false;
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
        const std::uint32_t credit = context_.policy.credit(*this, *rx);
        const Seq limit = rx->next + credit;
        const bool told_nothing = !rx->next.before(rx->limit_told);
        const std::uint32_t worth = told_nothing ? 1 : std::max(1U, rx->window / 4);
        if (rx->missing()) {
            still |= credit == 0;
            if (credit > 0 && rx->ask_new_at == kNever) make_request_due(*rx, true);
        } else if (limit - rx->limit_told >= static_cast<std::int32_t>(worth)) {
            make_ack_due(*rx);
        } else if (rx->limit_told - rx->next < static_cast<std::int32_t>(rx->window / 2)) {
            still = true;
        }
    }
    if (still) {
        room_.starve_on();
    } else {
        room_.end_starving(session);
    }
}

void Receiver::on_probe(const wire::FrameView& frame, Session& session, Nanos now) {
    const StreamId stream = reinterpret_cast<const wire::ProbeBody*>(frame.body)->stream;
    RxStream* rx = nullptr;
    if (!is_group(stream)) {
        if (stream == session.unicast.id && !is_group(frame.handle)) rx = &session.unicast;
    } else if (Group* group = sessions_.find_group(stream);
               group != nullptr && (!is_group(frame.handle) || frame.handle == stream)) {
        rx = group_stream(*group, session);
    }
    if (rx == nullptr) {
        context_.count(Counter::drop_ack_stream);
        return;
    }
    if (frame.seq - rx->next > static_cast<std::int32_t>(rx->window)) {
        context_.count(Counter::drop_ack_range);
        return;
    }
    context_.count(Counter::probe_received);
    if (params().selective_repeat && rx->high.before(frame.seq)) {
        rx->high = frame.seq;
        // The question may have overtaken the packets that it is about.
        if (params().reorder_wait > 0 && rx->missing()) ask_for_gap(*rx, true, now);
    }
    if (is_group(frame.handle) && rx->group->ranks.size() > 2) {
        answer_in_slot(*rx, now);
    } else {
        answer(*rx);
    }
}

void Receiver::answer(RxStream& rx) noexcept {
    if (rx.missing() && rx.ask_new_at == kNever && context_.policy.credit(*this, rx) > 0) {
        make_request_due(rx, true);
    } else {
        make_ack_due(rx);
    }
}

/// All members of the group were asked at once.
void Receiver::answer_in_slot(RxStream& rx, Nanos now) noexcept {
    const auto members = static_cast<Nanos>(rx.group->ranks.size());
    rx.answer_at =
        std::min(rx.answer_at, now + 1 + context_.random_below(members * params().probe_slot));
    arm(rx);
}

}  // namespace ulc::urtp
