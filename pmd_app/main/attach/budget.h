// SPDX-License-Identifier: BSD-3-Clause
// Two bounds on what clients can make the engine do besides carrying their messages: a share of
// processor time, and lines in the log. Both are token buckets; time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace ulc::daemon {

/// Processor time: `permille` of the time that passes, saved up to `burst`. May go below zero: work
/// is charged when it is done, and delays what comes next, but by `wait_max` at most. A machine
/// on which one piece of work takes long gives it more of the processor than `permille`.
class TimeBudget {
public:
    TimeBudget(std::uint32_t permille, Nanos burst, Nanos wait_max) noexcept
        : permille_(permille),
          burst_(burst),
          saved_(burst),
          saved_min_(-wait_max * static_cast<Nanos>(permille) / 1000) {}

    void charge(Nanos spent) noexcept { saved_ = std::max(saved_ - spent, saved_min_); }
    /// Returns the time until something is left; 0: something is.
    [[nodiscard]] Nanos wait(Nanos now) noexcept {
        const Nanos passed = std::clamp<Nanos>(now - at_, 0, kPassedMax);
        saved_ = std::min(burst_, saved_ + passed * permille_ / 1000);
        at_ = now;
        return saved_ > 0 ? 0 : -saved_ * 1000 / permille_ + kMicrosecond;
    }
    [[nodiscard]] bool full() const noexcept { return saved_ == burst_; }

private:
    static constexpr Nanos kPassedMax = 3600 * kSecond;
    Nanos permille_;
    Nanos burst_;
    Nanos saved_;
    Nanos saved_min_;
    Nanos at_ = 0;
};

/// Lines of a log: `burst` at once, then one every `gap`.
class LineBudget {
public:
    LineBudget(unsigned burst, Nanos gap) noexcept : burst_(burst), gap_(gap), left_(burst) {}

    /// True if a line may be written; then left_out is the number of lines that were left out since
    /// the last one.
    [[nodiscard]] bool allows(Nanos now, std::uint64_t& left_out) noexcept {
        if (at_ == 0) at_ = now;
        const Nanos earned = std::max<Nanos>(now - at_, 0) / gap_;
        at_ += earned * gap_;
        left_ = std::min<Nanos>(burst_, left_ + earned);
        if (left_ == 0) {
            ++left_out_;
            return false;
        }
        --left_;
        left_out = left_out_;
        left_out_ = 0;
        return true;
    }

private:
    Nanos burst_;
    Nanos gap_;
    Nanos left_;
    Nanos at_ = 0;
    std::uint64_t left_out_ = 0;
};

}  // namespace ulc::daemon
