// SPDX-License-Identifier: BSD-3-Clause
// Conservative flow control, as in NX/2 (Express §2.1): a sender sends only if it knows of space.
// Each stream has a few slots at its receiver, which short messages take at once. A longer message
// first reserves space by a short one (RESERVE), and follows when it is granted. So nothing is ever
// dropped for lack of memory, at three messages for each long one.
//
// A slot is a packet's node here, not 100 bytes; the threshold is the paper's. A multicast reserves
// at every member. Loss, which NX/2's network does not have, is repaired as in the default profile.
#include <algorithm>

#include "urtp/policies/room.h"
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

constexpr std::uint32_t kSlots = 8;             ///< slots of a stream; the paper gives no number
constexpr std::uint64_t kShortOctetsMax = 100;  ///< Express §2.1

void tune(Params& params) noexcept {
    params.source_packets = std::clamp(params.rx_pool_packets / 16, 1U, kSlots);
    params.reserve_above = kShortOctetsMax;
    params.min_send_wait = std::max(params.min_send_wait, kept_room::kTailWaitMin);
}

}  // namespace

const Policy kConservative = {
    .word = "conservative",
    .help = "short messages to slots, others reserve space first (NX/2)",
    .tune = tune,
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
