// SPDX-License-Identifier: BSD-3-Clause
// Waits of waiter.h: spin, then yield, then sleep (Express §3.2).
//
// While the application polls or spins here it promises to poll its ring, and the engine only
// writes memory. ClientState::kAsleep revokes the promise; after that an engine that completes
// something wakes it. abi/slot_ring.h proves that no wake-up is lost. Sleeps are bounded all the
// same: an engine that was killed wakes no client, so after each the endpoint checks whether it
// still lives.
//
// An embedded engine wakes no client, and neither does a ring of near.h. The sleep is a nap then,
// after which the endpoint polls.
#include <algorithm>

#include "base/pause.h"
#include "client/endpoint.h"

namespace ulc::client {
namespace {

constexpr Nanos kSleepMax = 10 * kMillisecond;
constexpr Nanos kLookApart = 2 * kMillisecond;  ///< between checks of the engine
constexpr Nanos kNap = 200 * kMicrosecond;      ///< for sources of messages that wake no thread
constexpr Nanos kYieldApart = 20 * kMicrosecond;
constexpr unsigned kClosePollsDaemon = 64;    ///< about 2 us
constexpr unsigned kClosePollsEmbedded = 16;  ///< rounds of the engine: about 2 us
constexpr unsigned kClosePollsShared = 2;

}  // namespace

// Polls a few times without asking for the time, which costs as much as a check of the ring.
// Returns events like poll().
int Waiter::poll_closely() {
    const bool embedded = endpoint_.hooks().progress != nullptr;
    const unsigned polls = ladder_.shares_its_core(waited_at_) ? kClosePollsShared
                           : embedded                          ? kClosePollsEmbedded
                                                               : kClosePollsDaemon;
    for (unsigned n = 0; n < polls; ++n) {
        const int events = endpoint_.poll();
        if (events != 0) return events;
        if (!embedded) pause_core();  // an engine's round is pause enough
    }
    return 0;
}

int Waiter::wait(Nanos timeout) {
    const Hooks& hooks = endpoint_.hooks();
    ladder_.busy();
    for (Nanos deadline = -1;;) {
        const int events = poll_closely();
        if (events != 0) return events > 0 ? ULC_OK : -events;
        const Nanos now = hooks.now(hooks.context);
        waited_at_ = now;
        if (deadline < 0)
            deadline = timeout >= kNever - now ? kNever : now + std::max<Nanos>(timeout, 0);
        if (now >= deadline) return ULC_ERR_TIMEOUT;
        endpoint_.look_at_engine(now, kLookApart);
        if (endpoint_.empty_polls() < kClosePollsEmbedded && hooks.progress != nullptr)
            ladder_.moved(now);
        switch (ladder_.idle(now)) {
            case IdleLadder::Step::kSpin:
                break;
            case IdleLadder::Step::kYield:
                yield(now);
                break;
            case IdleLadder::Step::kNap:
                sleep_once(deadline == kNever ? kSleepMax : deadline - now);
                break;
        }
    }
}

void Waiter::yield(Nanos now) {
    const Hooks& hooks = endpoint_.hooks();
    published_at_yield_ = endpoint_.published();
    if (hooks.yield == nullptr) return;
    hooks.yield(hooks.context);
    ladder_.yielded(now, hooks.now(hooks.context));
}

void Waiter::before_leaving(bool waited) {
    if (endpoint_.hooks().progress == nullptr) return yield_before_leaving();
    if (endpoint_.rounds().has_work(waited)) endpoint_.poll_aside();
}

// An engine that waits for this core cannot take the submissions before the caller's time slice
// ends, which is milliseconds if it computes; the receiver of that message would wait as long.
// Rarely, since callers that continue to submit leave a wait every microsecond.
void Waiter::yield_before_leaving() {
    if (endpoint_.published() == published_at_yield_ || !ladder_.shares_its_core(waited_at_))
        return;
    const Hooks& hooks = endpoint_.hooks();
    const Nanos now = hooks.now(hooks.context);
    if (now < may_yield_at_) return;
    yield(now);
    may_yield_at_ = hooks.now(hooks.context) + kYieldApart;
}

void Waiter::sleep_once(Nanos left) {
    const Hooks& hooks = endpoint_.hooks();
    if (hooks.sleep == nullptr) return;
    endpoint_.messages().source_notes().announce_awaited();
    abi::EndpointControl& control = endpoint_.region().control();
    const Near* near = endpoint_.messages().near();
    const bool naps = hooks.progress != nullptr || (near != nullptr && near->has_receivers());
    const Nanos nap = naps ? kNap : kSleepMax;
    const std::uint32_t sequence = abi::client_going_to_sleep(control);
    if (!endpoint_.has_news())
        hooks.sleep(hooks.context, control.wake_sequence, sequence, std::min(left, nap));
    abi::client_polls(control);
    endpoint_.end_with_engine();
}

}  // namespace ulc::client
