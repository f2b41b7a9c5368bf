// Packets to transmit again. What is asked for is marked in the stream's ring; a stream with marks is in `repairing_` while one
// of them may go, else its timer brings it back: a group's request waits `repair_gather` for others of the same packet, and
// repairs share the stream's pacer with new packets, since what was lost to a full queue must not fill it again.
#include <algorithm>
#include <cstring>

#include "urtp/impl.h"

namespace ulc::urtp {

namespace {

/// Times within a second or so, in units of 256 ns: room for them is left in a slot.
std::uint32_t stamp_of(Nanos at) noexcept {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(at) >> 8U);
}

/// 0: it is due.
Nanos wait_until(std::uint32_t stamp, Nanos now) noexcept {
    const auto left = static_cast<std::int32_t>(stamp - stamp_of(now));
    return left <= 0 ? 0 : Nanos{left} << 8U;
}

}  // namespace

/// The packet is on the wire, retained and not marked yet. asker: group index, or TxSlot::kSeveral. due: not before it.
void Member::Impl::queue_repair(TxStream& tx, Seq seq, std::uint16_t asker, Nanos due) noexcept {
    TxSlot& slot = tx.slot(seq);
    slot.asked_by = asker;
    slot.due = stamp_of(due);
    if (tx.repairs++ == 0 || seq.before(tx.repair_from)) tx.repair_from = seq;
    repairing_.push_back(tx);
}

/// Somebody lacks `first`, and perhaps what was sent behind it: how many packets from there on may be repeated now. Half as many when
/// `first` was repeated in vain before, twice as many when it is merely lost.
std::uint32_t Member::Impl::may_repeat(TxStream& tx, Seq first, Nanos now) noexcept {
    const TxSlot& slot = tx.slot(first);
    if (slot.asked_by == TxSlot::kNobody) {
        if (asks_too_soon(tx, slot, false, now)) {
            count(Counter::req_too_soon);
            return 0;
        }
        if (slot.transmissions <= kBlameless) {
            tx.repeats_halved -= tx.repeats_halved > 0 ? 1 : 0;
        } else if (tx.window >> tx.repeats_halved > 1) {
            ++tx.repeats_halved;
        }
    }
    return tx.window >> tx.repeats_halved;
}

/// Takes the mark away.
void Member::Impl::forget_repair(TxStream& tx, TxSlot& slot) noexcept {
    slot.asked_by = TxSlot::kNobody;
    if (--tx.repairs == 0) repairing_.remove(tx);
}

/// The stream that a frame of ours belongs to; nullptr: it is no packet of ours, or its stream has ended.
TxStream* Member::Impl::stream_of(const wire::FrameView& frame) noexcept {
    if (frame.source != config_.mac) return nullptr;
    if (frame.type == wire::FrameType::kMcast || frame.type == wire::FrameType::kCounted) {
        Group* group = frame.rank == config_.rank ? find_group(frame.handle) : nullptr;
        return group != nullptr ? group->tx.get() : nullptr;
    }
    if (frame.type != wire::FrameType::kData) return nullptr;
    for (std::size_t rank = 0; rank < roster_.size(); ++rank) {
        if (roster_[rank].handle != frame.handle || roster_[rank].mac != frame.destination)
            continue;
        if (frame.rank != name_at(static_cast<Rank>(rank))) return nullptr;
        const Session* session = sessions_[rank].get();
        return session != nullptr ? session->tx.get() : nullptr;
    }
    return nullptr;
}

bool Member::Impl::send_failed(const wire::FrameView& frame, Nanos now) noexcept {
    TxStream* tx = stream_of(frame);
    if (tx == nullptr) return false;
    if (config_.params.detect_only) {
        ++sends_failed_;
        return true;
    }
    if (!frame.seq.in_window(tx->base, static_cast<std::uint32_t>(tx->sent - tx->base)))
        return true;
    if (tx->slot(frame.seq).asked_by == TxSlot::kNobody)
        queue_repair(*tx, frame.seq, tx->group != nullptr ? TxSlot::kSeveral : 0, now);
    return true;
}

/// Moves repair_from to the first packet that somebody waits for. What one destination alone asked for, and has said since that it
/// has, is forgotten: a request that was long on its way asks in vain. False: there is none.
bool Member::Impl::find_repair(TxStream& tx) noexcept {
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
Segment* Member::Impl::send_repair(Nanos now) {
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
            timers_.arm_by(tx.timer, next);
            continue;
        }
        return repeat(tx, tx.slot(tx.repair_from), now);
    }
    return nullptr;
}

/// Repeats a retained frame byte for byte. A group packet that one member asked for goes to that member's
/// address: rewritten in place when nobody else holds the frame, else copied.
Segment* Member::Impl::repeat(TxStream& tx, TxSlot& slot, Nanos now) {
    Segment* segment = slot.segment;
    const bool several = tx.group != nullptr && slot.asked_by == TxSlot::kSeveral;
    const Mac to = several ? tx.group->address : roster_[tx.rank[several ? 0 : slot.asked_by]].mac;
    const bool readdress =
        reinterpret_cast<const wire::EthernetHeader*>(segment->frame)->destination != to;
    if (readdress && pool_.holders(segment) > 1) {
        Segment* copy = control_frame();
        if (copy == nullptr) return nullptr;
        copy_frame(copy->frame, *segment);
        copy->length = segment->length;
        segment = copy;
    } else {
        pool_.hold(segment);
    }
    if (readdress) wire::set_destination(segment->frame, to);
    forget_repair(tx, slot);
    slot.sent_at = now;
    slot.ticket = departures_->next;
    slot.transmissions = static_cast<std::uint8_t>(std::min(slot.transmissions + 1, 255));
    tx.pacer.on_packet(now);
    count(several ? Counter::repair_multicast : Counter::repair_unicast);
    return segment;
}

}  // namespace ulc::urtp
