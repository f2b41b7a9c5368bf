// SPDX-License-Identifier: BSD-3-Clause
// Limits the share of a polling thread's time that a side job may take. No clock, no DPDK.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace ulc::dpdk {

/// Chooses the rounds that look for work: the first that brings no frame of ours after kRoundsMin
/// rounds, since a look then delays none of ours; after kRoundsMax rounds, any.
class LookPace {
public:
    static constexpr std::uint32_t kRoundsMin = 16;
    static constexpr std::uint32_t kRoundsMax = 32;

    /// Call it in each round. `ours`: it brought frames of ours.
    [[nodiscard]] bool due(bool ours) noexcept {
        if (++rounds_ < (ours ? kRoundsMax : kRoundsMin)) return false;
        rounds_ = 0;
        return true;
    }

private:
    std::uint32_t rounds_ = 0;
};

/// Time that work on the exception path may take: a share of the time that passes while frames of
/// ours come, of which no more than kSavedMax is saved. A pause of ours saves nothing for the time
/// after it, else short pauses would make the share a multiple.
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
    /// A longer time between two looks belonged to another thread on this processor: it earns
    /// nothing, and is no pause of ours unless it is kPauseSure.
    static constexpr Nanos kLookMax = 200 * kMicrosecond;
    static constexpr Nanos kPauseSure = 20 * kMillisecond;

    /// `share`: 1 part in this number.
    explicit WorkShare(Nanos share) noexcept : share_(share) {}

    /// Notes that a frame of ours came or went.
    void on_ours(Nanos now) noexcept { ours_at_ = now; }
    [[nodiscard]] bool ours_come(Nanos now) const noexcept { return now - ours_at_ < kQuietAfter; }
    /// Returns true if work may be done at this time.
    [[nodiscard]] bool may_work(Nanos now) noexcept {
        const Nanos gap = now - earned_at_;
        const Nanos passed = std::min(gap, kLookMax);
        earned_at_ = now;
        if (gap < kPauseSure) ours_at_ = std::min(now, ours_at_ + gap - passed);
        if (!ours_come(now)) {
            credit_ = std::min(credit_ + passed, Nanos{0});  // all that passes pays debts
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
