// SPDX-License-Identifier: BSD-3-Clause
// How long a missing packet of a stream counts as late, where frames of one sender overtake each
// other. After RACK (RFC 8985 §6.2): a request that was spurious lengthens the wait, and needed
// repairs shorten it. RACK widens by quarters of a round trip; here lateness itself is measured,
// since a spurious request costs the sender half of its window.
//
//   missed ────────── late ──────────▶ comes, not asked for: so late are packets
//   missed ── wait ──▶ asked for ──▶ comes ──▶ comes again: the request was spurious
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp {

class ReorderWait {
public:
    /// Gaps in a row whose repairs were needed, until the wait is halved (RFC 8985 §6.2).
    static constexpr std::uint8_t kRepairs = 16;
    /// The share of the learned wait that each late packet takes away: 1 in this number.
    static constexpr std::uint32_t kForget = 64;

    /// Returns the wait: what was learned, within the bounds.
    [[nodiscard]] Nanos wait(Nanos least, Nanos most) const noexcept {
        return std::clamp(Nanos{learned_} * kMicrosecond, least, std::max(least, most));
    }
    /// Packets are missed from now on, and were not before.
    void missed(Nanos now) noexcept { missed_ = stamp_of(now); }
    /// One of these came, and was not asked for.
    void came_late(Nanos now) noexcept {
        learned_ = std::max(learned_ - learned_ / kForget, enough_for(late(now)));
    }
    /// One of these came after a request for it.
    void came_asked(Nanos now) noexcept { asked_late_ = late(now) + 1; }
    /// A packet that was asked for came twice.
    void came_again() noexcept {
        if (asked_late_ == 0) return;
        learned_ = std::max(learned_, enough_for(asked_late_));
        asked_late_ = 0;
        repairs_ = 0;
    }
    /// A gap that was asked for is closed.
    void repaired() noexcept {
        if (learned_ == 0 || ++repairs_ < kRepairs) return;
        repairs_ = 0;
        learned_ /= 2;
    }
    void fields(state::Archive& archive);  ///< urtp/state/

private:
    /// Longest lateness that is measured; the stamps wrap later.
    static constexpr std::uint32_t kMost = 1'000'000;

    [[nodiscard]] static std::uint32_t stamp_of(Nanos at) noexcept {
        return static_cast<std::uint32_t>(at / kMicrosecond);
    }
    [[nodiscard]] std::uint32_t late(Nanos now) const noexcept {
        return std::min(stamp_of(now) - missed_, kMost);
    }
    /// The next one may be later than this one.
    [[nodiscard]] static std::uint32_t enough_for(std::uint32_t late) noexcept { return 2 * late; }

    // µs
    std::uint32_t learned_ = 0;
    std::uint32_t missed_ = 0;      ///< time
    std::uint32_t asked_late_ = 0;  ///< lateness of the last packet that was asked for; 0: judged
    std::uint8_t repairs_ = 0;
};

}  // namespace ulc::urtp
