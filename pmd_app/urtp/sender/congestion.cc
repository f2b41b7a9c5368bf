// SPDX-License-Identifier: BSD-3-Clause
// Turns a controller's window, in packets, into the numbers that admission compares. A unicast
// stream is bounded by its packets under way, which acknowledgements clock; few under way need
// frequent acknowledgements, so the packets ask for them. A group's acknowledgements come each from
// another member and lag by as much as A packets, so its stream is paced at window ÷ round trip
// instead. A window below one packet paces both. Repairs are paced too, and give no sample of the
// round trip (Karn): what pauses of processes left in its mean stays while only repairs go, so 100
// ms of it count at most. A slower path shows by losses, which shrink the window to a tenth.
#include "urtp/sender/congestion.h"

#include "urtp/policies/tables.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

constexpr Nanos kPacedMost = 100 * kMillisecond;  ///< bound of the smoothed round trip

CongestionLimits congestion_limits(const Params& params, const TxStream& tx) noexcept {
    // As many as need not ask for acknowledgement, and as a group's residues take to come round.
    const auto acks = tx.group != nullptr ? tx.group->ack_modulus : params.unasked_ack_window();
    return {.most = static_cast<float>(tx.window), .first = static_cast<float>(2 * acks)};
}

/// Returns the packets that an acknowledgement is worth: in a group each destination acknowledges
/// its part of a packet.
float packets_of(const TxStream& tx, const AckNews& news) noexcept {
    const auto packets = static_cast<float>(news.packets);
    return tx.group == nullptr
               ? packets
               : packets / static_cast<float>(std::max<std::uint32_t>(1, tx.destinations));
}

void bound_stream(const Params& params, TxStream& tx, double window, Nanos now) noexcept {
    const auto srtt = static_cast<double>(std::min(tx.rtt.smoothed(), kPacedMost));
    if (tx.group != nullptr) {
        const bool full = window >= static_cast<double>(tx.window);
        tx.pacer.set_gap(full ? 0 : static_cast<Nanos>(srtt / window), now);
        return;
    }
    tx.cwnd = std::clamp(static_cast<std::uint32_t>(window), 1U, tx.window);
    tx.pacer.set_gap(window >= 1 ? 0 : static_cast<Nanos>(srtt / window), now);
    tx.wait = 0;
    tx.ask_every =
        tx.cwnd < 2 * params.unasked_ack_window() ? (tx.cwnd + 1) / 2 : TxStream::kNeverAsk;
}

}  // namespace ulc::urtp
