// SPDX-License-Identifier: BSD-3-Clause
// A new packet that is a whole short message: may_send(), plan(), commit() and next_new() in one
// function. Everything is decided before the first store. A message that any rule of the general
// path has a say in goes there, with nothing changed. Both give the same bytes. Inline, for fast.cc
// and urtp/fast.h.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/copy_short.h"
#include "urtp/receiver/told.h"
#include "urtp/sender/acknowledged.h"

namespace ulc::urtp {

/// Window, credit and congestion admit the next packet, and no other rule has a say in it.
[[gnu::always_inline]] inline bool is_clear(const TxStream& tx, Nanos now) noexcept {
    return tx.has_room() && tx.pacer.next() <= now && tx.clear;
}

/// The next packet would be the only one on its way, at once, and would name no other stream.
[[gnu::always_inline]] inline bool Sender::may_pass(const TxStream& tx, Nanos now) const noexcept {
    return tx.freed == tx.tail && is_clear(tx, now) && tx.pacer.gap() == 0 &&
           active_groups_.empty();
}

/// No stream is under way that a packet of this one may have to name (§5).
[[gnu::always_inline]] inline bool Sender::is_alone(const TxStream& tx) const noexcept {
    if (!tx.is_to_group()) return active_groups_.empty();
    const bool only =
        active_groups_.empty() || (active_groups_.size() == 1 && active_groups_.front() == &tx);
    return only && active_unicast_.empty();
}

/// Returns whether the general path would admit a packet, a group's to all members, with no
/// extension that the fast path does not write. False: it decides.
[[gnu::always_inline]] inline bool Sender::admits_short(const TxStream& tx,
                                                        Nanos now) const noexcept {
    const FrameShare* share = context_.config.send_frames;
    return is_clear(tx, now) && is_alone(tx) && (share == nullptr || share->may_take());
}

/// Writes the frame, as plan() and commit() would.
[[gnu::always_inline]] inline void Sender::build_short(const TxPrediction& of,
                                                       const ShortMessage& message, bool asks,
                                                       Segment& segment, Nanos now) noexcept {
    std::byte* frame = segment.frame;
    std::uint8_t flags = wire::kFlagFirst | wire::kFlagLast | (asks ? wire::kFlagAckNow : 0);
    std::byte* at = frame + wire::kHeadOctets;
    std::memset(at, 0, wire::kFrameOctetsMin - wire::kHeadOctets);  // what stays is the padding
    auto& head = *reinterpret_cast<wire::Head*>(frame);
    head = of.head;
    auto& ack = *reinterpret_cast<wire::AckEntry*>(at);
    if (of.session != nullptr && receiver_.piggyback_next(*of.session, of.whole_credit, ack, now)) {
        flags |= wire::kFlagAck;
        at += sizeof ack;
    }
    if (message.has_tag) {
        const Be64 tag = message.tag;
        flags |= wire::kFlagTag;
        std::memcpy(at, &tag, sizeof tag);
        at += sizeof tag;
    }
    head.header.flags = flags;
    head.header.length = static_cast<std::uint16_t>(message.octets);
    head.header.seq = of.tx->tail.value;
    if (message.octets <= kCopyShortMax) [[likely]] {
        copy_short(at, message.payload, message.octets);
    } else {
        ULC_CHECK(message.octets <= short_octets_max_);
        std::memcpy(at, message.payload, message.octets);
    }
    at += message.octets;
    segment.length = std::max(static_cast<std::uint32_t>(wire::kFrameOctetsMin),
                              static_cast<std::uint32_t>(at - frame));
    draft_.stream = nullptr;
}

inline TxPrediction Sender::predict(Session& session) const noexcept {
    TxPrediction out{{}, receiver_.grants_whole_window(session), &session, session.tx.get()};
    sessions_.write_head(session.rank, out.head);
    return out;
}

inline TxPrediction Sender::predict(const Group& group) const noexcept {
    return {sessions_.head_of(*group.tx), false, nullptr, group.tx.get()};
}

/// Makes the frame of a short message. Returns nullptr, with nothing changed, if the general path
/// decides. asks: is set then.
[[gnu::always_inline]] inline Segment* Sender::make_next(const TxPrediction& prediction,
                                                         const ShortMessage& message, bool& asks,
                                                         Nanos now) noexcept {
    const TxStream& tx = *prediction.tx;
    Segment* segment = admits_short(tx, now) ? context_.pool.get() : nullptr;
    if (segment == nullptr) return nullptr;
    asks = tx.asks();
    build_short(prediction, message, asks, *segment, now);
    return segment;
}

/// The transport has no other frame to transmit.
[[gnu::always_inline]] inline Segment* Sender::transmit_next(const TxPrediction& prediction,
                                                             const ShortMessage& message,
                                                             Nanos now) noexcept {
    bool asks = false;
    Segment* segment = make_next(prediction, message, asks, now);
    if (segment != nullptr) keep_sent(*prediction.tx, segment, asks, now);
    return segment;
}

/// Retains a packet that goes to the port now, by a second reference.
[[gnu::always_inline]] inline void Sender::keep_sent(TxStream& tx, Segment* segment, bool asks,
                                                     Nanos now) noexcept {
    (void)take_slot(tx, segment, asks, now, true);
    ++tx.sent;
    if (tx.probe_wait == 0) tail_wait_.restart(tx, now);
    context_.pool.hold(segment);
    context_.count(Counter::data_sent);
    (void)control_.end_run();
}

}  // namespace ulc::urtp
