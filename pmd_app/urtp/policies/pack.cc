// SPDX-License-Identifier: BSD-3-Clause
// Packing: short messages that wait behind each other for the same destination share a packet
// (Horus, PCODE §6.4.2). Nothing is delayed for it. The send queue packs, and delivery unpacks:
// endpoint/send_queue.h, endpoint/outlet.h. The transport sees longer packets.
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

void tune(Params& params) noexcept { params.packs = true; }

}  // namespace

const Policy kPack = {
    .word = "pack",
    .help = "short messages that wait for one destination share a packet (Horus)",
    .tune = tune,
};

}  // namespace ulc::urtp
