// SPDX-License-Identifier: BSD-3-Clause
// A fair lock: threads get it in the order in which they ask. Used by Process.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace ulc::ports {

class Turns {
public:
    /// Waits for its turn: yields, then naps.
    void take() noexcept {
        const std::uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
        for (unsigned looks = 0; serving_.load(std::memory_order_acquire) != mine; ++looks) {
            if (looks < kYields) {
                sched_yield();
                continue;
            }
            const timespec nap{0, kNap};
            nanosleep(&nap, nullptr);
        }
    }

    void give() noexcept {
        serving_.store(serving_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    /// True if a thread waits for the turn that the caller has.
    [[nodiscard]] bool is_wanted() const noexcept {
        return next_.load(std::memory_order_relaxed) - serving_.load(std::memory_order_relaxed) > 1;
    }

private:
    static constexpr unsigned kYields = 200;
    static constexpr long kNap = 20'000;  ///< ns

    std::atomic<std::uint32_t> next_{0};
    std::atomic<std::uint32_t> serving_{0};
};

}  // namespace ulc::ports
