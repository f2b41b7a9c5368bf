// SPDX-License-Identifier: BSD-3-Clause
// The engine's thread: rounds of Core::poll() with the idle ladder, sleep on the clients'
// doorbells, and calls that other threads request from the engine.
//
//   round ── moved ──▶ round     nothing moved for clients ──▶ spin ▶ yield ▶ nap (ladder)
//   nap: prepare_sleep() (flags up, fence, check again) ▶ epoll on doorbells, at most the nap or
//        the next timer ▶ awake()
//
// A nap ends early when a client rings; a frame that arrives meanwhile waits until the nap is over,
// since memif and af_packet have no receive interrupt. So the nap bounds the latency from
// idle.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "base/idle_ladder.h"
#include "main/clock.h"
#include "main/core/core.h"

namespace ulc::daemon {

/// Runs functions on the engine's thread for others. One relaxed load a round while there are none.
class EngineCalls {
public:
    using Call = std::function<void(Core&, Nanos)>;

    /// An engine comes round within milliseconds, and a call takes less than a second.
    static constexpr Nanos kCallMax = 10 * kSecond;

    /// `begun_max`: how long a call that has begun is waited for.
    explicit EngineCalls(Nanos begun_max = kCallMax);
    ~EngineCalls();
    EngineCalls(const EngineCalls&) = delete;
    EngineCalls& operator=(const EngineCalls&) = delete;

    /// Any thread except the engine's: queues the call, wakes the engine, returns when it was made.
    /// False: it was not made and will not be, because the loop has ended or has not begun it
    /// within `limit`, or it was begun and abandoned, because it has not returned. Then its results
    /// must not be read. Both functions may be made after the return, so they own all that they
    /// name, except what outlives the loop. `undo` is made after an abandoned call has returned.
    /// No call is queued until then, or until the engine comes round after one that it has not
    /// begun: many callers wait no longer than one.
    bool run(Call call, Nanos limit = kCallMax, Call undo = {});
    /// Engine thread: makes the queued calls. Returns true if there were some.
    bool serve(Core& core, Nanos now);
    /// Engine thread, at its end: refuses all later calls.
    void close();
    /// True if the loop has ended. Any thread.
    [[nodiscard]] bool closed();
    /// Readable while something is queued.
    [[nodiscard]] int wake_fd() const noexcept { return wake_fd_; }
    void wake() const noexcept;

private:
    enum class State : std::uint8_t { kQueued, kBegun, kAbandoned, kMade, kRefused };
    /// A call. It belongs to the thread that waits, and to the engine's from its beginning.
    struct Entry {
        Call call;
        Call undo;
        State state = State::kQueued;  ///< under the mutex
    };
    /// Returns false if the caller has not waited for the end. Releases the lock meanwhile.
    bool make(Entry& entry, Core& core, Nanos now, std::unique_lock<std::mutex>& lock);

    const Nanos begun_max_;
    std::atomic<bool> pending_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Entry>> queue_;
    bool closed_ = false;
    bool stuck_ = false;  ///< the engine's thread is in an abandoned call, or in a round
    int wake_fd_ = -1;
};

class EngineLoop {
public:
    /// `clock`: the only clock of this engine.
    EngineLoop(Core& core, const EngineClock& clock, const IdleLadder::Limits& limits);
    ~EngineLoop();
    EngineLoop(const EngineLoop&) = delete;
    EngineLoop& operator=(const EngineLoop&) = delete;

    /// Runs until stop() and then until the engine is drained, at most drain_max longer.
    void run(Nanos drain_max);
    /// Ends run(). Any thread or a signal handler.
    void stop() noexcept;

    /// Returns a number that rises in each millisecond in which the engine's thread runs a round.
    /// Any thread.
    [[nodiscard]] std::uint64_t beats() const noexcept {
        return beats_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] EngineCalls& calls() noexcept { return calls_; }
    /// Adds a client's socket: bytes arriving on it end a nap. Another thread reads them. Any
    /// thread.
    void add_doorbell(int socket) noexcept;
    /// Ends that. Call it before the socket is closed: a close on another thread may come late. Any
    /// thread.
    void remove_doorbell(int socket) noexcept;

private:
    bool round(Nanos now);
    /// Returns, after a round that moved, true if clients or their data moved, and not only the
    /// frames that keep a node alive.
    [[nodiscard]] bool served_clients() noexcept;
    void nap(Nanos now);

    Core& core_;
    EngineClock clock_;
    EngineCalls calls_;
    IdleLadder ladder_;
    int epoll_fd_ = -1;
    std::uint64_t clients_work_ = 0;  ///< the last count of served_clients()
    Nanos beat_at_ = 0;               ///< when clients are next shown that this thread runs
    std::atomic<std::uint64_t> beats_{0};
    std::atomic<bool> stop_{false};
};

/// FUTEX_WAKE for EngineConfig::wake; the word is in shared memory.
void wake_futex(void* context, engine::EndpointId endpoint, std::atomic<std::uint32_t>* word);

}  // namespace ulc::daemon
