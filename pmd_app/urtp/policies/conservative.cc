// Conservative flow control, as NX/2 does it (Express §2.1): a sender goes only where it knows of room. Each stream has a few
// slots at its receiver, which short messages take at once; a longer message first reserves room by a short one (RESERVE), and
// follows when it is granted. So nothing is ever dropped for want of memory, at three messages for each long one.
//
// A slot is a packet's node here, not 100 octets; the threshold is the paper's. A multicast reserves at every member. Loss, which
// NX/2's network does not have, is repaired as in the default profile.
#include <algorithm>

#include "urtp/policies/room.h"
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

constexpr std::uint32_t kSlots = 8;             ///< of a stream; the paper gives no number
constexpr std::uint64_t kShortOctetsMax = 100;  ///< Express §2.1

void tune(Params& params) noexcept {
    params.source_packets = std::clamp(params.rx_pool_packets / 16, 1U, kSlots);
    params.reserve_above = kShortOctetsMax;
    params.min_send_wait = std::max(params.min_send_wait, room::kTailWaitMin);
}

}  // namespace

const Policy kConservative = {
    .word = "conservative",
    .help = "short messages to slots, others reserve room first (NX/2)",
    .tune = tune,
    .credit = room::kept_for,
    .on_stream = room::give_slots,
    .may_hold = room::by_grant_or_slot,
    .on_room = room::on_room,
    .on_reserve = room::on_reserve,
    .on_tail = room::on_tail,
    .may_start = room::may_start,
    .on_flow = room::on_flow,
    .on_opened = Uncontrolled::on_opened,
    .on_acked = Uncontrolled::on_acked,
    .on_lost = Uncontrolled::on_lost,
};

}  // namespace ulc::urtp
