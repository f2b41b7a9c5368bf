// SPDX-License-Identifier: BSD-3-Clause
// Eager acknowledgement: every packet, by every receiver, at once (U-Net MPI §5.1 names it for
// producers and consumers). The sender is notified soonest, and in a group by each member for each
// packet.
#include "urtp/policies/tables.h"
#include "urtp/receiver/stream_rx.h"

namespace ulc::urtp {

namespace {

Seq next_ack(const RxStream& rx, std::uint32_t, const Params&) noexcept { return rx.next + 1; }

}  // namespace

const Policy kAckEager = {
    .word = "eager",
    .help = "acknowledges every packet at once",
    .next_ack = next_ack,
};

}  // namespace ulc::urtp
