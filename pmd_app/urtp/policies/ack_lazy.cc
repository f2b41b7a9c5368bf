// SPDX-License-Identifier: BSD-3-Clause
// Lazy acknowledgement (U-Net MPI §5.1): only piggybacked on reverse data. A duplicate, a packet
// out of order or the sender's question is answered at once. Good for exchanges, bad for one-way
// traffic: there the sender's window fills, and only its timer opens it.
#include "urtp/policies/tables.h"
#include "urtp/receiver/stream_rx.h"

namespace ulc::urtp {

namespace {

void tune(Params& params) noexcept { params.ack_delay = kNever; }

/// Never by count: half the number space is further than any window.
Seq next_ack(const RxStream& rx, std::uint32_t, const Params&) noexcept {
    return rx.next + INT32_MAX;
}

}  // namespace

const Policy kAckLazy = {
    .word = "lazy",
    .help = "acknowledges on data of the other direction only (U-Net MPI)",
    .tune = tune,
    .next_ack = next_ack,
};

}  // namespace ulc::urtp
