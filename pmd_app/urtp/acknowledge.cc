// Acknowledgements and credit, both directions (docs/PROTOCOL.md §4).
//
// When: at the number that the policy set, or `ack_delay` after the first packet that waits for company; at once when asked,
// after a duplicate, or when room returns. What: everything before `next` stands in delivery order, and the policy's credit.
#include <algorithm>

#include "urtp/impl.h"

namespace ulc::urtp {

void Member::Impl::make_ack_due(RxStream& rx) noexcept {
    if (config_.params.detect_only) return;
    if (rx.counted) {
        make_status_due(*rx.group, false);
        return;
    }
    rx.ack_due = true;
    control_.push_back(*rx.session);
}

void Member::Impl::acknowledge_moved(RxStream& rx, Nanos now) noexcept {
    if (!rx.next.before(rx.ack_at)) {
        make_ack_due(rx);
    } else if (rx.group != nullptr) {
        if (!rx.counted) rx.session->unacked_group = &rx;
    } else if (rx.ack_by == kNever && config_.params.ack_delay != kNever) {
        rx.ack_by = now + ack_delay(rx.patience);
        timers_.arm_by(rx.timer, rx.ack_by);
    }
}

/// The entry that tells a source where its stream stands; whatever was due is thereby done.
wire::AckEntry Member::Impl::tell(RxStream& rx, Nanos now) noexcept {
    Session& session = *rx.session;
    const std::uint32_t credit = credit_of(rx);
    std::uint16_t delay_us = kDelayUnknown;
    if (rx.arrived != kNever) {
        delay_us = static_cast<std::uint16_t>(
            std::min<Nanos>((now - rx.arrived) / kMicrosecond, kDelayUnknown));
    }
    rx.acked = rx.next;
    rx.limit_told = rx.next + credit;
    rx.ack_due = false;
    rx.ack_by = kNever;
    rx.answer_at = kNever;
    rx.ack_at = policy_.next_ack(rx, credit, config_.params);
    if (session.unacked_group == &rx) session.unacked_group = nullptr;
    if (credit < rx.window / 2) {
        session.starved = true;
        starved_.push_back(session);
    }
    return {rx.id, rx.next.value, static_cast<std::uint16_t>(credit), delay_us};
}

/// An acknowledgement that rides on a DATA frame to its source; in mid-message only when it is nearly due.
[[gnu::flatten]] bool Member::Impl::piggyback(Session& session, bool last, wire::AckEntry& out,
                                              Nanos now) noexcept {
    RxStream* rx = &session.unicast;
    if (rx->unacknowledged() == 0 && !rx->ack_due) rx = session.unacked_group;
    if (rx == nullptr || config_.params.detect_only) return false;
    if (!last && !rx->ack_due && rx->unacknowledged() < config_.params.ack_window / 2) return false;
    out = tell(*rx, now);
    count(Counter::ack_piggybacked);
    return true;
}

/// One frame with what the session's streams have to say: the due ones, then others that moved.
Segment* Member::Impl::send_ack(Session& session, Nanos now) {
    Segment* segment = control_frame();
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
        wire::build_ack(segment->frame, head_to(session.rank, wire::FrameType::kAck),
                        std::span(entries).first(used)));
    count(Counter::ack_sent);
    return segment;
}

/// Room returned to the pool: the longest starved source hears of it, if it is worth a frame.
void Member::Impl::room_returned(Nanos now) noexcept {
    Session& session = *starved_.front();
    bool still = false;
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
        const std::uint32_t credit = credit_of(*rx);
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
    (void)now;
    if (still) {
        starved_.rotate();
    } else {
        session.starved = false;
        starved_.remove(session);
    }
}

void Member::Impl::on_ack_frame(const wire::FrameView& frame, Session& session,
                                Nanos now) noexcept {
    const auto* entries = reinterpret_cast<const wire::AckEntry*>(frame.body);
    const std::size_t n = frame.length / sizeof(wire::AckEntry);
    for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t at = 0;
        (void)on_ack(entries[i], session, at, now);
    }
}

/// An honest entry of a stream in which nothing was sent yet: a receiver awaits its first packet.
bool Member::Impl::nothing_sent(const wire::AckEntry& entry, const Session& session) noexcept {
    if (entry.next != ends_of(session.rank).out.value) return false;
    if (!is_group(entry.stream)) return entry.stream == session.rank && session.tx == nullptr;
    const Group* group = find_group(entry.stream);
    return group != nullptr && group->tx == nullptr && group->index_of[session.rank] != kNoRank;
}

/// The stream that a peer names as one of its own, and the peer's index in it; nullptr: nothing is sent to it there.
TxStream* Member::Impl::sending(StreamId stream, const Session& session,
                                std::uint32_t& at) noexcept {
    at = 0;
    if (config_.params.detect_only) return nullptr;  // nobody's word counts: all is forgotten
    if (!is_group(stream)) return stream == session.rank ? session.tx.get() : nullptr;
    Group* group = find_group(stream);
    if (group == nullptr || group->tx == nullptr) return nullptr;
    const std::uint16_t index = group->index_of[session.rank];
    if (index == kNoRank || !group->tx->is_destination(index)) return nullptr;
    at = index;
    return group->tx.get();
}

/// Takes one entry. Returns its stream, and the destination's index in it; nullptr: no such stream or number.
[[gnu::flatten]] TxStream* Member::Impl::on_ack(const wire::AckEntry& entry, Session& session,
                                                std::uint32_t& at, Nanos now) noexcept {
    TxStream* tx = sending(entry.stream, session, at);
    if (tx == nullptr) {
        count(nothing_sent(entry, session) ? Counter::req_unsent : Counter::drop_ack_stream);
        return nullptr;
    }
    const Seq next{entry.next};
    const auto span = static_cast<std::uint32_t>(tx->sent - tx->base);
    if (tx->sent.before(next)) {
        count(Counter::drop_ack_range);
        return nullptr;
    }
    count(Counter::ack_received);
    const std::uint32_t credit = std::min<std::uint32_t>(entry.credit, tx->window);
    if (next.before(tx->next[at])) return tx;  // old news
    const bool news = tx->edge[at] != next + credit;
    if (news) tx->allow(at, next + credit);
    if (next == tx->next[at]) {
        const bool more = !news && next != tx->sent;
        if (more && policy_.on_repeated_ack != nullptr)
            policy_.on_repeated_ack(*this, *tx, at, now);
        return tx;
    }
    AckNews moved{static_cast<std::uint32_t>(next - tx->next[at])};
    const TxSlot& newest = tx->slot(Seq{next.value - 1});
    const std::uint16_t delay_us = entry.delay_us;
    if (span > 0 && newest.transmissions == 1 && delay_us != kDelayUnknown) {
        const Nanos rtt = now - newest.sent_at - delay_us * kMicrosecond;
        tx->rtt.sample(rtt);
        session.rtt.sample(rtt);
        moved.rtt = std::max<Nanos>(rtt, 0);
    }
    while (tx->patience < kPatienceMax && delay_us != kDelayUnknown &&
           delay_us * kMicrosecond >= reply_delay(tx->patience)) {
        ++tx->patience;  // it waits longer the next time
    }
    if (tx->acknowledge(at, next)) release_acknowledged(*tx, now);
    if (policy_.on_acked != nullptr) policy_.on_acked(*this, *tx, moved, now);
    return tx;
}

void Member::Impl::let_go(TxStream& tx) noexcept {
    for (; tx.freed != tx.base; ++tx.freed) {
        TxSlot& slot = tx.slot(tx.freed);
        pool_.drop(slot.segment);
        slot.segment = nullptr;
        if (config_.send_frames != nullptr) config_.send_frames->give_back();
        if (slot.asked_by != TxSlot::kNobody) [[unlikely]]
            forget_repair(tx, slot);
    }
}

/// base moved on: lets go of what lies before it, and counts the tail's time anew.
void Member::Impl::release_acknowledged(TxStream& tx, Nanos now) noexcept {
    if (config_.params.free_lazily != 0 && tx.active() &&
        static_cast<std::uint32_t>(tx.tail - tx.freed) < config_.params.free_lazily) {
        restart_probe(tx, now);
        return;
    }
    let_go(tx);
    if (tx.probe_wait != 0 && !tx.on_wire()) {  // we asked in vain
        tx.patience = std::min<std::uint8_t>(tx.patience + 1, kPatienceMax);
    }
    if (!tx.active()) {
        (tx.group != nullptr ? active_groups_ : active_unicast_).remove(tx);
        if (tx.want == 0) probes_.remove(tx);
    }
    if (tx.on_wire()) {
        restart_probe(tx, now);
    } else {
        tx.probe_at = kNever;
        tx.probe_wait = 0;
    }
}

}  // namespace ulc::urtp
