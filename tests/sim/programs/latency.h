// How long one message takes on an idle simulated switch of 1 Gb/s, and how long until a lost multicast is repaired.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "tests/sim/cluster/net_config.h"

namespace ulc::sim {

/// Half of the mean round trip of `octets`, over that many exchanges between two nodes.
[[nodiscard]] Nanos measure_ping_pong(const std::string& profile, std::size_t octets,
                                      unsigned exchanges);

/// The longest time of `trials` from when rank `receivers` could see that it lost a multicast (the next one's arrival) until it has
/// it. A hub has 100 Mb/s. 0: one was not repaired at all.
[[nodiscard]] Nanos measure_multicast_repair(const std::string& profile, std::uint16_t receivers,
                                             unsigned trials,
                                             MediumKind medium = MediumKind::kSwitch);

}  // namespace ulc::sim
