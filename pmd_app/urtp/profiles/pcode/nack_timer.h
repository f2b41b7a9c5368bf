// SPDX-License-Identifier: BSD-3-Clause
// Decides when a NACK is due (PCODE §5.7): after a first delay, which gives the message a chance to
// arrive, then periodically until it is satisfied; and at most `asks` times, after which the
// missing messages are skipped (a bound that the paper leaves to the assumption that no processor
// fails).
#pragma once

#include <cstdint>

#include "base/units.h"

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp::pcode {

class NackTimer {
public:
    /// Notes that the first missing message is `first`. The same gap as before continues to wait;
    /// another one begins again.
    void want(std::uint32_t first, Nanos now, Nanos first_delay) noexcept {
        if (at_ != kNever && first == first_) return;
        first_ = first;
        asked_ = 0;
        at_ = now + first_delay;
    }
    void satisfied() noexcept { at_ = kNever; }

    enum class Due : std::uint8_t { kNothing, kAsk, kGiveUp };
    /// Returns the state at `now`; kAsk counts as asked.
    [[nodiscard]] Due due(Nanos now, Nanos period, std::uint32_t asks) noexcept {
        if (at_ > now) return Due::kNothing;
        if (asked_ == asks) {
            at_ = kNever;
            return Due::kGiveUp;
        }
        ++asked_;
        at_ = now + period;
        return Due::kAsk;
    }
    [[nodiscard]] Nanos at() const noexcept { return at_; }
    void fields(state::Archive& archive);  ///< urtp/state/

private:
    Nanos at_ = kNever;
    std::uint32_t first_ = 0;
    std::uint32_t asked_ = 0;
};

}  // namespace ulc::urtp::pcode
