// New packets: whether one may be committed, and its headers. A packet gets its number and its `after` entries when it is
// committed; committed packets are transmitted in that order, so the entries are those of the ordering rule
// (docs/PROTOCOL.md §5) at the latest moment that leaves room for the payload.
#include <algorithm>

#include "urtp/impl.h"

namespace ulc::urtp {

/// The hot path: nothing is made. nullptr: not there yet, or nobody receives it.
TxStream* Member::Impl::existing_tx_stream(StreamId stream) noexcept {
    if (is_group(stream)) {
        const Group* group = find_group(stream);
        TxStream* tx = group != nullptr ? group->tx.get() : nullptr;
        return tx != nullptr && tx->destinations > 0 ? tx : nullptr;
    }
    const Session* session = stream < sessions_.size() ? sessions_[stream].get() : nullptr;
    return session != nullptr && !session->gone ? session->tx.get() : nullptr;
}

/// What each receiver keeps for a stream is its first credit, and long messages are granted nothing yet.
void Member::Impl::begin_rationed(TxStream& tx) {
    const Params& p = config_.params;
    if (p.source_packets != 0) {
        for (std::uint32_t at = 0; at < tx.members; ++at)
            tx.allow(at, tx.base + std::min(tx.window, p.source_packets));
    }
    if (p.reserve_above == UINT64_MAX && policy_.on_flow == nullptr) return;
    tx.granted = std::make_unique<Seq[]>(tx.members);
    for (std::uint32_t at = 0; at < tx.members; ++at)
        tx.granted[at] = tx.base;
}

TxStream* Member::Impl::make_tx_stream(StreamId stream, Admission& why) {
    why = Admission::kUnknown;
    if (!is_group(stream)) {
        if (stream >= roster_.size() || stream == config_.rank ||
            is_vacant(static_cast<Rank>(stream)))
            return nullptr;
        Session* session = session_of(static_cast<Rank>(stream));
        if (session == nullptr) {
            why = Admission::kPeerGone;
            return nullptr;
        }
        if (session->tx == nullptr) {
            session->tx = std::make_unique<TxStream>(
                stream, nullptr, std::span<const Rank>(&session->rank, 1), 1, config_.params.window,
                ends_of(session->rank).out, config_.params.initial_rtt);
            timers_.enroll();
            begin_rationed(*session->tx);
            if (policy_.on_opened != nullptr) policy_.on_opened(*this, *session->tx);
        }
        return session->tx.get();
    }
    Group* group = find_group(stream);
    if (group == nullptr) return nullptr;
    if (group->tx == nullptr) {
        group->tx =
            std::make_unique<TxStream>(stream, group, group->ranks, group->own, group->window,
                                       config_.first_seq, config_.params.initial_rtt);
        timers_.enroll();
        begin_rationed(*group->tx);
        if (policy_.on_opened != nullptr) policy_.on_opened(*this, *group->tx);
        for (std::uint32_t i = 0; i < group->ranks.size(); ++i) {
            const auto& session = sessions_[group->ranks[i]];
            if (session != nullptr && session->gone) group->tx->remove_destination(i);
        }
    }
    why = Admission::kPeerGone;
    const bool alone = group->ranks.size() == 1;
    return group->tx->destinations > 0 || alone ? group->tx.get() : nullptr;
}

Admission Member::Impl::may_send(StreamId stream, std::uint64_t subset, bool has_subset, Nanos now,
                                 const MessageSize& size) {
    draft_.stream = nullptr;
    TxStream* tx = existing_tx_stream(stream);
    if (tx == nullptr) [[unlikely]] {
        Admission why;
        tx = make_tx_stream(stream, why);
        if (tx == nullptr) return why;
    }
    if (tx->pacer.next() > now) {
        timers_.arm_by(tx->timer, tx->pacer.next());
        return Admission::kWindow;
    }
    if (tx->repairs > 0 && tx->pacer.gap() > 0) {  // these go first
        timers_.arm_by(tx->timer, now + tx->pacer.gap());
        return Admission::kWindow;
    }
    if (!tx->has_room()) {
        if (!tx->wants_credit) {
            tx->wants_credit = true;
            if (tx->on_wire() && config_.params.ack_delay == kNever) hasten_probe(*tx, now);
        }
        if (!tx->on_wire() && tx->probe_at == kNever && !config_.params.detect_only)
            restart_probe(*tx, now);
        policy_.on_refused(*this, *tx, now);
        return Admission::kWindow;
    }
    if (tx->group != nullptr && tx->group->pcode != nullptr && !flow_window_open(*tx->group, now))
        return Admission::kWindow;
    if (size.octets > config_.params.reserve_above &&
        !policy_.may_start(*this, *tx, size.left, now)) {
        tx->wants_credit = true;
        if (!tx->on_wire() && tx->probe_at == kNever) restart_probe(*tx, now);
        return Admission::kWindow;
    }
    draft_.predecessors.clear();
    // Two unicast streams share no receiver.
    if (tx->group != nullptr || !active_groups_.empty())
        find_predecessors(*tx, subset, has_subset, draft_.predecessors);
    if (draft_.predecessors.size() <= wire::kAfterEntriesMax) {
        draft_.stream = tx;
        return Admission::kYes;
    }
    count(Counter::after_wait);
    for (TxStream* blocker : draft_.predecessors)
        probe_now(*blocker, now);
    return Admission::kAfter;
}

bool Member::Impl::shares_unacknowledged(const TxStream& earlier, const TxStream& stream,
                                         std::uint64_t subset, bool has_subset) const noexcept {
    const auto lacks = [&earlier](std::uint32_t at) {
        return earlier.is_destination(at) && need_entry(earlier.next[at], earlier.tail);
    };
    const auto aimed_at = [&](Rank rank) {
        const std::uint16_t index = stream.group->index_of[rank];
        return index != kNoRank && stream.is_destination(index) &&
               (!has_subset || (subset >> index & 1U) != 0);
    };
    if (stream.group == nullptr) {  // then the earlier one is a group
        const std::uint16_t index = earlier.group->index_of[stream.rank[0]];
        return index != kNoRank && lacks(index);
    }
    for (std::uint32_t i = 0; i < earlier.members; ++i) {
        if (lacks(i) && aimed_at(earlier.rank[i])) return true;
    }
    return false;
}

void Member::Impl::find_predecessors(const TxStream& stream, std::uint64_t subset, bool has_subset,
                                     Blockers& out) const noexcept {
    if (config_.params.detect_only) return;  // no receiver waits
    const auto consider = [&](TxStream* earlier) {
        return earlier == &stream || !earlier->active() ||
               !shares_unacknowledged(*earlier, stream, subset, has_subset) ||
               out.push_back(earlier);
    };
    for (TxStream* t = active_groups_.front(); t != nullptr && !out.full();
         t = active_groups_.after(*t)) {
        consider(t);
    }
    if (stream.group == nullptr) return;
    if (active_unicast_.size() <= stream.members) {
        for (TxStream* t = active_unicast_.front(); t != nullptr && !out.full();
             t = active_unicast_.after(*t)) {
            consider(t);
        }
        return;
    }
    for (std::uint32_t i = 0; i < stream.members && !out.full(); ++i) {
        const auto& session = sessions_[stream.rank[i]];
        if (session != nullptr && session->tx != nullptr) consider(session->tx.get());
    }
}

namespace {

/// The next packet leaves half of the credit, or none.
bool asks_for_credit(const TxStream& tx) noexcept {
    const auto left = static_cast<std::uint32_t>(tx.limit - tx.tail) - 1;
    const auto all = static_cast<std::uint32_t>(tx.limit - tx.base);
    return left == 0 || left == all / 2;
}

bool asks(const TxStream& tx) noexcept {
    return static_cast<std::uint32_t>(tx.tail - tx.asked) + 1 >= tx.ask_every;
}

}  // namespace

PacketPlan Member::Impl::plan(const PacketMeta& meta, Nanos now) {
    const TxStream* tx = draft_.stream;
    ULC_CHECK(tx != nullptr && tx->id == meta.stream && tx->has_room());
    std::uint8_t flags = 0;
    if (meta.first) flags |= wire::kFlagFirst;
    if (meta.last) flags |= wire::kFlagLast;
    const bool asks_now = asks(*tx) || (config_.params.credit_request && asks_for_credit(*tx));
    if (meta.ack_now || asks_now) flags |= wire::kFlagAckNow;
    if (config_.crc) flags |= wire::kFlagCrc;
    if (meta.has_tag && meta.first) flags |= wire::kFlagTag;
    wire::Extensions& extensions = draft_.extensions;
    extensions.after_count = 0;
    extensions.tag = meta.tag;
    extensions.message_length = meta.message_length;
    if (tx->group != nullptr && meta.has_subset) {
        flags |= wire::kFlagSubset;
        extensions.subset = meta.subset;
    }
    for (const TxStream* earlier : draft_.predecessors) {
        extensions.after[extensions.after_count++] = {earlier->id,
                                                      entry_number(earlier->tail).value};
    }
    if (config_.params.number_vector && tx->group != nullptr) {
        const std::size_t octets = 4UL * tx->members;
        while (extensions.after_count < wire::kAfterEntriesMax &&
               extensions.after_count * sizeof(wire::AfterEntry) < octets) {
            extensions.after[extensions.after_count++] = {tx->id, entry_number(tx->tail).value};
        }
    }
    if (extensions.after_count > 0) flags |= wire::kFlagAfter;
    if (tx->group == nullptr &&
        piggyback(*sessions_[tx->rank[0]], meta.last, extensions.ack, now)) {
        flags |= wire::kFlagAck;
    }
    draft_.flags = flags;
    const bool counted = tx->group != nullptr && tx->group->pcode != nullptr;
    const std::size_t extra = wire::extension_octets(flags, extensions.after_count, counted);
    return {static_cast<std::uint16_t>(wire::kHeadOctets + extra),
            static_cast<std::uint16_t>(wire::payload_max(flags, extra, config_.mtu))};
}

/// What its packets begin with.
wire::Head Member::Impl::head_of(const TxStream& tx) const noexcept {
    wire::Head head = data_head_;
    if (tx.group != nullptr) {
        const auto type =
            tx.group->pcode != nullptr ? wire::FrameType::kCounted : wire::FrameType::kMcast;
        head.ethernet.destination = tx.group->address;
        head.header.version_type = wire::version_type(type);
        head.header.handle = tx.id;
    } else {
        const Peer& peer = roster_[tx.rank[0]];
        head.ethernet.destination = peer.mac;
        head.header.handle = peer.handle;
        if (for_links()) head.header.rank = ends_[tx.rank[0]].self;
    }
    return head;
}

void Member::Impl::commit(const PacketMeta& meta, const PacketPlan& plan, Segment* segment,
                          std::uint32_t length, Nanos now) {
    TxStream* tx = draft_.stream;
    ULC_CHECK(tx != nullptr && tx->id == meta.stream && length <= plan.payload_max);
    draft_.stream = nullptr;
    const bool group = tx->group != nullptr;
    if (group && tx->group->pcode != nullptr) draft_.extensions.global = next_global(*tx->group);
    segment->length = static_cast<std::uint32_t>(wire::build_data(
        segment->frame, head_of(*tx), draft_.flags, tx->tail, draft_.extensions, length));
    if (tx->destinations == 0) {  // a group of one: nobody to tell
        pool_.drop(segment);
        return;
    }
    if (config_.send_frames != nullptr) config_.send_frames->take();
    TxSlot& slot = tx->slot(tx->tail);
    if (slot.segment != nullptr) [[unlikely]]
        let_go(*tx);  // retained lazily
    slot = {segment, tx, nullptr, now, {0}, TxSlot::kNobody, 0};
    (new_tail_ != nullptr ? new_tail_->link : new_head_) = &slot;
    new_tail_ = &slot;
    ++tx->tail;
    if ((draft_.flags & wire::kFlagAckNow) != 0) tx->asked = tx->tail;
    tx->pacer.on_packet(now);
    tx->wants_credit = false;
    (group ? active_groups_ : active_unicast_).push_back(*tx);
}

}  // namespace ulc::urtp
