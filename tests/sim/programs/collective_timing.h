// How long a collective takes on a simulated cluster, and what it puts on the wire.
#pragma once

#include <cstdint>

#include "tests/sim/programs/collective_data.h"
#include "tests/sim/sim_cluster.h"

namespace ulc::sim {

struct CollectiveTiming {
    bool ok = false;         ///< every octet was right at every rank, in time
    double us = 0;           ///< from the start at all ranks at once until the last is done; mean
    double wire_frames = 0;  ///< an operation; a multicast counts once; with acknowledgements
    double wire_octets = 0;  ///< the same, as the switch counts them: with headers and FCS
    double payload_octets = 0;  ///< the same, of data packets: payload alone
};

/// `rounds` times the operation, each begun when the one before is over and acknowledged; the root goes round. One rank a node.
[[nodiscard]] CollectiveTiming time_collective(const ClusterConfig& config,
                                               const Operation& operation, unsigned rounds);

/// A switch of 100 Mb/s with ideal hosts, as many as ports.
[[nodiscard]] ClusterConfig fast_ethernet(std::uint16_t nodes);

}  // namespace ulc::sim
