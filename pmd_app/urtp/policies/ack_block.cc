// SPDX-License-Identifier: BSD-3-Clause
// Block acknowledgement (Brown, Gouda and Miller 1989, as URTP §3.1 uses it): one for every
// AckWindow packets, by every receiver, and none by time. The tail waits for the sender's question.
// In a group each member acknowledges every block, so the source gets members ÷ AckWindow a packet.
#include <algorithm>

#include "urtp/policies/tables.h"
#include "urtp/receiver/stream_rx.h"

namespace ulc::urtp {

namespace {

void tune(Params& params) noexcept { params.ack_delay = kNever; }

Seq next_ack(const RxStream& rx, std::uint32_t credit, const Params& params) noexcept {
    return rx.next + std::min(params.ack_window, std::max(1U, credit / 2));
}

}  // namespace

const Policy kAckBlock = {
    .word = "block",
    .help = "acknowledges every AckWindow packets, in groups too (URTP)",
    .tune = tune,
    .next_ack = next_ack,
};

}  // namespace ulc::urtp
