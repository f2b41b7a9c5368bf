// SPDX-License-Identifier: BSD-3-Clause
// NACKs (PCODE fig. 5, §5.3, §5.7). REQUEST: a pending receive waits for its source. PERSONAL: a
// gap in the numbers of one source. Both go to that source alone (§5.6). NAMED: P0's, to all; it
// names its source, which resends all from there on. GLOBAL: a gap in the
// global counters; the source of the message is not known, so all are asked and each resends its
// own. Every kind waits a first delay and is repeated until satisfied: the first two by the timers
// of the stream (request.cc), the third by its own.
//
// To resend is to broadcast again, as the first time.
#include <algorithm>

#include "urtp/profiles/pcode/rules.h"

namespace ulc::urtp::pcode {

Segment* Rules::request(RxStream& rx, Nanos now) noexcept {
    Segment* segment = parts_.context.control_frame();
    if (segment == nullptr) return nullptr;
    wire::NackBody body{};
    body.group = group_.handle;
    body.from = rx.next.value;
    Seq to = rx.next;
    body.kind = wire::NackKind::kRequest;
    if (version_ == Version::kZero) {
        body.kind = wire::NackKind::kNamed;
        body.target = group_.index_of[rx.session->rank];
        if (rx.missing()) {
            rx.asked_to = rx.high;
            parts_.receiver.asked(rx, now);
        }
    } else if (rx.missing()) {
        body.kind = wire::NackKind::kPersonal;
        while (to.before(rx.high) && !parts_.receiver.holds(rx, to))
            ++to;
        rx.asked_to = to;
        parts_.receiver.asked(rx, now);
    }
    body.to = to.value;
    rx.request_due = false;
    rx.request_all = false;
    const wire::FrameHead head =
        version_ == Version::kZero
            ? parts_.sessions.head_to(group_, wire::FrameType::kNack)
            : parts_.sessions.head_to(rx.session->rank, wire::FrameType::kNack);
    segment->length = static_cast<std::uint32_t>(wire::build_nack(segment->frame, head, body));
    count(Counter::nack_sent);
    parts_.context.count_repair(&rx.session->counts, &RepairCounts::requests_sent);
    return segment;
}

Segment* Rules::send_global_nack() noexcept {
    Segment* segment = parts_.context.control_frame();
    if (segment == nullptr) return nullptr;
    nack_due_ = false;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    ULC_CHECK(global_.gap(from, to));
    wire::NackBody body{};
    body.group = group_.handle;
    body.from = from;
    body.to = to;
    body.kind = wire::NackKind::kGlobal;
    const wire::FrameHead head = parts_.sessions.head_to(group_, wire::FrameType::kNack);
    segment->length = static_cast<std::uint32_t>(wire::build_nack(segment->frame, head, body));
    count(Counter::nack_sent);
    return segment;
}

bool Rules::has_word() noexcept {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    if (nack_due_ && !global_.gap(from, to)) nack_due_ = false;
    return nack_due_ || status_due_;
}

Segment* Rules::speak() noexcept { return nack_due_ ? send_global_nack() : send_status(); }

void Rules::on_timer(Nanos now) noexcept {
    const Params& p = params();
    switch (gap_.due(now, p.max_recv_wait / 8, kGlobalNacksMax)) {
        case NackTimer::Due::kNothing:
            break;
        case NackTimer::Due::kAsk:
            nack_due_ = true;
            parts_.control.push(group_);
            break;
        case NackTimer::Due::kGiveUp:
            global_.skip_gap();
            counters_moved(now);
            break;
    }
    if (status_at_ <= now) {
        status_at_ = kNever;
        make_status_due(false);
    }
    if (progress_at_ <= now) {
        const bool held = global_.spread() > p.flow_window;
        progress_at_ = held ? now + p.max_recv_wait / 8 : kNever;
        if (held) make_status_due(true);
    }
    parts_.context.timers.arm_by(timer_, std::min(gap_.at(), std::min(status_at_, progress_at_)));
}

namespace {

/// Returns the global counter of a message of ours that is kept.
std::uint32_t global_of(const TxSlot& slot) noexcept {
    return *reinterpret_cast<const Be32*>(slot.segment->frame + wire::kHeadOctets);
}

}  // namespace

bool Rules::on_nack(const wire::FrameView& frame, Session& session, Nanos now) noexcept {
    const auto& body = *reinterpret_cast<const wire::NackBody*>(frame.body);
    const std::uint16_t at = group_.index_of[session.rank];
    if (at == kNoRank) return false;
    if (body.kind == wire::NackKind::kNamed && body.target != group_.own) return true;
    count(Counter::nack_received);
    parts_.context.count_repair(&session.counts, &RepairCounts::requests_received);
    TxStream* tx = group_.tx.get();
    if (tx == nullptr || !tx->on_wire()) {
        count(Counter::req_unsent);
        return true;
    }
    if (body.kind == wire::NackKind::kGlobal) {
        const std::uint32_t span = body.to - body.from;
        std::uint32_t most = 0;
        for (Seq seq = tx->base; seq.before(tx->sent); ++seq) {
            if (global_of(tx->slot(seq)) - body.from >= span) continue;
            if (most == 0) most = parts_.sender.repairs().may_repeat(*tx, seq, now);
            if (most == 0) return true;
            parts_.sender.repairs().queue_for_all(*tx, seq, now);
            if (--most == 0) return true;
        }
        return true;
    }
    const Seq from{body.from};
    const Seq to{body.to};
    if (!from.before(tx->sent)) {
        count(from == tx->sent ? Counter::req_unsent : Counter::drop_ack_range);
        return true;
    }
    status_of_ours(at, from, now);  // LastRcvd
    const Seq end = to == from || tx->sent.before(to) ? tx->sent : to;
    Seq seq = from.before(tx->base) ? tx->base : from;
    if (!seq.before(end)) return true;
    for (std::uint32_t left = parts_.sender.repairs().may_repeat(*tx, seq, now);
         left > 0 && seq.before(end); --left, ++seq)
        parts_.sender.repairs().queue_for_all(*tx, seq, now);
    return true;
}

}  // namespace ulc::urtp::pcode
