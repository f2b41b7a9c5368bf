// SPDX-License-Identifier: BSD-3-Clause
// How far a port's received frames were taken. A process that lost its processor finds its timers
// due and frames in its ports. A packet that lies in a port is not missing, so a gap is judged when
// the frames are taken. The engine keeps it for all members on the port.
#pragma once

#include "base/units.h"

namespace ulc::urtp {

class Arrivals {
public:
    /// Full bursts in a row that no port's rings can hold: the frames come faster than they are
    /// taken, and no timer waits for that.
    static constexpr unsigned kFullMost = 128;

    /// Notes one burst, which the port was asked for at `now`. full: the port may have more.
    void took(bool full, Nanos now) noexcept {
        full_ = full ? full_ + 1 : 0;
        if (full_ != 0 && full_ < kFullMost) return;
        full_ = 0;
        until_ = now;
    }
    /// Returns whether all frames were taken that came before `at`.
    [[nodiscard]] bool has_all_before(Nanos at) const noexcept { return until_ >= at; }

    template <class Archive>
    void fields(Archive& archive) {
        archive.values(until_, full_);
    }

private:
    Nanos until_ = 0;
    unsigned full_ = 0;
};

}  // namespace ulc::urtp
