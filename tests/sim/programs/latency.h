// SPDX-License-Identifier: BSD-3-Clause
// Measures the time of one message on an idle simulated switch of 1 Gb/s, and the time until a lost
// multicast is retransmitted.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "tests/sim/cluster/net_config.h"

namespace ulc::sim {

/// Returns half of the mean round trip of `octets`, over that number of exchanges between two
/// nodes.
[[nodiscard]] Nanos measure_ping_pong(const std::string& profile, std::size_t octets,
                                      unsigned exchanges);

/// Returns the longest of `trials` times from the arrival that shows rank `receivers` that it lost
/// a multicast (the next one) until it has it. A hub has 100 Mb/s. 0: one was not retransmitted at
/// all.
[[nodiscard]] Nanos measure_multicast_repair(const std::string& profile, std::uint16_t receivers,
                                             unsigned trials,
                                             MediumKind medium = MediumKind::kSwitch);

}  // namespace ulc::sim
