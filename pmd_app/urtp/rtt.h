// Round-trip time of one path: smoothed mean and variation (Jacobson and Karels 1988, gains 1/8 and 1/4). Samples come
// from packets transmitted once (Karn), less the time the receiver says it waited; silence gives none.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace ulc::urtp {

class Rtt {
public:
    explicit Rtt(Nanos initial) noexcept : srtt_(initial), var_(~(initial / 2)) {}

    /// Negative samples (a receiver that overstates its wait) count as zero.
    void sample(Nanos rtt) noexcept {
        rtt = std::max<Nanos>(rtt, 0);
        if (!measured()) {
            srtt_ = rtt;
            var_ = rtt / 2;
            return;
        }
        const Nanos error = rtt - srtt_;
        srtt_ += error / 8;
        var_ += ((error < 0 ? -error : error) - var_) / 4;
    }

    [[nodiscard]] Nanos smoothed() const noexcept { return srtt_; }
    /// What hardly any answer exceeds.
    [[nodiscard]] Nanos bound() const noexcept { return srtt_ + 4 * (measured() ? var_ : ~var_); }
    [[nodiscard]] bool measured() const noexcept { return var_ >= 0; }

private:
    Nanos srtt_;
    Nanos var_;  ///< complemented while it is only assumed
};

}  // namespace ulc::urtp
