// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/sender/tail_wait.h"

#include <algorithm>

namespace ulc::urtp {

TailWait::TailWait(Context& context) noexcept
    : context_(context),
      least_delay_(delay(0)),
      least_delay_us_(static_cast<std::uint16_t>(
          std::min<Nanos>((least_delay_ + kMicrosecond - 1) / kMicrosecond, kDelayUnknown))) {}

Nanos TailWait::delay(std::uint8_t patience) const noexcept {
    const Params& p = context_.params();
    return p.ack_delay == kNever ? p.min_send_wait << std::min(patience, kReplyPatienceMax)
                                 : context_.ack_delay(patience);
}

Nanos TailWait::computed(const TxStream& tx) const noexcept {
    const Params& p = context_.params();
    // No answer may come before the packet that waits for credit.
    const bool rides = p.ack_delay == kNever;
    const Nanos kept_back = delay(rides && tx.wants_credit ? 0 : tx.patience);
    Nanos wait = tx.rtt.bound() + kept_back;
    if (tx.ask_every != TxStream::kNeverAsk) {
        // Its packets ask for acknowledgement, so it hears as soon as a round trip is over.
        wait = std::min(tx.rtt.bound(), 2 * tx.rtt.smoothed());
    } else if (rides) {
        wait = std::max(tx.rtt.bound(), kept_back);
    }
    return std::clamp(wait, std::max(p.min_send_wait, kMicrosecond),
                      std::max(p.max_send_wait, kMicrosecond));
}

Nanos TailWait::renew(TxStream& tx) const noexcept {
    const Nanos wait = computed(tx);
    const bool may_keep = context_.params().ack_delay != kNever && wait <= UINT32_MAX;
    if (may_keep) tx.wait = static_cast<std::uint32_t>(wait);
    return wait;
}

void TailWait::hasten(TxStream& tx, Nanos now) const noexcept {
    tx.probe_at = std::min(tx.probe_at, now + of(tx));
    context_.timers.arm_by(tx.timer, tx.probe_at);
}

/// The receiver waited for company, and will wait longer the next time.
void TailWait::note_patience(TxStream& tx, Nanos waited) const noexcept {
    while (tx.patience < kPatienceMax && waited >= delay(tx.patience)) {
        ++tx.patience;
        tx.wait = 0;
    }
}

}  // namespace ulc::urtp
