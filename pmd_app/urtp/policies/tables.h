// SPDX-License-Identifier: BSD-3-Clause
// The tables of policies, which policies.def lists.
#pragma once

#include "urtp/policy.h"
#include "urtp/sender/congestion.h"

namespace ulc::urtp {

#define ULC_POLICY(table) extern const Policy table;
#include "urtp/policies/policies.def"
#undef ULC_POLICY

// sender/congestion.cc, for the tables of congestion control:
/// Returns the bounds of a controller's window.
[[nodiscard]] CongestionLimits congestion_limits(const Params& params, const TxStream& tx) noexcept;
/// `window` packets may be under way from now on.
void bound_stream(const Params& params, TxStream& tx, double window, Nanos now) noexcept;
/// Returns the packets that an acknowledgement reports to a controller.
[[nodiscard]] float packets_of(const TxStream& tx, const AckNews& news) noexcept;

/// Entries of a table that wants no congestion control.
struct Uncontrolled {
    static void on_opened(Sender&, TxStream&) noexcept {}
    static void on_acked(Sender&, TxStream&, const AckNews&, Nanos) noexcept {}
    static void on_lost(Sender&, TxStream&, Seq, Nanos) noexcept {}
};

}  // namespace ulc::urtp
