// How much of a polling thread's time a side job may take. No clock, no DPDK.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace ulc::dpdk {

/// Time that work on the exception path may take: a part of what passes while frames of ours come, none of it saved for
/// longer than kSavedMax.
class WorkShare {
public:
    /// Of the polling thread's time a fiftieth: with what is not charged (frames of others that the NIC's driver takes in,
    /// wake-ups, caches), and where ours wait part of the time, what ours have stays over nineteen twentieths.
    static constexpr Nanos kOfThread = 50;
    /// Of the wire's, all of which is charged.
    static constexpr Nanos kOfWire = 22;
    static constexpr Nanos kSavedMax = 200 * kMicrosecond;
    static constexpr Nanos kQuietAfter = 1 * kMillisecond;
    /// More between two looks was another thread's on this processor, and earns nothing.
    static constexpr Nanos kLookMax = 200 * kMicrosecond;

    /// share: 1 of so many.
    explicit WorkShare(Nanos share) noexcept : share_(share) {}

    /// A frame of ours came or went.
    void on_ours(Nanos now) noexcept { ours_at_ = now; }
    [[nodiscard]] bool ours_come(Nanos now) const noexcept { return now - ours_at_ < kQuietAfter; }
    /// Whether work may be done now.
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
    /// Of the time in which frames of ours came: how much there was, and how much of it the work took.
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
