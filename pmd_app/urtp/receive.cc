// Putting packets in order (docs/PROTOCOL.md §4, §5). The packet at `next` whose entries are met joins its source's ready
// queue straight away; others are held in the store. Whatever joins may unblock the source's other streams.
// No policy is called in order: moved() compares a number that one has set, on_gap() is reached only when there is a gap.
#include "urtp/impl.h"

namespace ulc::urtp {

[[gnu::flatten]] void Member::Impl::on_frame(const wire::FrameView& frame, Segment* segment,
                                             Nanos now) {
    bool kept = false;
    Session* session = nullptr;
    if (frame.rank == config_.rank) {
        count(Counter::drop_own_echo);
    } else if (frame.rank >= roster_.size() || roster_[frame.rank].mac != frame.source) {
        count(Counter::drop_wrong_source);
    } else if (session = session_of(frame.rank); session == nullptr) {
        count(Counter::drop_unknown_handle);  // it left or died here
    } else {
        session->unanswered_since = kNever;
        session->unanswered = 0;
        switch (frame.type) {
            case wire::FrameType::kData:
                if (frame.ack != nullptr) {
                    std::uint32_t at = 0;
                    (void)on_ack(*frame.ack, *session, at, now);
                }
                kept = on_packet(frame, segment, session->unicast, now);
                break;
            case wire::FrameType::kCounted:
            case wire::FrameType::kMcast: {
                Group* group = find_group(frame.handle);
                RxStream* rx = group != nullptr ? group_stream(*group, *session) : nullptr;
                const bool counted = frame.type == wire::FrameType::kCounted;
                if (rx != nullptr && rx->counted == counted) [[likely]] {
                    kept = counted ? on_counted(frame, segment, *rx, now)
                                   : on_packet(frame, segment, *rx, now);
                } else if (rx != nullptr) {
                    count(Counter::drop_type);
                } else {
                    count(group != nullptr ? Counter::drop_wrong_source
                                           : Counter::drop_unknown_handle);
                }
                break;
            }
            case wire::FrameType::kAck:
                on_ack_frame(frame, *session, now);
                break;
            case wire::FrameType::kReq:
                on_request(frame, *session, now);
                break;
            case wire::FrameType::kProbe:
                on_probe(frame, *session, now);
                break;
            case wire::FrameType::kFlow:
                if (policy_.on_flow != nullptr) {
                    policy_.on_flow(*this, frame, *session, now);
                } else {
                    count(Counter::drop_type);
                }
                break;
            case wire::FrameType::kStatus:
                on_status(frame, *session, now);
                break;
            case wire::FrameType::kNack:
                on_nack(frame, *session, now);
                break;
            case wire::FrameType::kJob:
            case wire::FrameType::kNode:
                count(Counter::drop_type);  // the engine's, or of a profile that is not spoken
                break;
        }
    }
    if (!kept) pool_.drop(segment);
}

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

}  // namespace

/// Returns whether the segment was kept.
bool Member::Impl::on_packet(const wire::FrameView& frame, Segment* segment, RxStream& rx,
                             Nanos now) {
    if (frame.seq == rx.next && !rx.blocked) return take_in_order(frame, segment, rx, now);
    if (config_.params.detect_only) return take_after_loss(frame, segment, rx, now);
    if (frame.seq.before(rx.next)) {
        count(Counter::drop_duplicate);
        // An acknowledgement may be lost. A repair that others of the group asked for says nothing about ours; but where the
        // sender's timer repeats to all, no other answer tells it.
        if (rx.group == nullptr || frame.destination == config_.mac) {
            rx.patience = 0;
            if (config_.params.ack_duplicates) make_ack_due(rx);
        } else if (!config_.params.selective_repeat) {
            answer_in_slot(rx, now);
        }
        return false;
    }
    if (!frame.seq.in_window(rx.next, rx.window)) {
        count(Counter::drop_beyond_window);
        return false;
    }
    if (rx.held > 0 && store_.find(&rx, frame.seq) != nullptr) {
        count(Counter::drop_duplicate);
        if (!config_.params.selective_repeat) policy_.on_gap(*this, rx, false, now);
        return false;
    }
    return hold(frame, segment, rx, now);
}

bool Member::Impl::take_in_order(const wire::FrameView& frame, Segment* segment, RxStream& rx,
                                 Nanos now) {
    Session& session = *rx.session;
    const bool target = is_target(frame, rx);
    bool kept = false;
    if (target && frame.after_count > 0) {
        switch (judge(rx, frame.seq, frame.after, frame.after_count)) {
            case Judgement::kMet:
                break;
            case Judgement::kUnmet:
                return hold(frame, segment, rx, now);
            case Judgement::kUnmeetable:
                count(Counter::drop_after_unmeetable);
                return false;
        }
    }
    if (rx.timed) repaired(rx, now);
    if (target) {
        RxNode* node = take_node(rx, frame.seq, true);
        if (node == nullptr) {
            if (config_.params.selective_repeat && rx.high == rx.next) ++rx.high;
            policy_.on_no_room(*this, rx, now);
            return false;
        }
        fill(*node, frame, segment, rx, now);
        if (node->reserved) [[unlikely]]
            keep_copy(*node, session);
        kept = node->packet.segment != nullptr;
        join(rx, *node);
        if (rx.counted) [[unlikely]]
            counted_in_order(rx, frame.global, now);
    } else {
        count(Counter::drop_not_target);
        advance(rx, now);
        if (rx.counted) counted_in_order(rx, frame.global, now);
    }
    if (rx.held > 0) drain(rx, now);
    moved(rx, now);
    if ((frame.flags & wire::kFlagAckNow) != 0) make_ack_due(rx);
    if (session.blocked > 0) unblock(session, now);
    return kept;
}

/// Out of order, or blocked by its entries.
bool Member::Impl::hold(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now) {
    Session& session = *rx.session;
    if (config_.params.detect_only) {  // nobody there sends entries
        count(Counter::drop_after_unmeetable);
        return false;
    }
    if (!config_.params.selective_repeat && frame.seq != rx.next) {
        count(Counter::drop_out_of_order);
        policy_.on_gap(*this, rx, true, now);
        return false;
    }
    const bool new_gap = rx.high.before(frame.seq);
    if (!frame.seq.before(rx.high)) rx.high = frame.seq + 1;
    RxNode* node = take_node(rx, frame.seq, false);
    if (node == nullptr) {
        policy_.on_no_room(*this, rx, now);
        return false;
    }
    const bool target = is_target(frame, rx);
    fill(*node, frame, target ? segment : nullptr, rx, now);
    if (!target) {
        node->after_count = 0;  // vanishes, so waits for nobody
        count(Counter::drop_not_target);
    }
    store_.insert(*node);
    ++rx.held;
    if (frame.seq == rx.next) {
        rx.blocked = true;
        ++session.blocked;
    }
    if (rx.missing()) policy_.on_gap(*this, rx, new_gap, now);
    return target;
}

/// Out of order only from the pool, so that the reserved node is there for the packet that lets others go.
RxNode* Member::Impl::take_node(RxStream& rx, Seq seq, bool in_order) noexcept {
    Session& session = *rx.session;
    bool slot = false;
    const bool may = !rx.room.rationed || policy_.may_hold(*this, rx, seq, slot);
    if (RxNode* node = may ? store_.take(session.local) : nullptr; node != nullptr) {
        ++session.held;
        node->slot = slot;
        return node;
    }
    if (in_order && !session.reserved_used) {
        session.reserved_used = true;
        return &session.reserved;
    }
    count(Counter::drop_no_room);
    session.starved = true;
    starved_.push_back(session);
    return nullptr;
}

void Member::Impl::free_node(Session& session, RxNode& node) noexcept {
    if (node.packet.segment != nullptr) pool_.drop(node.packet.segment);
    node.packet.segment = nullptr;
    if (node.reserved) {
        session.reserved_used = false;
    } else {
        if (node.slot) slot_returned(session, node.packet.stream);
        --session.held;
        store_.give_back(node);
    }
}

Judgement Member::Impl::judge(RxStream& rx, Seq seq, const wire::AfterEntry* after,
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
        } else if (Group* group = find_group(stream); group != nullptr) {
            const std::uint16_t index = group->index_of[rx.session->rank];
            if (index == kNoRank) return Judgement::kUnmeetable;
            const RxStream* other = heard(*group, *rx.session);
            one = judge_entry(other != nullptr ? other->next : config_.first_seq, number,
                              group->window);
        }
        if (one == Judgement::kUnmeetable) return one;
        if (one == Judgement::kUnmet) all = one;
    }
    return all;
}

void Member::Impl::advance(RxStream& rx, Nanos arrived) noexcept {
    ++rx.next;
    if (rx.high.before(rx.next)) rx.high = rx.next;
    rx.arrived = arrived;
}

/// The packet at next becomes the last of its source's ready queue.
void Member::Impl::join(RxStream& rx, RxNode& node) noexcept {
    Session& session = *rx.session;
    advance(rx, node.arrived);
    node.link = nullptr;
    node.stream = nullptr;
    (session.ready_tail != nullptr ? session.ready_tail->link : session.ready_head) = &node;
    session.ready_tail = &node;
    ready_.push_back(session);
    if (session.expecting) {
        session.reply.sample(node.arrived - session.expected_since);
        expect_ends(session, node.arrived);
    }
    session.ask_by = &rx;
    count(Counter::data_received);
}

/// Held packets from next on, as far as they may join.
bool Member::Impl::drain(RxStream& rx, Nanos now) noexcept {
    bool any = false;
    while (rx.held > 0) {
        RxNode* node = store_.find(&rx, rx.next);
        if (node == nullptr) {
            if (any && policy_.on_next_hole != nullptr) policy_.on_next_hole(*this, rx, now);
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
            count(Counter::drop_after_unmeetable);
            free_node(*rx.session, *node);
            policy_.on_gap(*this, rx, true, now);
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
        if (rx.counted) counted_in_order(rx, global, now);
        if (ack_now) make_ack_due(rx);
    }
    return any;
}

/// Streams of one source that wait for each other: until none moves. Bounded by the packets held.
void Member::Impl::unblock(Session& session, Nanos now) noexcept {
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

/// After next moved: is an acknowledgement due, is the gap closed?
void Member::Impl::moved(RxStream& rx, Nanos now) noexcept {
    acknowledge_moved(rx, now);
    if ((rx.ask_all_at != kNever || rx.ask_new_at != kNever) && !rx.missing()) stop_asking(rx);
}

bool Member::Impl::is_next(const wire::FrameView& frame) noexcept {
    if (frame.rank >= roster_.size() || roster_[frame.rank].mac != frame.source) return false;
    Session* session = sessions_[frame.rank].get();
    if (session == nullptr || session->gone || !ready_.empty()) return false;
    const RxStream* rx = &session->unicast;
    if (frame.type == wire::FrameType::kMcast) {
        const Group* group = find_group(frame.handle);
        rx = group == nullptr ? nullptr : heard(*group, *session);
    }
    return rx != nullptr && !rx->counted && !rx->blocked && frame.seq == rx->next &&
           frame.after_count == 0 && is_target(frame, *rx);
}

Rank Member::Impl::next_source() noexcept {
    const Session* session = ready_.front();
    if (session == nullptr) return kNoRank;
    ready_.rotate();
    return session->rank;
}

bool Member::Impl::front(Rank source, ReadyPacket& out) noexcept {
    const Session* session = source < sessions_.size() ? sessions_[source].get() : nullptr;
    if (session == nullptr || session->ready_head == nullptr) return false;
    out = session->ready_head->packet;
    return true;
}

void Member::Impl::pull_front(Rank source) noexcept {
    Session* session = source < sessions_.size() ? sessions_[source].get() : nullptr;
    if (session == nullptr || session->ready_head == nullptr) return;
    ReadyPacket& packet = session->ready_head->packet;
    if (packet.segment == nullptr || packet.segment->tail == nullptr) return;
    packet.payload = packet.segment->frame + packet.segment->length - packet.segment->tail_octets;
    pull_tail(*packet.segment);
}

[[gnu::flatten]] bool Member::Impl::pop(Rank source, Nanos now) {
    ULC_CHECK(source < sessions_.size() && sessions_[source] != nullptr);
    Session& session = *sessions_[source];
    RxNode* node = session.ready_head;
    ULC_CHECK(node != nullptr);
    session.ready_head = node->link;
    if (session.ready_head == nullptr) {
        session.ready_tail = nullptr;
        ready_.remove(session);
    }
    free_node(session, *node);
    if (!starved_.empty()) policy_.on_room(*this, now);
    return session.ready_head != nullptr;
}

}  // namespace ulc::urtp
