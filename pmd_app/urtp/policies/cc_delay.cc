// SPDX-License-Identifier: BSD-3-Clause
// Congestion by delay (congestion.h, DelayBased).
#include "urtp/policies/tables.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

void on_opened(Sender& sender, TxStream& tx) noexcept {
    const CongestionLimits limits = congestion_limits(sender.params(), tx);
    bound_stream(sender.params(), tx, tx.congestion.emplace<DelayBased>(limits).window(), 0);
}

void on_acked(Sender& sender, TxStream& tx, const AckNews& news, Nanos now) noexcept {
    auto& control = std::get<DelayBased>(tx.congestion);
    const float before = control.window();
    control.on_acked(packets_of(tx, news), news.rtt, tx.may_cut(now));
    if (control.window() < before) tx.cut_at = now;
    bound_stream(sender.params(), tx, control.window(), now);
}

void on_lost(Sender& sender, TxStream& tx, Seq, Nanos now) noexcept {
    auto& control = std::get<DelayBased>(tx.congestion);
    const float before = control.window();
    control.on_lost(tx.may_cut(now));
    if (control.window() < before) tx.cut_at = now;
    bound_stream(sender.params(), tx, control.window(), now);
}

}  // namespace

const Policy kDelay = {
    .word = "delay",
    .help = "congestion control by round-trip time",
    .on_opened = on_opened,
    .on_acked = on_acked,
    .on_lost = on_lost,
};

}  // namespace ulc::urtp
