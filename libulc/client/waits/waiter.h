// SPDX-License-Identifier: BSD-3-Clause
// Waits of an endpoint's caller: spin, then yield, then sleep (Express §3.2), and what happens when
// the caller turns to other work. Used by api.cc, the collectives and Interrupts. It calls the
// endpoint, never the other way round.
#pragma once

#include <cstdint>

#include "base/idle_ladder.h"
#include "base/units.h"

namespace ulc::client {

class Endpoint;

class Waiter {
public:
    explicit Waiter(Endpoint& endpoint) noexcept : endpoint_(endpoint) {}  ///< outlives this

    /// Performs ulc_wait(); needs hooks.now. Returns OK, TIMEOUT, or the error that ended the
    /// endpoint.
    [[nodiscard]] int wait(Nanos timeout);
    /// Called when the caller turns to other work. An embedded engine, which no other thread polls,
    /// takes the new submissions and sends the frames that are due, such as an ACK for which a
    /// sender waits. `waited`: it has polled; a caller that finds everything done already processes
    /// the messages that came, and a round would only bring more. An engine that shares this
    /// thread's core gets it, if it may have something to take.
    void before_leaving(bool waited);

private:
    [[nodiscard]] int poll_closely();
    void yield(Nanos now);
    void yield_before_leaving();
    void sleep_once(Nanos left);

    Endpoint& endpoint_;
    IdleLadder ladder_;
    Nanos waited_at_ = 0;     ///< the time as wait() last read it
    Nanos may_yield_at_ = 0;  ///< yield_before_leaving() does nothing before
    std::uint32_t published_at_yield_ = 0;
};

}  // namespace ulc::client
