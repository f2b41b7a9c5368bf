// One random scenario: everything that can be chosen, drawn from a seed. `ulc-sim check` runs them by the hundred.
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
    /// Collectives through libulc; else traffic of every kind, on the rings.
    bool collective = false;
    TrafficConfig traffic;
    /// Operations of one group, which all of its members carry out.
    struct GroupWork {
        std::vector<std::uint16_t> ranks;  ///< in the group's order; empty: the world
        std::vector<Operation> operations;
    };
    std::vector<GroupWork>
        work;  ///< collectives: the world's first, then those of overlapping groups, at the same time
    std::size_t overlap = 1;  ///< collectives: so many of one group are under way at most
    bool blocking = false;    ///< collectives: each rank goes on until it would have to wait
    std::vector<ScenarioEvent> events;
    Nanos patience =
        0;  ///< peer_dead and node_dead, by the slowest host; and thirty of it for all to get done when healed
    Nanos faulty = 0;  ///< so long the faults last; then all is healed and the rest must get done

    [[nodiscard]] std::uint16_t node_of(std::size_t rank) const noexcept {
        return static_cast<std::uint16_t>(rank % cluster.net.ports);
    }
    [[nodiscard]] bool somebody_dies() const noexcept;
    /// For people, several lines.
    [[nodiscard]] std::string describe() const;
};

[[nodiscard]] RandomScenario random_scenario(std::uint64_t seed);

}  // namespace ulc::sim
