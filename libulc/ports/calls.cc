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
        endpoints_.promise();
    } else {
        is_shared_ = true;
        // The first thread has it only while it runs a handler of an upcall.
        while (!(is_borrowed_ = endpoints_.borrow()) && !is_over_)
            sched_yield();
    }
    owner_ = pthread_self();
}

void Process::give_endpoint() noexcept {
    owner_ = pthread_t{};
    if (!is_first()) {
        // Invitations are for the first thread.
        if (is_borrowed_) endpoints_.give_back(sessions_.has_invited());
    } else {
        int error = ULC_ERR_AGAIN;
        while ((error = endpoints_.revoke()) == ULC_ERR_AGAIN) {
            owner_ = pthread_self();
            const bool failed = ulc_poll(ep_) < 0;
            endpoints_.poll(ep_);
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

// `from` has its promise here, the other endpoints of the thread get it. If it came while the
// thread changed promises, the thread takes what has come.
void Process::on_upcall(ulc_endpoint* from) {
    if (endpoints_.was_put_off(from)) return;
    owner_ = pthread_self();
    interrupter_ = from;
    do {
        endpoints_.promise(from);
        endpoints_.poll(from);
        deliver();
    } while (endpoints_.revoke(from) == ULC_ERR_AGAIN);
    interrupter_ = nullptr;
    owner_ = pthread_t{};
    tell_followers();
}

/// Waits as ulc_wait() for the own group's endpoint. Messages of other groups end it too; it looks
/// for them once a slice.
int Process::wait_a_while(Nanos limit) {
    if (groups_.endpoint() == nullptr) return ulc_wait(ep_, limit);
    const Nanos begun = monotonic_now();
    for (;;) {
        if (endpoints_.poll(ep_) + sessions_.poll_hosts() > 0) return ULC_OK;
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
