// SPDX-License-Identifier: BSD-3-Clause
// Space of the receiver's pool that is reserved for one stream: the common part of the flow-control
// policies conservative, optimistic and credit. RxRoom::keep() counts the free nodes that are
// promised:
//
//   slots     a fixed share of each stream (NX/2's short message slots, GAMMA's preallocated
//             space), set when it is made
//   granted   numbers for which the source asked (RESERVE) and that were promised a node each
//             (GRANT)
//
//   source                           receiver
//     │  RESERVE first, count ─────────▶│  as many nodes as are free are reserved for these numbers
//     │◀───────── GRANT first, count    │  at once, or when space returns
//     │  DATA ─────────────────────────▶│  each number takes its node
//     │◀───────── REFUSE first, count   │  (optimistic) came unasked and found no space
//
// A GRANT reports everything granted until then, so a repeated RESERVE gets the same answer and any
// of the frames may be lost: the source's tail timer asks again.
#pragma once

#include <cstdint>

#include "urtp/receiver/receiver.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp::kept_room {

/// For conservative and optimistic: their networks lose nothing, so a sender's own questions only
/// handle losses of ours.
inline constexpr Nanos kTailWaitMin = 2 * kMillisecond;

/// Rations the stream and gives it its slots, as far as the pool allows. Policy::on_stream.
void give_slots(Receiver& receiver, RxStream& rx) noexcept;
/// Decides by grant or slot. Policy::may_hold.
[[nodiscard]] bool by_grant_or_slot(Receiver& receiver, RxStream& rx, Seq seq, bool& slot) noexcept;
/// Decides by grant alone: takes the node that was reserved for this number.
[[nodiscard]] bool by_grant(Receiver& receiver, RxStream& rx, Seq seq) noexcept;
/// Returns the numbers that find space: granted ones and free slots; at least the source's reserved
/// packet. Policy::credit.
[[nodiscard]] std::uint32_t kept_for(Receiver& receiver, RxStream& rx) noexcept;

/// Asks for the numbers from `first` on that hold `octets`. `at`: a destination, or
/// TxSlot::kSeveral for all.
void ask(Sender& sender, TxStream& tx, Seq first, std::uint32_t count, std::uint32_t at) noexcept;
/// Returns the packets of that number of bytes, at most a window.
[[nodiscard]] std::uint32_t packets(const Sender& sender, const TxStream& tx,
                                    std::uint64_t octets) noexcept;
/// Returns true if every destination has space for the next number; else asks. Policy::may_start.
[[nodiscard]] bool may_start(Sender& sender, TxStream& tx, std::uint64_t left, Nanos now) noexcept;
/// Asks again for the wanted numbers, and for news of the tail. Policy::on_tail.
void on_tail(Sender& sender, TxStream& tx, Nanos now);

/// Handles RESERVE. Policy::on_reserve. GRANT and REFUSE. Policy::on_flow. Numbers outside the
/// windows are counted (drop_ack_range) and dropped.
void on_reserve(Receiver& receiver, const wire::FlowBody& body, Session& session) noexcept;
void on_flow(Sender& sender, const wire::FlowBody& body, Session& session, Nanos now) noexcept;
/// Gives a freed node to the reservation of the longest starved source, else announces space.
/// Policy::on_room.
void on_room(Receiver& receiver, Nanos now) noexcept;
/// Grants to the source that waited longest. Returns true if it still waits.
bool grant_waiting(Receiver& receiver, Session& session) noexcept;

}  // namespace ulc::urtp::kept_room
