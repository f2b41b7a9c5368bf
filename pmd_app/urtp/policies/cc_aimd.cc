// Congestion by loss (congestion.h, LossBased).
#include "urtp/impl.h"
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

void on_opened(Core& core, TxStream& tx) noexcept {
    const CongestionLimits limits = core.congestion_limits(tx);
    core.bound_stream(tx, tx.congestion.emplace<LossBased>(limits).window(), 0);
}

void on_acked(Core& core, TxStream& tx, const AckNews& news, Nanos now) noexcept {
    auto& control = std::get<LossBased>(tx.congestion);
    control.on_acked(packets_of(tx, news));
    core.bound_stream(tx, control.window(), now);
}

void on_lost(Core& core, TxStream& tx, Seq, Nanos now) noexcept {
    auto& control = std::get<LossBased>(tx.congestion);
    const bool may = core.may_cut(tx, now);
    control.on_lost(may);
    if (may) tx.cut_at = now;
    core.bound_stream(tx, control.window(), now);
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
