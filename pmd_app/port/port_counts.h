// SPDX-License-Identifier: BSD-3-Clause
// The counts of a port in the engine's counters: costs, drops by reason, frames that a mesh
// forwarded, links that fell silent. Each look adds the rise since the last one.
#pragma once

#include <cstdint>

#include "base/counters.h"
#include "base/units.h"
#include "port/port.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::port {

class PortCounts {
public:
    /// Adds the port's costs; once a second, also the frames that it lost or dropped.
    void look(const Port& port, Counters& counters, Nanos now);

    /// Writes or reads what the engine before this one has counted of a port that it shares with
    /// it. The rest begins at the port's present counts.
    void fields(state::Archive& archive, const Port& port);
    /// Returns the frames that were too long for the interface, as far as they are counted.
    [[nodiscard]] std::uint64_t unsendable() const noexcept { return drops_.unsendable; }

private:
    void count_costs(const PortCosts& now, Counters& counters);
    void count_transit(const PortTransit& now, Counters& counters);
    void count_drops(const PortDrops& now, Counters& counters);

    Nanos due_ = 0;             ///< when to ask for frames that it missed or dropped
    std::uint64_t missed_ = 0;  ///< the port's last answers
    PortDrops drops_;
    PortCosts costs_;
    std::uint64_t silences_ = 0;
    PortTransit transit_;
};

}  // namespace ulc::port
