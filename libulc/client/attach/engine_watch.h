// SPDX-License-Identifier: BSD-3-Clause
// Watches the engine of an endpoint: whether it closed the endpoint, and whether its process lives.
// An engine that is killed leaves no mark, but its beats stop; so do those of one that waits for a
// processor. The kernel distinguishes the two, by a system call, at most every kBeatMax and only
// while the beats are stopped. Used by Endpoint and Waiter.
#pragma once

#include <atomic>
#include <cstdint>

#include "abi/region.h"
#include "base/units.h"
#include "client/hooks.h"

namespace ulc::client {

class EngineWatch {
public:
    /// Empty polls between checks, where nothing asks for more.
    static constexpr std::uint32_t kPollsMax = 1024;

    /// page, hooks: outlive this.
    EngineWatch(const abi::EndpointControl& page, const Hooks& hooks) noexcept
        : page_(page), hooks_(hooks) {}

    /// Returns why the engine closed the endpoint; 0: it did not.
    [[nodiscard]] int closed() const noexcept {
        return page_.closed.load(std::memory_order_acquire);
    }
    /// Notes an empty poll. Returns false if a check by pace() is due.
    [[nodiscard]] bool may_wait() noexcept { return --polls_left_ != 0; }
    /// Sets the number of empty polls to the next check, so that checks are a millisecond apart
    /// however often the application polls. A check reads a clock, which costs as much as several
    /// polls. Returns the same as is_gone().
    [[nodiscard]] bool pace() noexcept;
    /// Returns whether the engine's process is gone. `now` was read before the beats: a client that
    /// lost the processor in between asks the kernel no needless question.
    [[nodiscard]] bool is_gone(Nanos now) noexcept;
    /// Asks the kernel.
    [[nodiscard]] bool is_gone_now() const noexcept {
        return hooks_.engine_alive != nullptr && !hooks_.engine_alive(hooks_.context);
    }
    /// Returns whether `apart` has passed since the last check.
    [[nodiscard]] bool is_due(Nanos now, Nanos apart) const noexcept {
        return hooks_.engine_alive != nullptr && now - looked_at_ >= apart;
    }

private:
    static constexpr std::uint32_t kPollsFirst = 8;  ///< too few for most

    const abi::EndpointControl& page_;
    const Hooks& hooks_;
    std::uint32_t polls_left_ = kPollsFirst;
    std::uint32_t polls_ = kPollsFirst;  ///< about a millisecond of empty polls
    Nanos looked_at_ = 0;
    Nanos beat_seen_at_ = 0;  ///< when `beats_` came, or the kernel was last asked
    std::uint32_t beats_ = 0;
};

}  // namespace ulc::client
