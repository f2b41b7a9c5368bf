// SPDX-License-Identifier: BSD-3-Clause
// One random scenario: everything that can be chosen, drawn from a seed. `ulc-sim check` runs
// hundreds of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/cluster/events.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/collective_actor.h"
#include "tests/sim/programs/random_traffic.h"

namespace ulc::sim {

struct RandomScenario {
    std::uint64_t seed = 0;
    ClusterConfig cluster;
    std::uint16_t ranks = 2;
    /// true: collectives through libulc; false: traffic of every kind, on the rings.
    bool collective = false;
    TrafficConfig traffic;
    /// Operations of one group, which all of its members run.
    struct GroupWork {
        std::vector<std::uint16_t> ranks;  ///< in the group's order; empty: the world
        std::vector<Operation> operations;
    };
    /// Collectives: the world's first, then those of overlapping groups, at the same time
    std::vector<GroupWork> work;
    /// Collectives: maximum number of one group that run at the same time
    std::size_t overlap = 1;
    bool blocking = false;  ///< collectives: each rank continues until it would have to wait
    std::vector<ScenarioEvent> events;
    /// `peer_dead` and `node_dead`, by the slowest host; thirty times this value is the limit for
    /// all to complete once healed
    Nanos patience = 0;
    Nanos faulty = 0;  ///< duration of the faults; then all is healed and the rest must complete

    [[nodiscard]] std::uint16_t node_of(std::size_t rank) const noexcept {
        return static_cast<std::uint16_t>(rank % cluster.net.ports);
    }
    [[nodiscard]] bool somebody_dies() const noexcept;
    /// Describes the scenario for a reader, in several lines.
    [[nodiscard]] std::string describe() const;
};

[[nodiscard]] RandomScenario random_scenario(std::uint64_t seed);

}  // namespace ulc::sim
