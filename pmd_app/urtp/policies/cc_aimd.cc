// SPDX-License-Identifier: BSD-3-Clause
// Congestion by loss (congestion.h, LossBased).
#include "urtp/policies/tables.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

void on_opened(Sender& sender, TxStream& tx) noexcept {
    const CongestionLimits limits = congestion_limits(sender.params(), tx);
    bound_stream(sender.params(), tx, tx.congestion.emplace<LossBased>(limits).window(), 0);
}

void on_acked(Sender& sender, TxStream& tx, const AckNews& news, Nanos now) noexcept {
    auto& control = std::get<LossBased>(tx.congestion);
    control.on_acked(packets_of(tx, news));
    bound_stream(sender.params(), tx, control.window(), now);
}

void on_lost(Sender& sender, TxStream& tx, Seq, Nanos now) noexcept {
    auto& control = std::get<LossBased>(tx.congestion);
    const bool may = tx.may_cut(now);
    control.on_lost(may);
    if (may) tx.cut_at = now;
    bound_stream(sender.params(), tx, control.window(), now);
}

}  // namespace

const Policy kAimd = {
    .word = "aimd",
    .help = "congestion control by loss",
    .on_opened = on_opened,
    .on_acked = on_acked,
    .on_lost = on_lost,
};

}  // namespace ulc::urtp
