// How long a collective takes on a simulated cluster, and what it puts on the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/collective_data.h"

namespace ulc::sim {

struct CollectiveTiming {
    bool ok = false;  ///< every octet was right at every rank, in time
    double us = 0;    ///< from the start at all ranks at once until the last is done; mean
    std::vector<double> each_us;  ///< the same, of each round
    double wire_frames = 0;       ///< an operation; a multicast counts once; with acknowledgements
    double wire_octets = 0;       ///< the same, as the switch counts them: with headers and FCS
    double payload_octets = 0;    ///< the same, of data packets: payload alone
};

/// `rounds` times the operation, each begun when the one before is over and acknowledged; the root goes round. ranks: on the nodes in
/// turn; 0: one a node. medium: what the job is told of it, as ULC_MEDIUM; nothing: what the ports say.
[[nodiscard]] CollectiveTiming time_collective(const ClusterConfig& config,
                                               const Operation& operation, unsigned rounds,
                                               std::uint16_t ranks = 0,
                                               std::optional<ulc::Medium> medium = {});

/// A switch of 100 Mb/s with ideal hosts, as many as ports.
[[nodiscard]] ClusterConfig fast_ethernet(std::uint16_t nodes);

}  // namespace ulc::sim
