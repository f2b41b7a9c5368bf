// SPDX-License-Identifier: BSD-3-Clause
#include "main/engine_loop.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/check.h"
#include "base/pause.h"

namespace ulc::daemon {
namespace {

constexpr Nanos kBeatApart = kMillisecond;  ///< clients doubt an engine that is four of these late

}  // namespace

EngineCalls::EngineCalls(Nanos begun_max)
    : begun_max_(begun_max), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    ULC_CHECK(wake_fd_ >= 0);
}

EngineCalls::~EngineCalls() { ::close(wake_fd_); }

void EngineCalls::wake() const noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(!write(wake_fd_, &one, sizeof one));  // full means: it is awake already
}

bool EngineCalls::run(Call call, Nanos limit, Call undo) {
    const auto entry = std::make_shared<Entry>(Entry{std::move(call), std::move(undo)});
    std::unique_lock lock(mutex_);
    if (closed_ || stuck_) return false;
    queue_.push_back(entry);
    pending_.store(true, std::memory_order_release);
    wake();  // before the engine can take the call, so that it also takes what wakes it
    const auto over = [&] { return entry->state >= State::kMade; };
    if (!changed_.wait_for(lock, std::chrono::nanoseconds(limit), over)) {
        if (entry->state == State::kQueued) {
            std::erase(queue_, entry);
            stuck_ = true;
            spdlog::error("the engine's thread is stuck in a round; see its ports, or restart it");
            return false;
        }
        if (!changed_.wait_for(lock, std::chrono::nanoseconds(begun_max_), over)) {
            entry->state = State::kAbandoned;
            stuck_ = true;
            spdlog::error("the engine's thread does not return from a call; restart the engine");
            return false;
        }
    }
    return entry->state == State::kMade;
}

bool EngineCalls::make(Entry& entry, Core& core, Nanos now, std::unique_lock<std::mutex>& lock) {
    entry.state = State::kBegun;
    lock.unlock();
    entry.call(core, now);
    lock.lock();
    if (entry.state == State::kAbandoned) return false;
    entry.state = State::kMade;
    return true;
}

bool EngineCalls::serve(Core& core, Nanos now) {
    if (!pending_.load(std::memory_order_relaxed)) return false;
    std::unique_lock lock(mutex_);
    pending_.store(false, std::memory_order_relaxed);
    stuck_ = false;
    std::uint64_t drained = 0;
    static_cast<void>(!read(wake_fd_, &drained, sizeof drained));
    while (!queue_.empty()) {
        std::shared_ptr<Entry> entry = std::move(queue_.front());
        queue_.pop_front();
        if (make(*entry, core, now, lock)) {
            // The caller wakes with the lock, so it frees what the call owns, and not this thread.
            entry.reset();
            changed_.notify_all();
            continue;
        }
        lock.unlock();
        if (entry->undo) entry->undo(core, now);
        entry.reset();
        lock.lock();
        stuck_ = false;
    }
    return true;
}

bool EngineCalls::closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
}

void EngineCalls::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& entry : queue_)
        entry->state = State::kRefused;
    queue_.clear();
    changed_.notify_all();
}

EngineLoop::EngineLoop(Core& core, const EngineClock& clock, const IdleLadder::Limits& limits)
    : core_(core), clock_(clock), ladder_(limits), epoll_fd_(epoll_create1(EPOLL_CLOEXEC)) {
    ULC_CHECK(epoll_fd_ >= 0);
    epoll_event event{};
    event.events = EPOLLIN;
    ULC_CHECK(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, calls_.wake_fd(), &event) == 0);
}

EngineLoop::~EngineLoop() { close(epoll_fd_); }

void EngineLoop::stop() noexcept {
    stop_.store(true, std::memory_order_relaxed);
    calls_.wake();
}

void EngineLoop::add_doorbell(int socket) noexcept {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;  // edge: the octet is read by the attach server
    static_cast<void>(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, socket, &event));
}

void EngineLoop::remove_doorbell(int socket) noexcept {
    static_cast<void>(epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, socket, nullptr));
}

bool EngineLoop::round(Nanos now) {
    const bool called = calls_.serve(core_, now);
    return core_.poll(now) || called;
}

bool EngineLoop::served_clients() noexcept {
    const Counters& counters = core_.counters();
    const std::uint64_t work = counters.get(Counter::submissions) +
                               counters.get(Counter::completions) +
                               counters.get(Counter::data_received);
    return work != std::exchange(clients_work_, work);
}

void EngineLoop::nap(Nanos now) {
    if (!core_.prepare_sleep()) return;
    const Nanos until_timer =
        core_.next_deadline() == kNever ? LLONG_MAX : core_.next_deadline() - now;
    const Nanos length = std::min(ladder_.next_nap(), until_timer);
    if (length > 0) {
        const timespec timeout{static_cast<time_t>(length / kSecond),
                               static_cast<long>(length % kSecond)};
        epoll_event events[8];
        static_cast<void>(epoll_pwait2(epoll_fd_, events, 8, &timeout, nullptr));
        core_.counters().add(Counter::naps);
    }
    core_.awake();
}

void EngineLoop::run(Nanos drain_max) {
    // Short naps need a short timer slack: the default of 50 us would double the shortest.
    static_cast<void>(prctl(PR_SET_TIMERSLACK, 1000));
    Nanos stop_at = kNever;
    for (;;) {
        const Nanos now = clock_.now();
        if (now >= beat_at_) {
            core_.beat();
            beats_.fetch_add(1, std::memory_order_relaxed);
            beat_at_ = now + kBeatApart;
        }
        if (stop_.load(std::memory_order_relaxed)) {
            if (stop_at == kNever) {
                core_.stop_accepting();
                stop_at = now + drain_max;
            }
            if (core_.drained() || now >= stop_at) break;
        }
        if (round(now)) {
            served_clients() ? ladder_.busy() : ladder_.stirred();
            continue;
        }
        switch (ladder_.idle(now)) {
            case IdleLadder::Step::kSpin:
                pause_core();
                break;
            case IdleLadder::Step::kYield: {
                const Nanos before = clock_.now();
                sched_yield();
                ladder_.yielded(before, clock_.now());
                break;
            }
            case IdleLadder::Step::kNap:
                nap(now);
                break;
        }
    }
    calls_.close();
}

void wake_futex(void*, engine::EndpointId, std::atomic<std::uint32_t>* word) {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace ulc::daemon
