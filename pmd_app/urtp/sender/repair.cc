// SPDX-License-Identifier: BSD-3-Clause
// Packets to transmit again. A packet that is asked for is marked in the stream's ring. A stream
// with marks is in `repairing_` while one of them may go, else its timer brings it back: a group's
// request waits `repair_gather` for others of the same packet. Repairs share the stream's pacer
// with new packets, since packets lost to a full queue must not fill it again.
#include <algorithm>
#include <cstring>

#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

/// Returns a time within a second or so, in units of 256 ns: a slot has space for that.
std::uint32_t stamp_of(Nanos at) noexcept {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(at) >> 8U);
}

/// 0: it is due.
Nanos wait_until(std::uint32_t stamp, Nanos now) noexcept {
    const auto left = static_cast<std::int32_t>(stamp - stamp_of(now));
    return left <= 0 ? 0 : Nanos{left} << 8U;
}

}  // namespace

/// Marks a packet that is on the wire, retained and not marked yet. asker: group index, or
/// TxSlot::kSeveral. due: not before it.
void Sender::queue_repair(TxStream& tx, Seq seq, std::uint16_t asker, Nanos due) noexcept {
    TxSlot& slot = tx.slot(seq);
    slot.asked_by = asker;
    slot.due = stamp_of(due);
    if (tx.repairs++ == 0 || seq.before(tx.repair_from)) tx.repair_from = seq;
    tx.clear = false;
    repairing_.push_back(tx);
}

/// Returns how many packets from `first` on may be repeated now: a receiver lacks `first`, and
/// perhaps others sent behind it. Half as many when `first` was repeated without effect before,
/// twice as many when it is merely lost.
std::uint32_t Sender::may_repeat(TxStream& tx, Seq first, Nanos now) noexcept {
    const TxSlot& slot = tx.slot(first);
    if (slot.asked_by == TxSlot::kNobody) {
        if (asks_too_soon(tx, slot, false, now)) {
            context_.count(Counter::req_too_soon);
            return 0;
        }
        if (slot.transmissions <= TxSlot::kBlameless) {
            if (tx.repeats_halved > 0) --tx.repeats_halved;
        } else if (tx.window >> tx.repeats_halved > 1) {
            ++tx.repeats_halved;
        }
    }
    return tx.window >> tx.repeats_halved;
}

/// Takes the mark away.
void Sender::forget_repair(TxStream& tx, TxSlot& slot) noexcept {
    slot.asked_by = TxSlot::kNobody;
    if (--tx.repairs > 0) return;
    repairing_.remove(tx);
    tx.clear = is_clear_of_rules(tx);
}

/// Returns the stream that a frame of ours belongs to; nullptr: it is no packet of ours, or its
/// stream has ended.
TxStream* Sender::stream_of(const wire::FrameView& frame) const noexcept {
    if (frame.source != context_.config.mac) return nullptr;
    if (frame.type == wire::FrameType::kMcast || frame.type == wire::FrameType::kCounted) {
        Group* group =
            frame.rank == context_.config.rank ? sessions_.find_group(frame.handle) : nullptr;
        return group != nullptr ? group->tx.get() : nullptr;
    }
    if (frame.type != wire::FrameType::kData) return nullptr;
    for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
        if (sessions_.peer(rank).handle != frame.handle ||
            sessions_.peer(rank).mac != frame.destination)
            continue;
        if (frame.rank != sessions_.name_at(static_cast<Rank>(rank))) return nullptr;
        const Session* session = sessions_.find(rank);
        return session != nullptr ? session->tx.get() : nullptr;
    }
    return nullptr;
}

bool Sender::send_failed(const wire::FrameView& frame, Nanos now) noexcept {
    TxStream* tx = stream_of(frame);
    if (tx == nullptr) return false;
    if (!params().acknowledged) {
        ++sends_failed_;
        return true;
    }
    if (!frame.seq.in_window(tx->base, static_cast<std::uint32_t>(tx->sent - tx->base)))
        return true;
    if (tx->slot(frame.seq).asked_by == TxSlot::kNobody)
        queue_repair(*tx, frame.seq, tx->group != nullptr ? TxSlot::kSeveral : 0, now);
    return true;
}

/// Moves repair_from to the first packet that a receiver waits for. A packet that one destination
/// alone asked for, and has reported since, is forgotten: its request was long on its way. False:
/// there is none.
bool Sender::find_repair(TxStream& tx) noexcept {
    if (tx.repair_from.before(tx.base)) tx.repair_from = tx.base;
    for (; tx.repairs > 0 && tx.repair_from.before(tx.sent); ++tx.repair_from) {
        TxSlot& slot = tx.slot(tx.repair_from);
        if (slot.asked_by == TxSlot::kNobody) continue;
        const bool one = slot.asked_by < tx.members;
        if (!one || !tx.repair_from.before(tx.next[slot.asked_by])) return true;
        forget_repair(tx, slot);
    }
    return false;
}

/// Streams take turns. nullptr: nothing may go now, or there is no segment for a copy.
Segment* Sender::next_repair(Nanos now) {
    for (std::size_t streams = repairing_.size(); streams > 0; --streams) {
        TxStream& tx = *repairing_.front();
        repairing_.rotate();
        if (!find_repair(tx)) {
            repairing_.remove(tx);
            continue;
        }
        const Nanos gather = wait_until(tx.slot(tx.repair_from).due, now);
        const Nanos next = std::max(now + gather, tx.pacer.next());
        if (next > now) {
            repairing_.remove(tx);
            context_.timers.arm_by(tx.timer, next);
            continue;
        }
        return repeat(tx, tx.slot(tx.repair_from), now);
    }
    return nullptr;
}

/// Repeats a retained frame byte for byte. A group packet that one member asked for goes to that
/// member's address: rewritten in place when no other holds the frame, else copied.
Segment* Sender::repeat(TxStream& tx, TxSlot& slot, Nanos now) {
    Segment* segment = slot.segment;
    const bool several = tx.group != nullptr && slot.asked_by == TxSlot::kSeveral;
    const Mac to =
        several ? tx.group->address : sessions_.peer(tx.rank[several ? 0 : slot.asked_by]).mac;
    const bool readdress =
        reinterpret_cast<const wire::EthernetHeader*>(segment->frame)->destination != to;
    if (readdress && context_.pool.holders(segment) > 1) {
        Segment* copy = context_.control_frame();
        if (copy == nullptr) return nullptr;
        copy_frame(copy->frame, *segment);
        copy->length = segment->length;
        segment = copy;
    } else {
        context_.pool.hold(segment);
    }
    if (readdress) wire::set_destination(segment->frame, to);
    forget_repair(tx, slot);
    slot.sent_at = now;
    slot.ticket = context_.departures->next;
    slot.transmissions = static_cast<std::uint8_t>(std::min(slot.transmissions + 1, 255));
    tx.pacer.on_packet(now);
    count(several ? Counter::repair_multicast : Counter::repair_unicast);
    return segment;
}

}  // namespace ulc::urtp
