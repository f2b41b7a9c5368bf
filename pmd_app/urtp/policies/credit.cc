// SPDX-License-Identifier: BSD-3-Clause
// Credit flow control, as in GAMMA and its MPI (GAMMA §7.1, §7.3.2): each receiver has separate
// space for every sender, and a sender may fill it without asking. The receiver sends nothing by
// itself: the packet that leaves half of the credit, or none, asks for more, and the answer renews
// it. So nothing is dropped for lack of memory, and a receiver answers twice a credit.
//
// GAMMA gives credit in bytes for each sender; here it is packets for each stream. Flow control is
// not reliability there; loss is repaired as in the default profile. A message longer than 30000
// bytes synchronises first (rendezvous).
#include <algorithm>

#include "urtp/policies/room.h"
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

constexpr std::uint32_t kCredit = 32;  ///< packets of a stream; GAMMA gives no N

void tune(Params& params) noexcept {
    params.source_packets = std::clamp(params.rx_pool_packets / 16, 1U, kCredit);
    params.credit_request = true;
    params.reserve_above = 30000;  // GAMMA §7.3.2
    params.ack_delay = kNever;
}

/// Only on request.
Seq next_ack(const RxStream& rx, std::uint32_t, const Params&) noexcept {
    return rx.next + INT32_MAX;
}

}  // namespace

const Policy kCreditPolicy = {
    .word = "credit",
    .help = "a fixed credit for each stream, renewed on request (GAMMA)",
    .tune = tune,
    .next_ack = next_ack,
    .credit = kept_room::kept_for,
    .on_stream = kept_room::give_slots,
    .may_hold = kept_room::by_grant_or_slot,
    .on_room = kept_room::on_room,
    .on_reserve = kept_room::on_reserve,
    .on_tail = kept_room::on_tail,
    .may_start = kept_room::may_start,
    .on_flow = kept_room::on_flow,
    .on_opened = Uncontrolled::on_opened,
    .on_acked = Uncontrolled::on_acked,
    .on_lost = Uncontrolled::on_lost,
};

}  // namespace ulc::urtp
