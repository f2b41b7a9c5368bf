// What goes to the wire next: control, then repairs, then new packets in commit order. But control does not go alone for ever:
// its timers may ask for more than a slow host can send, and what it asks for must be answered by data in the end.
#include "urtp/impl.h"

namespace ulc::urtp {

wire::FrameHead Member::Impl::head_from_us(wire::FrameType type) const noexcept {
    wire::FrameHead head;
    head.source = config_.mac;
    head.ether_type = config_.ether_type;
    head.type = type;
    head.rank = config_.rank;
    head.crc = config_.crc;
    return head;
}

wire::FrameHead Member::Impl::head_to(Rank rank, wire::FrameType type) const noexcept {
    wire::FrameHead head = head_from_us(type);
    head.destination = roster_[rank].mac;
    head.handle = roster_[rank].handle;
    head.rank = name_at(rank);
    return head;
}

/// To all members.
wire::FrameHead Member::Impl::head_to(const Group& group, wire::FrameType type) const noexcept {
    wire::FrameHead head = head_from_us(type);
    head.destination = group.address;
    head.handle = group.handle;
    return head;
}

[[gnu::flatten]] Segment* Member::Impl::next_tx(Nanos now) {
    const bool may_control = !control_waits(now);
    if (may_control && has_control() && control_run_ < kControlRunMax) {
        if (Segment* segment = send_control(now)) {
            ++control_run_;
            return segment;
        }
    }
    const bool had_its_turn = control_run_ == kControlRunMax;
    control_run_ = 0;
    if (!repairing_.empty()) {
        if (Segment* segment = send_repair(now)) return segment;
    }
    Segment* segment = send_new(now);
    return segment == nullptr && had_its_turn && may_control ? send_control(now) : segment;
}

/// Room for one control frame; counted when there is none.
Segment* Member::Impl::control_frame() noexcept {
    Segment* segment = pool_.get();
    if (segment == nullptr) count(Counter::no_segment);
    return segment;
}

Segment* Member::Impl::send_control(Nanos now) {
    const std::uint32_t ticket = departures_->next;
    Segment* segment = compose_control(now);
    if (segment == nullptr) return nullptr;
    control_ticket_ = ticket;
    control_at_ = now;
    return segment;
}

/// The session's stream whose turn it is to speak; nullptr: none has anything to say. In turn, since timers may ask for more than
/// a slow host can send: were the first stream always first, the others would never be asked for what they lack.
RxStream* Member::Impl::next_to_speak(Session& session) noexcept {
    RxStream* first = nullptr;
    bool behind = false;
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
        if (rx->request_due && !rx->missing() && !session.expecting) rx->request_due = false;
        if (rx->room.refuse_due && !rx->missing()) rx->room.refuse_due = false;
        if (rx->request_due || rx->ack_due ||
            rx->flow_due()) {  // else a repair closed it, or it rode on data
            if (behind) return rx;
            if (first == nullptr) first = rx;
        }
        behind |= rx->id == session.spoke;
    }
    return first;
}

/// FLOW, REQ, or the session's acknowledgements. FLOW goes first, but not twice before the same stream's REQ.
Segment* Member::Impl::speak(RxStream& rx, Nanos now) noexcept {
    const bool flow = rx.flow_due() && !(rx.request_due && rx.room.flow_spoke);
    Segment* segment = flow              ? send_flow(rx)
                       : !rx.request_due ? send_ack(*rx.session, now)
                       : rx.counted      ? send_nack(rx, now)
                                         : send_request(rx, now);
    if (segment == nullptr) return nullptr;
    rx.room.flow_spoke = flow;
    rx.session->spoke = rx.id;
    return segment;
}

Segment* Member::Impl::compose_control(Nanos now) {
    while (Session* session = control_.front()) {
        Segment* segment = nullptr;
        if (session->in_doubt) {
            segment = send_doubt(*session);
        } else if (RxStream* rx = next_to_speak(*session); rx != nullptr) {
            segment = speak(*rx, now);
        } else {
            control_.remove(*session);
            continue;
        }
        if (segment != nullptr) control_.rotate();
        return segment;
    }
    while (TxStream* tx = probes_.front()) {
        if (!tx->active() && !tx->wants_credit && tx->want == 0) {
            probes_.remove(*tx);
            continue;
        }
        const bool reserves = tx->want != 0 && tx->want_turn;
        // Behind the packets before it: its answer tells how far the receiver has come.
        if (reserves && tx->sent != tx->tail && tx->want_first == tx->tail) break;
        Segment* segment = reserves ? send_reserve(*tx) : send_probe(*tx, now);
        if (segment != nullptr) probes_.remove(*tx);
        return segment;
    }
    return send_group_control();
}

Segment* Member::Impl::send_new(Nanos now) {
    TxSlot* slot = new_head_;
    if (slot == nullptr) return nullptr;
    new_head_ = slot->link;
    if (new_head_ == nullptr) new_tail_ = nullptr;
    if (config_.params.detect_only) {
        count(Counter::data_sent);
        return send_once(*slot);
    }
    slot->sent_at = now;
    slot->transmissions = 1;
    slot->ticket = departures_->next;
    TxStream& tx = *slot->stream;
    if (tx.probe_wait == 0) restart_probe(tx, now);
    ++tx.sent;
    pool_.hold(slot->segment);
    count(Counter::data_sent);
    return slot->segment;
}

}  // namespace ulc::urtp
