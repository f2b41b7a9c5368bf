// SPDX-License-Identifier: BSD-3-Clause
// The default: congestion by loss, unless the delay denies it (congestion.h, AdaptiveBackoff).
#include "urtp/policies/tables.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

void on_opened(Sender& sender, TxStream& tx) noexcept {
    const CongestionLimits limits = congestion_limits(sender.params(), tx);
    bound_stream(sender.params(), tx, tx.congestion.emplace<AdaptiveBackoff>(limits).window(), 0);
}

void on_acked(Sender& sender, TxStream& tx, const AckNews& news, Nanos now) noexcept {
    auto& control = std::get<AdaptiveBackoff>(tx.congestion);
    if (control.on_acked(packets_of(tx, news), news.rtt))
        bound_stream(sender.params(), tx, control.window(), now);
}

void on_lost(Sender& sender, TxStream& tx, Seq, Nanos now) noexcept {
    auto& control = std::get<AdaptiveBackoff>(tx.congestion);
    const bool may = tx.may_cut(now);
    const float packets = 1.0F / static_cast<float>(std::max<std::uint32_t>(1, tx.destinations));
    control.on_lost(packets, may,
                    tx.group != nullptr ? AdaptiveBackoff::kGroupCut : AdaptiveBackoff::kCut,
                    tx.group == nullptr && sender.params().reorder_wait > 0);
    if (may) tx.cut_at = now;
    bound_stream(sender.params(), tx, control.window(), now);
}

}  // namespace

const Policy kBackoff = {
    .word = "backoff",
    .help = "congestion control by loss, weighed by round-trip time (H-TCP)",
    .on_opened = on_opened,
    .on_acked = on_acked,
    .on_lost = on_lost,
};

}  // namespace ulc::urtp
