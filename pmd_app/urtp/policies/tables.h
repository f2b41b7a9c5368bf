// SPDX-License-Identifier: BSD-3-Clause
// The tables of policies, one file each; policies/registry.cc lists them.
#pragma once

#include "urtp/policy.h"
#include "urtp/sender/congestion.h"

namespace ulc::urtp {

extern const Policy kUrtp;          ///< urtp.cc: the default, every entry set
extern const Policy kUrtp1997;      ///< urtp_1997.cc
extern const Policy kGoBackN;       ///< gbn.cc
extern const Policy kAckLazy;       ///< ack_lazy.cc
extern const Policy kAckBlock;      ///< ack_block.cc
extern const Policy kAckEager;      ///< ack_eager.cc
extern const Policy kOpen;          ///< cc_open.cc
extern const Policy kAimd;          ///< cc_aimd.cc
extern const Policy kBackoff;       ///< cc_backoff.cc
extern const Policy kDelay;         ///< cc_delay.cc
extern const Policy kConservative;  ///< conservative.cc
extern const Policy kCreditPolicy;  ///< credit.cc
extern const Policy kOptimistic;    ///< optimistic.cc
extern const Policy kDetect;        ///< detect.cc
extern const Policy kPack;          ///< pack.cc
extern const Policy kP0;            ///< profiles/pcode/tables.cc
extern const Policy kP1;
extern const Policy kPcode;
extern const Policy kP0Slot;

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
