// SPDX-License-Identifier: BSD-3-Clause
// The threads of a GAMMA process: which has the endpoint, and how they wait.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/clock.h"
#include "ports/process.h"

namespace ulc::ports {
namespace {

/// Time for which a thread that polls for all keeps the endpoint.
constexpr Nanos kSlice = 50 * kMicrosecond;
constexpr Nanos kSliceIdle = 500 * kMicrosecond;  ///< after kBusy without news
constexpr Nanos kBusy = 2 * kMillisecond;

}  // namespace

void Process::take_endpoint() noexcept {
    turns_.take();
    if (is_first()) {
        promise_both();
    } else {
        is_shared_ = true;
        // The first thread has it only while it runs a handler of an upcall.
        while (!(is_borrowed_ = borrow_both()) && !is_over_)
            sched_yield();
    }
    owner_ = pthread_self();
}

/// Promises to poll both endpoints.
void Process::promise_both() noexcept {
    changes_promises_ = true;
    static_cast<void>(ulc_promise(ep_, 1));
    if (groups_.endpoint() != nullptr) static_cast<void>(ulc_promise(groups_.endpoint(), 1));
    changes_promises_ = false;
}

/// Revokes both promises. AGAIN: something has come, and both stand.
int Process::revoke_both() noexcept {
    ulc_endpoint* const groups = groups_.endpoint();
    was_interrupted_ = false;
    changes_promises_ = true;
    int error = groups == nullptr ? int{ULC_OK} : ulc_promise(groups, 0);
    if (error == ULC_OK) error = ulc_promise(ep_, 0);
    changes_promises_ = false;
    if (error == ULC_OK && was_interrupted_) error = ULC_ERR_AGAIN;
    if (error != ULC_OK) promise_both();
    return error;
}

/// Borrows both endpoints or none: a thread that kept one and waited for the other would block
/// upcalls.
bool Process::borrow_both() noexcept {
    if (ulc_borrow(ep_) != ULC_OK) return false;
    if (groups_.endpoint() == nullptr || ulc_borrow(groups_.endpoint()) == ULC_OK) return true;
    static_cast<void>(ulc_give_back(ep_, 0));
    return false;
}

void Process::give_endpoint() noexcept {
    owner_ = pthread_t{};
    if (!is_first()) {
        if (is_borrowed_ && groups_.endpoint() != nullptr)
            static_cast<void>(ulc_give_back(groups_.endpoint(), 0));
        if (is_borrowed_) static_cast<void>(ulc_give_back(ep_, 0));
    } else {
        int error = ULC_ERR_AGAIN;
        while ((error = revoke_both()) == ULC_ERR_AGAIN) {
            owner_ = pthread_self();
            const bool failed = poll_both() < 0;
            if (serial_ == 0) deliver();
            owner_ = pthread_t{};
            if (failed) break;
        }
        is_over_ = error != ULC_OK;
    }
    turns_.give();
}

void Process::end_call() noexcept {
    if (ep_ == nullptr) return;
    deliver();
    give_endpoint();
    tell_followers();
}

// `from` has its promise here, the other endpoint of the thread gets it. Either may interrupt the
// thread while it changes the promise of the other, which must not be touched until that is done.
// So only the own promise is then kept, and the thread takes what has come.
void Process::on_upcall(ulc_endpoint* from) {
    if (changes_promises_) {
        was_interrupted_ = true;
        static_cast<void>(ulc_promise(from, 1));
        return;
    }
    ulc_endpoint* const other = from == ep_ ? groups_.endpoint() : ep_;
    owner_ = pthread_self();
    if (other != nullptr) {
        static_cast<void>(ulc_promise(other, 1));
        static_cast<void>(ulc_poll(other));
    }
    deliver();
    if (other != nullptr) {
        while (ulc_promise(other, 0) == ULC_ERR_AGAIN && ulc_poll(other) >= 0)
            deliver();
    }
    owner_ = pthread_t{};
    tell_followers();
}

int Process::poll_both() {
    const int events = ulc_poll(ep_);
    if (events >= 0 && groups_.endpoint() != nullptr)
        static_cast<void>(ulc_poll(groups_.endpoint()));
    return events;
}

/// Waits as ulc_wait() for the own group's endpoint. Messages of other groups end it too; it looks
/// for them once a slice.
int Process::wait_a_while(Nanos limit) {
    ulc_endpoint* const groups = groups_.endpoint();
    if (groups == nullptr) return ulc_wait(ep_, limit);
    const Nanos begun = monotonic_now();
    for (;;) {
        if (ulc_poll(groups) > 0) return ULC_OK;
        const Nanos spent = monotonic_now() - begun;
        if (spent >= limit) return ULC_ERR_TIMEOUT;
        const Nanos slice = spent < kBusy ? kSlice : kSliceIdle;
        const int error = ulc_wait(ep_, std::min(slice, limit - spent));
        if (error != ULC_ERR_TIMEOUT) return error;
    }
}

/// Waits until something has come since changes_ was `seen`; other threads may call meanwhile.
/// Returns TIMEOUT if nothing has within kLookEvery, or an error that ended the endpoint.
int Process::pause(std::uint32_t seen) {
    if (!is_shared_.load() || serial_ > 0) return wait_a_while(kLookEvery);
    return is_led_ ? follow(seen) : lead(seen);
}

int Process::lead(std::uint32_t seen) {
    is_led_ = true;
    const Nanos begun = monotonic_now();
    int error = ULC_ERR_TIMEOUT;
    for (Nanos now = begun; error == ULC_ERR_TIMEOUT && now - begun < kLookEvery;
         now = monotonic_now()) {
        error = wait_a_while(now - begun < kBusy ? kSlice : kSliceIdle);
        if (turns_.is_wanted()) {
            give_endpoint();
            take_endpoint();
        }
        if (changes_.load() != seen) error = ULC_OK;
    }
    is_led_ = false;
    tell_followers();
    return error;
}

int Process::follow(std::uint32_t seen) {
    const timespec limit{0, static_cast<long>(kLookEvery)};
    ++followers_;
    give_endpoint();
    const long slept = syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&changes_),
                               FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
    const bool late = slept != 0 && errno == ETIMEDOUT;
    take_endpoint();
    --followers_;
    return late ? ULC_ERR_TIMEOUT : ULC_OK;
}

/// Wakes threads that sleep in follow(). Without any it costs one increment.
void Process::tell_followers() noexcept {
    ++changes_;
    if (followers_.load() == 0) return;
    const int kept = errno;
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&changes_), FUTEX_WAKE_PRIVATE, INT_MAX,
            nullptr, nullptr, 0);
    errno = kept;
}

}  // namespace ulc::ports
