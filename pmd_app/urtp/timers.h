// SPDX-License-Identifier: BSD-3-Clause
// Deadlines in a binary heap of intrusive timers. A timer is armed *by* a time and never deferred:
// its owner keeps the true deadlines, so the hot path only stores a number; a timer that fires
// early is armed again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/units.h"

namespace ulc::urtp {

enum class TimerOwner : std::uint8_t { kReceive, kSend, kSession, kGroup };

struct Timer {
    static constexpr std::uint32_t kIdle = UINT32_MAX;

    Nanos due = kNever;
    std::uint32_t position = kIdle;  ///< in the heap
    TimerOwner kind{};
    void* owner = nullptr;
};

class Timers {
public:
    /// Reserves memory for one more timer; the only call that allocates.
    void enroll() {
        ++enrolled_;
        if (heap_.capacity() < enrolled_) heap_.reserve(2 * enrolled_);
    }

    /// For a timer that is not armed and will not be: the heap need not hold it any more.
    void resign() noexcept {
        ULC_CHECK(enrolled_ > 0);
        --enrolled_;
    }

    [[nodiscard]] Nanos next() const noexcept { return heap_.empty() ? kNever : heap_[0]->due; }

    /// Makes the timer fire at `at` or earlier.
    void arm_by(Timer& timer, Nanos at) noexcept {
        if (timer.due > at) arm(timer, at);  // an idle one is due never
    }

    /// Takes the earliest timer that is due; nullptr if there is none.
    Timer* pop_due(Nanos now) noexcept {
        if (heap_.empty() || heap_[0]->due > now) return nullptr;
        Timer* timer = heap_[0];
        remove(*timer);
        return timer;
    }

    /// Returns the earliest timer, if it is due; nullptr: none is.
    [[nodiscard]] Timer* first_due(Nanos now) const noexcept {
        return heap_.empty() || heap_[0]->due > now ? nullptr : heap_[0];
    }
    /// Makes the armed timer fire at `at`, later than it would; kNever: not at all.
    void put_off(Timer& timer, Nanos at) noexcept {
        remove(timer);
        arm_by(timer, at);
    }

    void remove(Timer& timer) noexcept {
        if (timer.position == Timer::kIdle) return;
        const std::uint32_t hole = timer.position;
        timer.position = Timer::kIdle;
        timer.due = kNever;
        Timer* last = heap_.back();
        heap_.pop_back();
        if (last == &timer) return;
        place(last, hole);
        rise(hole);
        sink(last->position);
    }

    /// Returns the armed timers as they lie: in each state of the heap another order.
    [[nodiscard]] std::span<Timer* const> armed() const noexcept { return heap_; }
    /// Arms a timer at the next place of the heap. False: it is armed, or is due before its parent.
    [[nodiscard]] bool restore(Timer& timer, Nanos due) noexcept {
        const auto at = static_cast<std::uint32_t>(heap_.size());
        const bool ordered = at == 0 || heap_[(at - 1) / 2]->due <= due;
        if (timer.position != Timer::kIdle || due == kNever || !ordered) return false;
        ULC_CHECK(heap_.size() < heap_.capacity());
        heap_.push_back(&timer);
        timer.due = due;
        timer.position = at;
        return true;
    }
    /// Disarms all timers.
    void clear() noexcept {
        for (Timer* timer : heap_) {
            timer->position = Timer::kIdle;
            timer->due = kNever;
        }
        heap_.clear();
    }

private:
    [[gnu::noinline]] void arm(Timer& timer, Nanos at) noexcept {
        timer.due = at;
        if (timer.position != Timer::kIdle) {
            rise(timer.position);
            return;
        }
        ULC_CHECK(heap_.size() < heap_.capacity());
        heap_.push_back(&timer);
        timer.position = static_cast<std::uint32_t>(heap_.size() - 1);
        rise(timer.position);
    }
    void place(Timer* timer, std::uint32_t at) noexcept {
        heap_[at] = timer;
        timer->position = at;
    }
    void rise(std::uint32_t at) noexcept {
        Timer* timer = heap_[at];
        while (at > 0) {
            const std::uint32_t parent = (at - 1) / 2;
            if (heap_[parent]->due <= timer->due) break;
            place(heap_[parent], at);
            at = parent;
        }
        place(timer, at);
    }
    void sink(std::uint32_t at) noexcept {
        Timer* timer = heap_[at];
        const auto size = static_cast<std::uint32_t>(heap_.size());
        for (std::uint32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
            if (child + 1 < size && heap_[child + 1]->due < heap_[child]->due) ++child;
            if (timer->due <= heap_[child]->due) break;
            place(heap_[child], at);
            at = child;
        }
        place(timer, at);
    }

    std::vector<Timer*> heap_;
    std::size_t enrolled_ = 0;
};

}  // namespace ulc::urtp
