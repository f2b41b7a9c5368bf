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
// Another thread may borrow the endpoint while its own computes (ulc_borrow); Interrupts::promise()
// argues why no upcall is lost then.
//
// Used by api.cc. Invariant: an endpoint runs its handler only if its thread was not inside one of
// its calls, which Interrupts::promise() records before the engine may interrupt.
#pragma once

#include <signal.h>
#include <time.h>

#include <atomic>
#include <memory>

#include "client/ulc_upcall.h"

namespace ulc::client {

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

/// The interrupts of one endpoint: its handler, and the right to use it while its thread computes.
class Interrupts {
public:
    explicit Interrupts(ulc_endpoint& endpoint) noexcept
        : endpoint_(endpoint) {}  ///< outlives this
    ~Interrupts();                ///< promises to poll
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    /// Sets the handler of ulc_upcall(); nullptr: none. Errors: UNSUPPORTED, NO_MEMORY, SYSTEM, and
    /// that which ended the endpoint.
    [[nodiscard]] int set_handler(ulc_upcall_handler handler, void* context);
    /// Promises to poll, or revokes that, as ulc_promise().
    int promise(bool polls) noexcept;
    /// Takes the endpoint for another thread, as ulc_borrow(). Returns false if its thread uses it.
    [[nodiscard]] bool borrow() noexcept;
    /// Gives it back, as ulc_give_back().
    void give_back(bool interrupt) noexcept;
    /// True from promise(false) to promise(true), except while the handler runs.
    [[nodiscard]] bool computes() const noexcept {
        return computing_.load(std::memory_order_relaxed);
    }
    /// Takes the messages that came and calls the handler, if this endpoint's thread computes. Runs
    /// in its signal handler.
    void on_signal();

private:
    void arm(bool armed) noexcept;

    ulc_endpoint& endpoint_;
    std::unique_ptr<Upcall> upcall_;  ///< handler for when the thread computes; nullptr: none
    /// The promise to poll is revoked; used by its thread only
    std::atomic<bool> computing_{false};
    std::atomic<bool> free_{false};    ///< the thread computes, and no other has borrowed
    std::atomic<bool> missed_{false};  ///< a signal came while the endpoint was borrowed
    bool polls_on_ = false;            ///< the handler promised to poll
};

}  // namespace ulc::client
