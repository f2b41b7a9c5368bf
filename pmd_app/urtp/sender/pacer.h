// SPDX-License-Identifier: BSD-3-Clause
// Spreads the packets of a stream over time: one every `gap`, with at most `kBurst` at once after a
// pause. Admission compares two numbers; a gap of 0 paces nothing.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp {

class Pacer {
public:
    static constexpr Nanos kBurst = 4;

    /// Returns when the next packet may go: at once, if not later than now.
    [[nodiscard]] Nanos next() const noexcept { return next_; }
    void on_packet(Nanos now) noexcept {
        if (gap_ != 0) next_ = std::max(next_, now - (kBurst - 1) * gap_) + gap_;
    }
    /// Sets the gap from now on. A wait that the old gap began is not longer than the new one's.
    void set_gap(Nanos gap, Nanos now) noexcept {
        gap_ = gap;
        next_ = std::min(next_, gap == 0 ? 0 : now + gap);
    }
    [[nodiscard]] Nanos gap() const noexcept { return gap_; }
    void fields(state::Archive& archive);  ///< urtp/state/

private:
    Nanos gap_ = 0;
    Nanos next_ = 0;
};

}  // namespace ulc::urtp
