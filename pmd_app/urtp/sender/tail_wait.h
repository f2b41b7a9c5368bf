// SPDX-License-Identifier: BSD-3-Clause
// How long the tail of a stream waits for news before its sender asks: srtt + 4 var and the time
// for which the receiver may keep an acknowledgement back (docs/PROTOCOL.md §4). The wait is kept
// in the stream until something that it is made of changes.
#pragma once

#include "urtp/context.h"
#include "urtp/sender/stream_tx.h"

namespace ulc::urtp {

class TailWait {
public:
    explicit TailWait(Context& context) noexcept;  ///< context outlives this

    /// Returns the wait.
    [[nodiscard]] Nanos of(TxStream& tx) const noexcept {
        return tx.wait != 0 ? Nanos{tx.wait} : renew(tx);
    }
    /// Returns the wait by what it is made of.
    [[nodiscard]] Nanos computed(const TxStream& tx) const noexcept;
    /// News, or a first transmission: the tail's time counts from now.
    [[gnu::always_inline]] void restart(TxStream& tx, Nanos now) const noexcept {
        tx.probe_wait = 0;
        tx.probe_at = now + of(tx);
        context_.timers.arm_by(tx.timer, tx.probe_at);
    }
    /// Shortens the wait: a packet waits for credit from now on.
    void hasten(TxStream& tx, Nanos now) const noexcept;
    /// Takes the time for which a receiver has kept an acknowledgement back.
    void note_delay(TxStream& tx, Nanos delay) const noexcept {
        if (delay >= least_delay_) note_patience(tx, delay);
    }
    /// Tells whether note_delay() may have an effect. delay_us: as in AckEntry.
    [[nodiscard]] bool is_long(std::uint16_t delay_us) const noexcept {
        return delay_us >= least_delay_us_;  // an unknown delay is a long one
    }

private:
    [[nodiscard]] Nanos delay(std::uint8_t patience) const noexcept;
    Nanos renew(TxStream& tx) const noexcept;
    void note_patience(TxStream& tx, Nanos waited) const noexcept;

    Context& context_;
    const Nanos least_delay_;             ///< delay() of no patience
    const std::uint16_t least_delay_us_;  ///< the same, rounded up; at most kDelayUnknown
};

}  // namespace ulc::urtp
