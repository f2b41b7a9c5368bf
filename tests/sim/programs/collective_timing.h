// SPDX-License-Identifier: BSD-3-Clause
// Measures the duration of a collective on a simulated cluster, and the frames that it puts on the
// wire.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/collective_data.h"

namespace ulc::sim {

struct CollectiveTiming {
    bool ok = false;  ///< every byte was right at every rank, in time
    double us = 0;    ///< from the simultaneous start at all ranks until the last is done; mean
    std::vector<double> each_us;  ///< the same, of each round
    double wire_frames = 0;  ///< for each operation; a multicast counts once; with acknowledgements
    double wire_octets = 0;  ///< the same, as the switch counts them: with headers and FCS
    double payload_octets = 0;  ///< the same, of data packets: payload alone
};

/// Runs the operation `rounds` times; each begins when the previous one is over and acknowledged,
/// and the root rotates. `ranks`: on the nodes in turn; 0: one a node. `medium`: the medium that
/// the job gets as ULC_MEDIUM; nothing: the one that the ports report.
[[nodiscard]] CollectiveTiming time_collective(const ClusterConfig& config,
                                               const Operation& operation, unsigned rounds,
                                               std::uint16_t ranks = 0,
                                               std::optional<ulc::Medium> medium = {});

/// Returns a switch of 100 Mb/s with ideal hosts, one for each port.
[[nodiscard]] ClusterConfig fast_ethernet(std::uint16_t nodes);

}  // namespace ulc::sim
