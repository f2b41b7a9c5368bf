// SPDX-License-Identifier: BSD-3-Clause
// Records when frames left a port. A member needs it to distinguish a request that was formed
// before the packet in question was on the wire from one that shows a loss. URTP's δ (§3.2.1)
// counts from there. The engine keeps it for all members on the port, which stamp each packet that
// they send with the ticket of the port's next frame.
//
//          left − kRemembered      left          next
//   ─────────────────┴──────────────┴─────────────┴──────▶ tickets
//      long ago      │ left at `at` │ in the port │ not given to it
#pragma once

#include <array>
#include <cstdint>

#include "base/units.h"

namespace ulc::urtp {

struct Departures {
    static constexpr std::uint32_t kRemembered = 256;  ///< power of two
    static constexpr Nanos kLongAgo = 0;

    std::uint32_t next = 0;  ///< ticket of the next frame that the port gets
    std::uint32_t left = 0;  ///< frames before it are transmitted, or dropped
    std::array<Nanos, kRemembered> at = {};

    /// Notes that frames before `ticket` have left. A report of the port below the earlier one is
    /// ignored.
    void leave_until(std::uint32_t ticket, Nanos now) noexcept {
        if (static_cast<std::int32_t>(ticket - left) <= 0) return;
        do {
            at[left % kRemembered] = now;
        } while (++left != ticket);
    }
    /// Notes that the only frame of those with a ticket that had not left has.
    void leave_next(Nanos now) noexcept { at[left++ % kRemembered] = now; }
    /// Returns when the frame left; kNever: it has not yet. A frame that never went to the port
    /// shares its ticket with the next one that did.
    [[nodiscard]] Nanos left_at(std::uint32_t ticket) const noexcept {
        if (ticket - left < next - left) return kNever;
        return left - ticket - 1 < kRemembered ? at[ticket % kRemembered] : kLongAgo;
    }
};

}  // namespace ulc::urtp
