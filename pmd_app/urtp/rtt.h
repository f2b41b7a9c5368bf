// SPDX-License-Identifier: BSD-3-Clause
// Round-trip time of one path: smoothed mean and variation (Jacobson and Karels 1988, gains 1/8 and
// 1/4). Samples come from packets transmitted once (Karn), less the time that the receiver reports
// to have waited; silence gives none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/units.h"

namespace ulc::urtp {

template <typename Unit>
class MeanTime {
public:
    explicit MeanTime(Unit initial) noexcept : srtt_(initial), var_(~(initial / 2)) {}

    /// Adds a sample; negative ones (a receiver that overstates its wait) count as zero.
    void sample(Unit rtt) noexcept {
        rtt = std::max<Unit>(rtt, 0);
        if (!measured()) {
            srtt_ = rtt;
            var_ = rtt / 2;
            return;
        }
        const Unit error = rtt - srtt_;
        srtt_ += error / 8;
        var_ += ((error < 0 ? -error : error) - var_) / 4;
    }

    [[nodiscard]] Unit smoothed() const noexcept { return srtt_; }
    /// Returns a bound that hardly any answer exceeds.
    [[nodiscard]] Unit bound() const noexcept { return srtt_ + 4 * (measured() ? var_ : ~var_); }
    [[nodiscard]] bool measured() const noexcept { return var_ >= 0; }
    template <class Archive>
    void fields(Archive& archive) {
        constexpr Unit kMost = std::numeric_limits<Unit>::max() / 8;  // bound() does not overflow
        archive.values(srtt_, var_);
        const bool sane = srtt_ >= 0 && srtt_ < kMost && var_ > -kMost && var_ < kMost;
        if (!archive.require(sane, "a measured time is out of range")) srtt_ = var_ = 0;
    }

private:
    Unit srtt_;
    Unit var_;  ///< complemented while it is only assumed
};

/// The same of a path. A sample beyond all expectation is mostly no property of it: a process at
/// one end was stopped. It counts as kJump times what was expected, so that a stream is not paced
/// by a pause of seconds, and a path that did become slow is known after a few samples.
class Rtt : public MeanTime<Nanos> {
public:
    using MeanTime::MeanTime;

    void sample(Nanos rtt) noexcept {
        const Nanos expected = std::min(bound(), kLongest);
        MeanTime::sample(std::min(rtt, std::max(kJump * expected, kUnremarkable)));
    }

private:
    static constexpr Nanos kJump = 8;
    static constexpr Nanos kUnremarkable = 10 * kMillisecond;
    static constexpr Nanos kLongest = 1000 * kSecond;  ///< so that no product overflows
};

/// The same for the duration of an action that depends on an application; in microseconds, which is
/// enough and small.
class ReplyTime {
public:
    void sample(Nanos time) noexcept {
        mean_.sample(static_cast<std::int32_t>(std::clamp<Nanos>(time / kMicrosecond, 0, kMost)));
    }
    /// Returns a bound that hardly any exceeds; 0: not known yet.
    [[nodiscard]] Nanos bound() const noexcept {
        return mean_.measured() ? mean_.bound() * kMicrosecond : 0;
    }
    template <class Archive>
    void fields(Archive& archive) {
        mean_.fields(archive);
    }

private:
    static constexpr Nanos kMost = 100'000'000;  ///< bound() stays below 2^31
    MeanTime<std::int32_t> mean_{0};
};

}  // namespace ulc::urtp
