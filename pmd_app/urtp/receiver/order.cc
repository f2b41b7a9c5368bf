// SPDX-License-Identifier: BSD-3-Clause
// Puts packets in order (docs/PROTOCOL.md §4, §5). The packet at `next` whose entries are met joins
// its source's ready queue straight away; others are held in the store. A packet that joins may
// unblock the source's other streams. The engine takes packets from the ready queues, sources in
// turn.
#include "urtp/receiver/receiver.h"
#include "urtp/receiver/told.h"

namespace ulc::urtp {

namespace {

bool is_target(const wire::FrameView& frame, const RxStream& rx) noexcept {
    if ((frame.flags & wire::kFlagSubset) == 0) return true;
    return rx.group->own < 64 && (frame.subset >> rx.group->own & 1U) != 0;
}

void fill(RxNode& node, const wire::FrameView& frame, Segment* segment, RxStream& rx,
          Nanos now) noexcept {
    node.link = nullptr;
    node.packet = {segment, frame.body,   frame.tag,   frame.message_length,
                   rx.id,   frame.length, frame.flags, rx.after_loss};
    rx.after_loss = false;
    node.after = frame.after;
    node.stream = &rx;
    node.arrived = now;
    node.seq = frame.seq;
    node.global = frame.global;
    node.after_count = frame.after_count;
}

/// A packet below high came that was missing.
void note_filled(RxStream& rx, Seq seq, Nanos now) noexcept {
    if (seq.before(rx.asked_to)) {
        rx.reorder.came_asked(now);
    } else if (rx.ask_new_at != kNever && seq.before(rx.late_to)) {
        rx.reorder.came_late(now);
    }
}

}  // namespace

void Receiver::free_node(Session& session, RxNode& node) noexcept {
    if (node.packet.segment != nullptr) context_.pool.drop(node.packet.segment);
    node.packet.segment = nullptr;
    if (node.reserved) {
        session.reserved_used = false;
    } else {
        if (node.slot) room_.slot_returned(session, node.packet.stream);
        --session.held;
        store_.give_back(node);
    }
}

/// Takes a packet out of order from the pool alone, so that the reserved node is there for the
/// packet that lets others go.
RxNode* Receiver::take_node(RxStream& rx, Seq seq, bool in_order) noexcept {
    Session& session = *rx.session;
    bool slot = false;
    const bool may = !rx.room.rationed || context_.policy.may_hold(*this, rx, seq, slot);
    if (RxNode* node = may ? store_.take(session.local) : nullptr; node != nullptr) {
        ++session.held;
        node->slot = slot;
        return node;
    }
    if (in_order && !session.reserved_used) {
        session.reserved_used = true;
        return &session.reserved;
    }
    context_.count(Counter::drop_no_room);
    room_.await(session);
    return nullptr;
}

Rank Receiver::next_source() noexcept {
    const Session* session = ready_.front();
    ready_.rotate();
    return session != nullptr ? session->rank : kNoRank;
}

bool Receiver::front(Rank source, ReadyPacket& out) const noexcept {
    const Session* session = source < sessions_.size() ? sessions_.find(source) : nullptr;
    const bool ready = session != nullptr && session->ready_head != nullptr && !session->in_slot;
    if (ready) out = session->ready_head->packet;
    return ready;
}

bool Receiver::on_mcast(const wire::FrameView& frame, Segment* segment, Session& session,
                        Nanos now) {
    Group* group = sessions_.find_group(frame.handle);
    RxStream* rx = group != nullptr ? group_stream(*group, session) : nullptr;
    const bool counted = frame.type == wire::FrameType::kCounted;
    if (rx != nullptr && rx->counted == counted) [[likely]]
        return on_packet(frame, segment, *rx, now);
    if (rx != nullptr) {
        context_.count(Counter::drop_type);
    } else {
        context_.count(group != nullptr ? Counter::drop_wrong_source
                                        : Counter::drop_unknown_handle);
    }
    return false;
}

[[gnu::flatten]] bool Receiver::on_packet(const wire::FrameView& frame, Segment* segment,
                                          RxStream& rx, Nanos now) {
    if (frame.seq == rx.next && !rx.blocked) return take_in_order(frame, segment, rx, now);
    return context_.policy.receive_mode->not_next(*this, frame, segment, rx, now);
}

/// A packet that is not next: a duplicate, or one that waits for those before it.
bool Receiver::put_aside(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now) {
    if (rx.counted && !frame.seq.before(rx.next) && frame.seq != rx.next &&
        !rx.group->rules->may_hold(rx)) {
        context_.count(Counter::drop_out_of_order);
        return false;
    }
    if (frame.seq.before(rx.next)) {
        count_duplicate(rx, frame.seq);
        // An acknowledgement may be lost. A repair that others of the group asked for says nothing
        // about ours; but where the sender's timer repeats to all, no other answer tells it.
        if (rx.group == nullptr || frame.destination == context_.config.mac) {
            rx.patience = 0;
            if (params().ack_duplicates) make_ack_due(rx);
        } else if (!params().selective_repeat) {
            answer_in_slot(rx, now);
        }
        return false;
    }
    if (!frame.seq.in_window(rx.next, rx.window)) {
        context_.count(Counter::drop_beyond_window);
        return false;
    }
    if (rx.held > 0 && store_.find(&rx, frame.seq) != nullptr) {
        count_duplicate(rx, frame.seq);
        if (!params().selective_repeat) context_.policy.on_gap(*this, rx, false, now);
        return false;
    }
    return hold(frame, segment, rx, now);
}

bool Receiver::take_in_order(const wire::FrameView& frame, Segment* segment, RxStream& rx,
                             Nanos now) {
    Session& session = *rx.session;
    const bool target = is_target(frame, rx);
    bool kept = false;
    if (target && frame.after_count > 0) {
        switch (judge(rx, frame.seq, frame.after, frame.after_count)) {
            case Judgement::kMet:
                break;
            case Judgement::kUnmet:
                return context_.policy.receive_mode->unmet(*this, frame, segment, rx, now);
            case Judgement::kUnmeetable:
                context_.count(Counter::drop_after_unmeetable);
                return false;
        }
    }
    // P0, fig. 3: the slot is not free. The packet's number stays the next.
    if (ready_slot_ && rx.counted && target && session.ready_head != nullptr &&
        (frame.flags & wire::kFlagFirst) != 0) [[unlikely]] {
        context_.count(Counter::drop_no_room);
        return false;
    }
    if (rx.timed) [[unlikely]] {  // after one request: a sample, also where nothing flows back
        session.rtt.sample(now - rx.asked_at);
        rx.timed = false;
    }
    if (target) {
        RxNode* node = take_node(rx, frame.seq, true);
        if (node == nullptr) {
            if (params().selective_repeat && rx.high == rx.next) ++rx.high;
            context_.policy.on_no_room(*this, rx, now);
            return false;
        }
        fill(*node, frame, segment, rx, now);
        if (node->reserved) [[unlikely]]
            keep_copy(*node, session);
        kept = node->packet.segment != nullptr;
        join(rx, *node);
        if (rx.counted) [[unlikely]]
            rx.group->rules->in_order(rx, frame.global, now);
    } else {
        context_.count(Counter::drop_not_target);
        advance(rx, now);
        if (rx.counted) rx.group->rules->in_order(rx, frame.global, now);
    }
    if (rx.held > 0) {
        note_filled(rx, frame.seq, now);
        drain(rx, now);
    }
    moved(rx, now);
    if ((frame.flags & wire::kFlagAckNow) != 0) make_ack_due(rx);
    if (session.blocked > 0) unblock(session, now);
    return kept;
}

/// Out of order, or blocked by its entries.
bool Receiver::hold(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now) {
    Session& session = *rx.session;
    if (!params().selective_repeat && frame.seq != rx.next) {
        context_.count(Counter::drop_out_of_order);
        context_.policy.on_gap(*this, rx, true, now);
        return false;
    }
    const bool new_gap = rx.high.before(frame.seq);
    if (frame.seq.before(rx.high)) {
        note_filled(rx, frame.seq, now);
    } else {
        rx.high = frame.seq + 1;
    }
    RxNode* node = take_node(rx, frame.seq, false);
    if (node == nullptr) {
        context_.policy.on_no_room(*this, rx, now);
        return false;
    }
    const bool target = is_target(frame, rx);
    fill(*node, frame, target ? segment : nullptr, rx, now);
    if (!target) {
        node->after_count = 0;  // vanishes, so it waits for no packet
        context_.count(Counter::drop_not_target);
    }
    store_.insert(*node);
    ++rx.held;
    if (frame.seq == rx.next) {
        rx.blocked = true;
        ++session.blocked;
    }
    if (rx.missing()) context_.policy.on_gap(*this, rx, new_gap, now);
    return target;
}

Judgement Receiver::judge(RxStream& rx, Seq seq, const wire::AfterEntry* after,
                          std::uint8_t entries) noexcept {
    Judgement all = Judgement::kMet;
    for (std::uint8_t i = 0; i < entries; ++i) {
        const StreamId stream = after[i].stream;
        const Seq number{after[i].seq};
        Judgement one = Judgement::kMet;
        if (stream == rx.id) {
            one = judge_own_entry(seq, number);
        } else if (!is_group(stream)) {
            const RxStream& unicast = rx.session->unicast;
            if (stream == unicast.id) one = judge_entry(unicast.next, number, unicast.window);
        } else if (Group* group = sessions_.find_group(stream); group != nullptr) {
            const std::uint16_t index = group->index_of[rx.session->rank];
            if (index == kNoRank) return Judgement::kUnmeetable;
            const RxStream* other = Sessions::heard(*group, *rx.session);
            one = judge_entry(other != nullptr ? other->next : context_.config.first_seq, number,
                              group->window);
        }
        if (one == Judgement::kUnmeetable) return one;
        if (one == Judgement::kUnmet) all = one;
    }
    return all;
}

/// The packet at next becomes the last of its source's ready queue.
void Receiver::join(RxStream& rx, RxNode& node) noexcept {
    Session& session = *rx.session;
    advance(rx, node.arrived);
    node.link = nullptr;
    node.stream = nullptr;
    (session.ready_tail != nullptr ? session.ready_tail->link : session.ready_head) = &node;
    session.ready_tail = &node;
    if (ready_slot_ && rx.counted && session.ready_head == &node && !session.expecting &&
        node.packet.first()) [[unlikely]]
        put_in_slot(session, node.arrived);
    if (!session.in_slot) ready_.add(session);
    arrived(rx, node.arrived);
    context_.count(Counter::data_received);
}

/// Held packets from next on, as far as they may join.
bool Receiver::drain(RxStream& rx, Nanos now) noexcept {
    bool any = false;
    while (rx.held > 0) {
        RxNode* node = store_.find(&rx, rx.next);
        if (node == nullptr) {
            if (any && context_.policy.on_next_hole != nullptr)
                context_.policy.on_next_hole(*this, rx, now);
            break;
        }
        const Judgement verdict = judge(rx, node->seq, node->after, node->after_count);
        if (verdict == Judgement::kUnmet) {
            rx.blocked = true;
            ++rx.session->blocked;
            break;
        }
        store_.erase(*node);
        --rx.held;
        if (verdict == Judgement::kUnmeetable) {
            context_.count(Counter::drop_after_unmeetable);
            free_node(*rx.session, *node);
            context_.policy.on_gap(*this, rx, true, now);
            break;
        }
        any = true;
        const bool ack_now = (node->packet.flags & wire::kFlagAckNow) != 0;
        const std::uint32_t global = node->global;
        if (node->packet.segment != nullptr) {
            join(rx, *node);
        } else {
            advance(rx, node->arrived);
            free_node(*rx.session, *node);
        }
        if (rx.counted) rx.group->rules->in_order(rx, global, now);
        if (ack_now) make_ack_due(rx);
    }
    return any;
}

/// Streams of one source that wait for each other: until none moves. Bounded by the packets held.
void Receiver::unblock(Session& session, Nanos now) noexcept {
    for (bool again = true; again && session.blocked > 0;) {
        again = false;
        for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
            if (!rx->blocked) continue;
            rx->blocked = false;
            --session.blocked;
            if (drain(*rx, now)) {
                again = true;
                moved(*rx, now);
            }
        }
    }
}

bool Receiver::is_next(const wire::FrameView& frame) const noexcept {
    if (!sessions_.is_from_peer(frame)) return false;
    Session* session = sessions_.find(frame.rank);
    if (session == nullptr || session->gone || !ready_.empty()) return false;
    const RxStream* rx = &session->unicast;
    if (frame.type == wire::FrameType::kMcast) {
        const Group* group = sessions_.find_group(frame.handle);
        rx = group == nullptr ? nullptr : Sessions::heard(*group, *session);
    }
    return rx != nullptr && !rx->counted && !rx->blocked && frame.seq == rx->next &&
           frame.after_count == 0 && is_target(frame, *rx);
}

void Receiver::pull_front(Rank source) noexcept {
    Session* session = source < sessions_.size() ? sessions_.find(source) : nullptr;
    if (session == nullptr || session->ready_head == nullptr) return;
    ReadyPacket& packet = session->ready_head->packet;
    if (packet.segment == nullptr || packet.segment->tail == nullptr) return;
    packet.payload = packet.segment->frame + packet.segment->length - packet.segment->tail_octets;
    pull_tail(*packet.segment);
}

[[gnu::flatten]] bool Receiver::pop(Rank source, Nanos now) {
    ULC_CHECK(source < sessions_.size() && sessions_.find(source) != nullptr);
    Session& session = *sessions_.find(source);
    RxNode* node = session.ready_head;
    ULC_CHECK(node != nullptr);
    session.ready_head = node->link;
    if (session.ready_head == nullptr) {
        session.ready_tail = nullptr;
        ready_.remove(session);
    }
    free_node(session, *node);
    if (room_.is_awaited()) context_.policy.on_room(*this, now);
    return session.ready_head != nullptr;
}

const ReceiveMode kRepairMode = {
    .not_next = [](Receiver& receiver, const wire::FrameView& frame, Segment* segment, RxStream& rx,
                   Nanos now) { return receiver.put_aside(frame, segment, rx, now); },
    .unmet = [](Receiver& receiver, const wire::FrameView& frame, Segment* segment, RxStream& rx,
                Nanos now) { return receiver.hold(frame, segment, rx, now); },
};

}  // namespace ulc::urtp
