// Room of the receiver's pool that is kept for one stream: what the flow-control policies conservative, optimistic and credit
// have in common. Receiver::keep() counts the free nodes that are promised to somebody:
//
//   slots     a fixed share of each stream (NX/2's short message slots, GAMMA's preallocated room), set when it is made
//   granted   numbers for which the source asked (RESERVE) and that were promised a node each (GRANT)
//
//   source                           receiver
//     │  RESERVE first, count ─────────▶│  as many nodes as are free and not kept are kept for these numbers
//     │◀───────── GRANT first, count    │  now, or when room returns
//     │  DATA ─────────────────────────▶│  each number takes its node
//     │◀───────── REFUSE first, count   │  (optimistic) came unasked and found no room
//
// A GRANT tells all that is granted so far, so a repeated RESERVE is answered alike and any of the frames may be lost: the
// source's tail timer asks again.
#pragma once

#include <cstdint>

#include "urtp/receiver/receiver.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp::room {

/// Conservative and optimistic: their networks lose nothing, so a sender's own questions are only for what ours loses.
inline constexpr Nanos kTailWaitMin = 2 * kMillisecond;

/// Rations the stream and gives it its slots, as far as the pool allows. Policy::on_stream.
void give_slots(Receiver& receiver, RxStream& rx) noexcept;
/// By grant or slot. Policy::may_hold.
[[nodiscard]] bool by_grant_or_slot(Receiver& receiver, RxStream& rx, Seq seq, bool& slot) noexcept;
/// By grant alone: takes the node that was kept for this number.
[[nodiscard]] bool by_grant(Receiver& receiver, RxStream& rx, Seq seq) noexcept;
/// Numbers that find room: granted ones and free slots; at least the source's reserved packet. Policy::credit.
[[nodiscard]] std::uint32_t kept_for(Receiver& receiver, RxStream& rx) noexcept;

/// Asks for the numbers from `first` on that hold `octets`. at: a destination, or TxSlot::kSeveral for all.
void ask(Sender& sender, TxStream& tx, Seq first, std::uint32_t count, std::uint32_t at) noexcept;
/// Packets of that many octets, at most a window.
[[nodiscard]] std::uint32_t packets(const Sender& sender, const TxStream& tx,
                                    std::uint64_t octets) noexcept;
/// Every destination has room for the next number; else asks. Policy::may_start.
[[nodiscard]] bool may_start(Sender& sender, TxStream& tx, std::uint64_t left, Nanos now) noexcept;
/// Asks again for what is wanted, and for news of the tail. Policy::on_tail.
void on_tail(Sender& sender, TxStream& tx, Nanos now);

/// RESERVE. Policy::on_reserve. GRANT and REFUSE. Policy::on_flow. Numbers outside the windows are
/// counted (drop_ack_range) and dropped.
void on_reserve(Receiver& receiver, const wire::FlowBody& body, Session& session) noexcept;
void on_flow(Sender& sender, const wire::FlowBody& body, Session& session, Nanos now) noexcept;
/// A node became free: for the longest starved source's reservation, else as news of room. Policy::on_room.
void on_room(Receiver& receiver, Nanos now) noexcept;
/// Grants to the source that waited longest. True: it still waits.
bool grant_waiting(Receiver& receiver, Session& session) noexcept;

}  // namespace ulc::urtp::room
