// SPDX-License-Identifier: BSD-3-Clause
// The threads of a GAMMA process: which has the endpoint, and how they wait.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

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
        static_cast<void>(ulc_promise(ep_, 1));
    } else {
        is_shared_ = true;
        // The first thread has it only while it runs a handler of an upcall.
        while (!(is_borrowed_ = ulc_borrow(ep_) == ULC_OK) && !is_over_)
            sched_yield();
    }
    owner_ = pthread_self();
}

void Process::give_endpoint() noexcept {
    owner_ = pthread_t{};
    if (!is_first()) {
        if (is_borrowed_) static_cast<void>(ulc_give_back(ep_, 0));
    } else {
        int error = ULC_ERR_AGAIN;
        while ((error = ulc_promise(ep_, 0)) == ULC_ERR_AGAIN) {
            owner_ = pthread_self();
            const bool failed = ulc_poll(ep_) < 0;
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

void Process::on_upcall() {
    owner_ = pthread_self();
    deliver();
    owner_ = pthread_t{};
    tell_followers();
}

/// Waits until something has come since changes_ was `seen`; other threads may call meanwhile.
/// Returns TIMEOUT if nothing has within kLookEvery, or an error that ended the endpoint.
int Process::pause(std::uint32_t seen) {
    if (!is_shared_.load() || serial_ > 0) return ulc_wait(ep_, kLookEvery);
    return is_led_ ? follow(seen) : lead(seen);
}

int Process::lead(std::uint32_t seen) {
    is_led_ = true;
    const Nanos begun = monotonic_now();
    int error = ULC_ERR_TIMEOUT;
    for (Nanos now = begun; error == ULC_ERR_TIMEOUT && now - begun < kLookEvery;
         now = monotonic_now()) {
        error = ulc_wait(ep_, now - begun < kBusy ? kSlice : kSliceIdle);
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
