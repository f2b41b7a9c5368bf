// SPDX-License-Identifier: BSD-3-Clause
// Limits the share of a polling thread's time that a side job may take. No clock, no DPDK.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace ulc::dpdk {

/// Time that work on the exception path may take: a share of the time that passes while frames of
/// ours come, of which no more than kSavedMax is saved.
class WorkShare {
public:
    /// A fiftieth of the polling thread's time. With the costs that are not charged (frames of
    /// others that the NIC's driver receives, wake-ups, caches), and if ours wait part of the time,
    /// ours keep more than nineteen twentieths.
    static constexpr Nanos kOfThread = 50;
    /// Share of the wire's time, all of which is charged.
    static constexpr Nanos kOfWire = 22;
    static constexpr Nanos kSavedMax = 200 * kMicrosecond;
    static constexpr Nanos kQuietAfter = 1 * kMillisecond;
    /// A longer time between two looks belonged to another thread on this processor, and earns
    /// nothing.
    static constexpr Nanos kLookMax = 200 * kMicrosecond;

    /// `share`: 1 part in this number.
    explicit WorkShare(Nanos share) noexcept : share_(share) {}

    /// Notes that a frame of ours came or went.
    void on_ours(Nanos now) noexcept { ours_at_ = now; }
    [[nodiscard]] bool ours_come(Nanos now) const noexcept { return now - ours_at_ < kQuietAfter; }
    /// Returns true if work may be done at this time.
    [[nodiscard]] bool may_work(Nanos now) noexcept {
        const Nanos passed = std::min(now - earned_at_, kLookMax);
        earned_at_ = now;
        if (!ours_come(now)) {
            credit_ = kSavedMax;
            return true;
        }
        busy_ += passed;
        credit_ = std::min(credit_ + passed / share_, kSavedMax);
        return credit_ > 0;
    }
    void on_work(Nanos now, Nanos cost) noexcept {
        if (!ours_come(now)) return;
        credit_ -= cost;
        worked_ += cost;
    }
    /// Returns the time in which frames of ours came; worked() is the part of it that the work
    /// took.
    [[nodiscard]] Nanos busy() const noexcept { return busy_; }
    [[nodiscard]] Nanos worked() const noexcept { return worked_; }

private:
    Nanos share_;
    Nanos ours_at_ = -kQuietAfter;
    Nanos earned_at_ = 0;
    Nanos credit_ = 0;
    Nanos busy_ = 0;
    Nanos worked_ = 0;
};

}  // namespace ulc::dpdk
