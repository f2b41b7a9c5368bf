// Congestion by delay (congestion.h, DelayBased).
#include "urtp/impl.h"
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

void on_opened(Core& core, TxStream& tx) noexcept {
    const CongestionLimits limits = core.congestion_limits(tx);
    core.bound_stream(tx, tx.congestion.emplace<DelayBased>(limits).window(), 0);
}

void on_acked(Core& core, TxStream& tx, const AckNews& news, Nanos now) noexcept {
    auto& control = std::get<DelayBased>(tx.congestion);
    const float before = control.window();
    control.on_acked(packets_of(tx, news), news.rtt, core.may_cut(tx, now));
    if (control.window() < before) tx.cut_at = now;
    core.bound_stream(tx, control.window(), now);
}

void on_lost(Core& core, TxStream& tx, Seq, Nanos now) noexcept {
    auto& control = std::get<DelayBased>(tx.congestion);
    const float before = control.window();
    control.on_lost(core.may_cut(tx, now));
    if (control.window() < before) tx.cut_at = now;
    core.bound_stream(tx, control.window(), now);
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
