// SPDX-License-Identifier: BSD-3-Clause
// New packets: whether one may be committed, and its headers. A packet gets its number and its
// `after` entries when it is committed; committed packets are transmitted in that order, so the
// entries are those of the ordering rule (docs/PROTOCOL.md §5) at the latest moment that leaves
// space for the payload.
#include <algorithm>

#include "urtp/receiver/ordering.h"
#include "urtp/receiver/told.h"
#include "urtp/sender/acknowledged.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

TxStream* Sender::find(StreamId stream) const noexcept {
    if (is_group(stream)) {
        const Group* group = sessions_.find_group(stream);
        TxStream* tx = group != nullptr ? group->tx.get() : nullptr;
        return tx != nullptr && tx->destinations > 0 ? tx : nullptr;
    }
    const Session* session = stream < sessions_.size() ? sessions_.find(stream) : nullptr;
    return session != nullptr && !session->gone ? session->tx.get() : nullptr;
}

/// A packet of the stream waits: if it is a group's, its members are looked at.
void Sender::wait_for_holders(TxStream& tx, Nanos now) noexcept {
    Holders* holders = tx.group != nullptr ? tx.group->holders.get() : nullptr;
    if (holders != nullptr && holders->on_wait(now, context_.hold.limit))
        context_.timers.arm_by(tx.timer, holders->sample_at());
}

Admission Sender::may_send(TxStream& tx, std::uint64_t subset, bool has_subset, Nanos now,
                           const MessageSize& size) {
    draft_.stream = nullptr;
    if (tx.pacer.next() > now) {
        wait_for_holders(tx, now);
        context_.timers.arm_by(tx.timer, tx.pacer.next());
        return Admission::kWindow;
    }
    if (tx.repairs > 0 && tx.pacer.gap() > 0) {  // these go first
        wait_for_holders(tx, now);
        context_.timers.arm_by(tx.timer, now + tx.pacer.gap());
        return Admission::kWindow;
    }
    if (!tx.has_room()) {
        if (!tx.wants_credit) {
            tx.wants_credit = true;
            if (tx.on_wire() && params().ack_delay == kNever) tail_wait_.hasten(tx, now);
        }
        if (!tx.on_wire() && tx.probe_at == kNever && params().acknowledged)
            tail_wait_.restart(tx, now);
        wait_for_holders(tx, now);
        context_.policy.on_refused(*this, tx, now);
        return Admission::kWindow;
    }
    if (tx.group != nullptr && !tx.group->rules->may_send(now)) return Admission::kWindow;
    if (size.octets > params().reserve_above &&
        !context_.policy.may_start(*this, tx, size.left, now)) {
        tx.wants_credit = true;
        if (!tx.on_wire() && tx.probe_at == kNever) tail_wait_.restart(tx, now);
        return Admission::kWindow;
    }
    draft_.predecessors.clear();
    // Two unicast streams share no receiver.
    if (tx.group != nullptr || !active_groups_.empty())
        find_predecessors(tx, subset, has_subset, draft_.predecessors);
    if (draft_.predecessors.size() <= wire::kAfterEntriesMax) {
        draft_.stream = &tx;
        return Admission::kYes;
    }
    context_.count(Counter::after_wait);
    for (TxStream* blocker : draft_.predecessors)
        probe_now(*blocker, now);
    return Admission::kAfter;
}

namespace {

/// A receiver of the stream has not acknowledged all of the earlier one.
bool shares_unacknowledged(const TxStream& earlier, const TxStream& stream, std::uint64_t subset,
                           bool has_subset) noexcept {
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

}  // namespace

/// Finds the streams that the next packet of this one must name. A full list: not all.
void Sender::find_predecessors(const TxStream& stream, std::uint64_t subset, bool has_subset,
                               Draft::Blockers& out) const noexcept {
    if (!params().acknowledged) return;  // no receiver waits
    const auto consider = [&](TxStream* earlier) {
        return earlier == &stream || !earlier->active() ||
               !shares_unacknowledged(*earlier, stream, subset, has_subset) ||
               out.push_back(earlier);
    };
    for (TxStream* t = active_groups_.front(); t != nullptr && !out.full();
         t = active_groups_.next(*t)) {
        consider(t);
    }
    if (stream.group == nullptr) return;
    if (active_unicast_.size() <= stream.members) {
        for (TxStream* t = active_unicast_.front(); t != nullptr && !out.full();
             t = active_unicast_.next(*t)) {
            consider(t);
        }
        return;
    }
    for (std::uint32_t i = 0; i < stream.members && !out.full(); ++i) {
        const Session* session = sessions_.find(stream.rank[i]);
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

}  // namespace

PacketPlan Sender::plan(const PacketMeta& meta, Nanos now) {
    const TxStream* tx = draft_.stream;
    ULC_CHECK(tx != nullptr && tx->id == meta.stream && tx->has_room());
    std::uint8_t flags = 0;
    if (meta.first) flags |= wire::kFlagFirst;
    if (meta.last) flags |= wire::kFlagLast;
    const bool asks_now = tx->asks() || (params().credit_request && asks_for_credit(*tx));
    if (meta.ack_now || asks_now) flags |= wire::kFlagAckNow;
    if (context_.config.crc) flags |= wire::kFlagCrc;
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
    if (params().number_vector && tx->group != nullptr) {
        const std::size_t octets = 4UL * tx->members;
        while (extensions.after_count < wire::kAfterEntriesMax &&
               extensions.after_count * sizeof(wire::AfterEntry) < octets) {
            extensions.after[extensions.after_count++] = {tx->id, entry_number(tx->tail).value};
        }
    }
    if (extensions.after_count > 0) flags |= wire::kFlagAfter;
    if (tx->group == nullptr &&
        receiver_.piggyback(*sessions_.find(tx->rank[0]), meta.last, extensions.ack, now)) {
        flags |= wire::kFlagAck;
    }
    draft_.flags = flags;
    const bool counted = tx->group != nullptr && tx->group->counted;
    const std::size_t extra = wire::extension_octets(flags, extensions.after_count, counted);
    return {static_cast<std::uint16_t>(wire::kHeadOctets + extra),
            static_cast<std::uint16_t>(wire::payload_max(flags, extra, mtu_of(*tx)))};
}

void Sender::commit(const PacketMeta& meta, const PacketPlan& plan, Segment* segment,
                    std::uint32_t length, Nanos now) {
    TxStream* tx = draft_.stream;
    ULC_CHECK(tx != nullptr && tx->id == meta.stream && length <= plan.payload_max);
    draft_.stream = nullptr;
    const bool group = tx->group != nullptr;
    if (group && tx->group->counted) draft_.extensions.global = tx->group->rules->next_count();
    segment->length = static_cast<std::uint32_t>(wire::build_data(
        segment->frame, sessions_.head_of(*tx), draft_.flags, tx->tail, draft_.extensions, length));
    if (tx->destinations == 0) {  // a group of one: no receiver
        context_.pool.drop(segment);
        return;
    }
    retain(*tx, segment, (draft_.flags & wire::kFlagAckNow) != 0, now);
}

/// The packet has its headers: gives it its number, and its place behind those that were committed.
void Sender::retain(TxStream& tx, Segment* segment, bool asks, Nanos now) noexcept {
    TxSlot& slot = take_slot(tx, segment, asks, now);
    (new_tail_ != nullptr ? new_tail_->link : new_head_) = &slot;
    new_tail_ = &slot;
}

}  // namespace ulc::urtp
