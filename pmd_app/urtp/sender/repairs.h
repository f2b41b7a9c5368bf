// SPDX-License-Identifier: BSD-3-Clause
// Packets to transmit again. A packet that is asked for is marked in the stream's ring. A stream
// with marks is in the list while one of them may go, else its timer brings it back: a group's
// request waits `repair_gather` for others of the same packet. Repairs share the stream's pacer
// with new packets, since packets lost to a full queue must not fill it again.
#pragma once

#include <utility>

#include "base/tables/list.h"
#include "urtp/context.h"
#include "urtp/sender/stream_tx.h"

namespace ulc::urtp {

class Sessions;

class Repairs {
public:
    Repairs(Context& context, const Sessions& sessions) noexcept  ///< both outlive this
        : context_(context), sessions_(sessions) {}

    [[nodiscard]] bool empty() const noexcept { return list_.empty(); }  ///< none may go now
    [[nodiscard]] bool holds(const TxStream& tx) const noexcept { return list_.holds(tx); }
    /// Marks a packet that is on the wire, retained and not marked yet. asker: group index, or
    /// TxSlot::kSeveral. due: not before it.
    void queue(TxStream& tx, Seq seq, std::uint16_t asker, Nanos due) noexcept;
    /// Marks a packet for all members, if it is not marked and not asked for too soon.
    void queue_for_all(TxStream& tx, Seq seq, Nanos now) noexcept;
    /// Returns whether a request for a packet comes too early: the packet is not off the wire for δ
    /// yet, or its repair is on the way, be it in the port or since it left that. No repair waits.
    /// overtaken: the receiver has heard of packets sent after it, so it is not on its way, however
    /// short a time ago it left.
    [[nodiscard]] bool asks_too_soon(const TxStream& tx, const TxSlot& slot, bool overtaken,
                                     Nanos now) const noexcept;
    /// Returns how many packets from `first` on may be repeated now: a receiver lacks `first`, and
    /// perhaps others sent behind it. Half as many when `first` was repeated without effect before,
    /// twice as many when it is merely lost.
    std::uint32_t may_repeat(TxStream& tx, Seq first, Nanos now) noexcept;
    /// Takes the mark away.
    void forget(TxStream& tx, TxSlot& slot) noexcept;
    /// The stream's timer fired: its repairs may go.
    void resume(TxStream& tx) noexcept {
        if (tx.repairs > 0) list_.add(tx);
    }
    void remove(TxStream& tx) noexcept { list_.remove(tx); }  ///< it ends
    struct Repeated {
        TxStream* stream = nullptr;
        Seq seq;
    };
    /// Streams take turns. nullptr: nothing may go now, or there is no segment for a copy.
    /// repeated: set to the packet that is returned.
    Segment* next(Nanos now, Repeated* repeated = nullptr);
    /// A packet above mtu_sure does not reach a destination, though it is sent again and again. A
    /// destination that lives takes shorter ones, or it would not ask.
    [[nodiscard]] bool has_narrow() const noexcept { return narrow_ != kNoRank; }
    /// Returns that destination, once; kNoRank: none.
    [[nodiscard]] Rank take_narrow() noexcept { return std::exchange(narrow_, kNoRank); }
    static constexpr std::uint8_t kNarrowAfter = 48;  ///< transmissions, and as many more each time

    void fields(state::Archive& archive);  ///< urtp/state/, after the streams were made

private:
    bool find(TxStream& tx) noexcept;
    Segment* repeat(TxStream& tx, TxSlot& slot, Nanos now);
    void note_narrow(const TxStream& tx, const TxSlot& slot) noexcept;

    Context& context_;
    const Sessions& sessions_;
    List<TxStream, &TxStream::repair_link> list_;
    Rank narrow_ = kNoRank;
};

}  // namespace ulc::urtp
