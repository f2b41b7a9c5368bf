// SPDX-License-Identifier: BSD-3-Clause
// Upcalls: an endpoint's handler interrupts the thread that computes (Express §3.2,
// GAMMA §4.4.3.2).
//
//   engine: publishes, finds ClientState::kComputing, interrupts ──▶ kUpcallSignal at the thread
//   signal handler: each endpoint of the thread polls and calls its handler, then computes again
//
// A thread that was interrupted inside the library of malloc() may hold its locks, and polling may
// allocate. So the upcall is then repeated by a timer until the thread is elsewhere, or until the
// signal ends a sleep there.
//
// Another thread may borrow the endpoint while its own computes (ulc_borrow); Endpoint::promise()
// argues why no upcall is lost then.
//
// Used by Endpoint. Invariant: an endpoint runs its handler only if its thread was not inside one
// of its calls, which Endpoint::promise() records before the engine may interrupt.
#pragma once

#include <signal.h>
#include <time.h>

#include "client/ulc_upcall.h"

namespace ulc::client {

class Endpoint;

/// Ignored by default, so that a late one harms no program. Never queued, so that none overflows.
inline constexpr int kUpcallSignal = SIGURG;

/// The handler of one endpoint, registered with the thread that made it. Made, used and destroyed
/// by that thread.
class Upcall {
public:
    Upcall(ulc_endpoint& endpoint, ulc_upcall_handler handler, void* context);
    ~Upcall();
    Upcall(const Upcall&) = delete;
    Upcall& operator=(const Upcall&) = delete;

    /// False: no timer could be made.
    [[nodiscard]] bool ok() const noexcept { return has_timer_; }
    void run() const;
    /// The thread that is interrupted.
    [[nodiscard]] pid_t thread() const noexcept { return thread_; }
    /// Raises the signal at the thread, which may have ended.
    static void interrupt(pid_t thread);

private:
    static void on_signal(int number, siginfo_t* info, void* where);
    static void install();
    void repeat_later();

    ulc_endpoint& endpoint_;
    ulc_upcall_handler handler_;
    void* context_;
    pid_t thread_;
    Upcall* next_;
    timer_t timer_{};  ///< raises the signal at the thread again
    bool has_timer_ = false;
    unsigned repeats_ = 0;
};

}  // namespace ulc::client
