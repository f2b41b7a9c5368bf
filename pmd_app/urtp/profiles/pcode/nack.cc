// NACKs (PCODE fig. 5, §5.3, §5.7). REQUEST: a pending receive waits for its source. PERSONAL: a gap in the numbers of one source.
// Both go to that source alone (§5.6). GLOBAL: a gap in the global counters; nobody knows whose message it is, so all are asked
// and each resends its own. Every kind waits a first delay and is repeated until satisfied: the first two by the timers of
// the stream (request.cc), the third by its own.
//
// To resend is to broadcast again, as the first time.
#include <algorithm>

#include "urtp/impl.h"

namespace ulc::urtp {

Segment* Member::Impl::send_nack(RxStream& rx, Nanos now) noexcept {
    Segment* segment = control_frame();
    if (segment == nullptr) return nullptr;
    wire::NackBody body{};
    body.group = rx.group->handle;
    body.from = rx.next.value;
    Seq to = rx.next;
    body.kind = wire::NackKind::kRequest;
    if (rx.missing()) {
        body.kind = wire::NackKind::kPersonal;
        while (to.before(rx.high) && store_.find(&rx, to) == nullptr)
            ++to;
        rx.asked_to = to;
        rx.timed = rx.asked_at == kNever;
        rx.asked_at = now;
        if (rx.ask_wait == 0) rx.ask_wait = first_wait(rx);
        if (rx.ask_all_at == kNever || rx.request_all) rx.ask_all_at = now + rx.ask_wait;
        arm(rx);
    }
    body.to = to.value;
    rx.request_due = false;
    rx.request_all = false;
    const wire::FrameHead head = head_to(rx.session->rank, wire::FrameType::kNack);
    segment->length = static_cast<std::uint32_t>(wire::build_nack(segment->frame, head, body));
    count(Counter::nack_sent);
    return segment;
}

Segment* Member::Impl::send_global_nack(Group& group) noexcept {
    Segment* segment = control_frame();
    if (segment == nullptr) return nullptr;
    group.pcode->nack_due = false;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    ULC_CHECK(group.pcode->global.gap(from, to));
    wire::NackBody body{};
    body.group = group.handle;
    body.from = from;
    body.to = to;
    body.kind = wire::NackKind::kGlobal;
    const wire::FrameHead head = head_to(group, wire::FrameType::kNack);
    segment->length = static_cast<std::uint32_t>(wire::build_nack(segment->frame, head, body));
    count(Counter::nack_sent);
    return segment;
}

/// What a group has to say beside its streams. nullptr: nothing, or no segment.
Segment* Member::Impl::send_group_control() noexcept {
    while (Group* group = group_control_.front()) {
        pcode::GroupState& state = *group->pcode;
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        if (state.nack_due && !state.global.gap(from, to)) state.nack_due = false;
        if (!state.nack_due && !state.status_due) {
            group_control_.remove(*group);
            continue;
        }
        return state.nack_due ? send_global_nack(*group) : send_status(*group);
    }
    return nullptr;
}

void Member::Impl::group_timer(Group& group, Nanos now) noexcept {
    pcode::GroupState& state = *group.pcode;
    const Params& p = config_.params;
    switch (state.gap.due(now, p.max_recv_wait / 8, pcode::kGlobalNacksMax)) {
        case pcode::NackTimer::Due::kNothing:
            break;
        case pcode::NackTimer::Due::kAsk:
            state.nack_due = true;
            group_control_.push_back(group);
            break;
        case pcode::NackTimer::Due::kGiveUp:
            state.global.skip_gap();
            group_counters_moved(group, now);
            break;
    }
    if (state.status_at <= now) {
        state.status_at = kNever;
        make_status_due(group, false);
    }
    if (state.progress_at <= now) {
        const bool held = state.global.spread() > p.flow_window;
        state.progress_at = held ? now + p.max_recv_wait / 8 : kNever;
        if (held) make_status_due(group, true);
    }
    timers_.arm_by(state.timer,
                   std::min(state.gap.at(), std::min(state.status_at, state.progress_at)));
}

namespace {

/// Of a message of ours that is kept.
std::uint32_t global_of(const TxSlot& slot) noexcept {
    return *reinterpret_cast<const Be32*>(slot.segment->frame + wire::kHeadOctets);
}

}  // namespace

/// As request_one(), but to all.
void Member::Impl::resend(TxStream& tx, Seq seq, Nanos now) noexcept {
    const TxSlot& slot = tx.slot(seq);
    if (slot.asked_by != TxSlot::kNobody) return;
    if (asks_too_soon(tx, slot, false, now)) {
        count(Counter::req_too_soon);
        return;
    }
    queue_repair(tx, seq, TxSlot::kSeveral, now);
}

void Member::Impl::on_nack(const wire::FrameView& frame, Session& session, Nanos now) noexcept {
    const auto& body = *reinterpret_cast<const wire::NackBody*>(frame.body);
    Group* group = find_group(body.group);
    const std::uint16_t at = group != nullptr ? group->index_of[session.rank] : kNoRank;
    if (group == nullptr || group->pcode == nullptr || at == kNoRank) {
        count(Counter::drop_ack_stream);
        return;
    }
    count(Counter::nack_received);
    TxStream* tx = group->tx.get();
    if (tx == nullptr || !tx->on_wire()) {
        count(Counter::req_unsent);
        return;
    }
    if (body.kind == wire::NackKind::kGlobal) {
        const std::uint32_t span = body.to - body.from;
        std::uint32_t most = 0;
        for (Seq seq = tx->base; seq.before(tx->sent); ++seq) {
            if (global_of(tx->slot(seq)) - body.from >= span) continue;
            if (most == 0) most = may_repeat(*tx, seq, now);
            if (most == 0) return;
            resend(*tx, seq, now);
            if (--most == 0) return;
        }
        return;
    }
    const Seq from{body.from};
    const Seq to{body.to};
    if (!from.before(tx->sent)) {
        count(from == tx->sent ? Counter::req_unsent : Counter::drop_ack_range);
        return;
    }
    status_of_ours(*group, at, from, now);  // LastRcvd
    const Seq end = to == from || tx->sent.before(to) ? tx->sent : to;
    Seq seq = from.before(tx->base) ? tx->base : from;
    if (!seq.before(end)) return;
    for (std::uint32_t left = may_repeat(*tx, seq, now); left > 0 && seq.before(end); --left, ++seq)
        resend(*tx, seq, now);
}

}  // namespace ulc::urtp
