// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/sender/repairs.h"

#include <algorithm>
#include <cstring>

#include "urtp/sessions.h"

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

void Repairs::queue(TxStream& tx, Seq seq, std::uint16_t asker, Nanos due) noexcept {
    TxSlot& slot = tx.slot(seq);
    slot.asked_by = asker;
    slot.due = stamp_of(due);
    if (tx.repairs++ == 0 || seq.before(tx.repair_from)) tx.repair_from = seq;
    tx.clear = false;
    list_.add(tx);
}

void Repairs::queue_for_all(TxStream& tx, Seq seq, Nanos now) noexcept {
    const TxSlot& slot = tx.slot(seq);
    if (slot.asked_by != TxSlot::kNobody) return;
    if (asks_too_soon(tx, slot, false, now)) {
        context_.count(Counter::req_too_soon);
        return;
    }
    queue(tx, seq, TxSlot::kSeveral, now);
}

bool Repairs::asks_too_soon(const TxStream& tx, const TxSlot& slot, bool overtaken,
                            Nanos now) const noexcept {
    const Params& p = context_.params();
    const Nanos srtt = tx.rtt.smoothed();
    const Nanos gap = p.timed_by_rtt ? std::min(p.min_req_gap, srtt / 2) : p.min_req_gap;
    const Nanos left_at = context_.departures->left_at(slot.ticket);
    // Some devices report in batches, the last of which may stay unfinished.
    if (left_at == kNever) return now - slot.sent_at < p.max_send_wait;
    if (!overtaken && now - std::max(slot.sent_at, left_at) < gap) return true;
    if (!p.timed_by_rtt || slot.transmissions <= 1) return false;
    Nanos wait = srtt - srtt / 4;
    if (slot.transmissions > TxSlot::kTriesBeforeBackOff && tx.backs_off) {
        wait <<= std::min(slot.transmissions - TxSlot::kTriesBeforeBackOff, 20);
        wait = std::min(wait, std::max(srtt, p.max_send_wait / 2));
    }
    return now - std::max(slot.sent_at, left_at) < wait;
}

std::uint32_t Repairs::may_repeat(TxStream& tx, Seq first, Nanos now) noexcept {
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

void Repairs::forget(TxStream& tx, TxSlot& slot) noexcept {
    slot.asked_by = TxSlot::kNobody;
    if (--tx.repairs > 0) return;
    list_.remove(tx);
    tx.renew_clear();
}

/// Moves repair_from to the first packet that a receiver waits for. A packet that one destination
/// alone asked for, and has reported since, is forgotten: its request was long on its way. False:
/// there is none.
bool Repairs::find(TxStream& tx) noexcept {
    if (tx.repair_from.before(tx.base)) tx.repair_from = tx.base;
    for (; tx.repairs > 0 && tx.repair_from.before(tx.sent); ++tx.repair_from) {
        TxSlot& slot = tx.slot(tx.repair_from);
        if (slot.asked_by == TxSlot::kNobody) continue;
        const bool one = slot.asked_by < tx.members;
        if (!one || !tx.repair_from.before(tx.next[slot.asked_by])) return true;
        forget(tx, slot);
    }
    return false;
}

Segment* Repairs::next(Nanos now, Repeated* repeated) {
    for (std::size_t streams = list_.size(); streams > 0; --streams) {
        TxStream& tx = *list_.front();
        list_.rotate();
        if (!find(tx)) {
            list_.remove(tx);
            continue;
        }
        const Nanos gather = wait_until(tx.slot(tx.repair_from).due, now);
        const Nanos next = std::max(now + gather, tx.pacer.next());
        if (next > now) {
            list_.remove(tx);
            context_.timers.arm_by(tx.timer, next);
            continue;
        }
        if (repeated != nullptr) *repeated = {&tx, tx.repair_from};
        return repeat(tx, tx.slot(tx.repair_from), now);
    }
    return nullptr;
}

/// Names a destination that lacks the packet, if it is one whose length a path may refuse.
// PCODE has no credit: a receiver drops what it has no space for, however often it comes.
void Repairs::note_narrow(const TxStream& tx, const TxSlot& slot) noexcept {
    if (tx.group != nullptr && tx.group->counted) return;
    if (slot.segment->length <= sizeof(wire::EthernetHeader) + context_.config.mtu_sure) return;
    for (std::uint32_t at = 0; at < tx.members; ++at)
        if (tx.is_destination(at) && !tx.repair_from.before(tx.next[at])) narrow_ = tx.rank[at];
}

/// Repeats a retained frame byte for byte. A group packet that one member asked for goes to that
/// member's address: rewritten in place when no other holds the frame, else copied.
Segment* Repairs::repeat(TxStream& tx, TxSlot& slot, Nanos now) {
    Segment* segment = slot.segment;
    const bool several = tx.group != nullptr && slot.asked_by == TxSlot::kSeveral;
    const Rank rank = tx.rank[several ? 0 : slot.asked_by];
    const Mac to = several ? tx.group->address : sessions_.peer(rank).mac;
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
    forget(tx, slot);
    slot.sent_at = now;
    slot.ticket = context_.departures->next;
    slot.transmissions = static_cast<std::uint8_t>(std::min(slot.transmissions + 1, 255));
    if (slot.transmissions % kNarrowAfter == 0) [[unlikely]]
        note_narrow(tx, slot);
    tx.pacer.on_packet(now);
    context_.count(several ? Counter::repair_multicast : Counter::repair_unicast);
    Session* peer = several ? nullptr : sessions_.find(rank);
    context_.count_repair(peer != nullptr ? &peer->counts : nullptr, &RepairCounts::repairs_sent);
    return segment;
}

}  // namespace ulc::urtp
