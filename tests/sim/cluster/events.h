// SPDX-License-Identifier: BSD-3-Clause
// Faults of a cluster at given times, in addition to the steady faults of its medium.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/units.h"
#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {

enum class EventKind : std::uint8_t {
    kPartition,  ///< `index`: a bitmap of nodes that are cut off from the others, until at + lasts
    kUnplug,     ///< the node's cable is unplugged, until at + lasts
    kSlowNode,   ///< at `speed`, until at + lasts
    kPauseNode,  ///< nothing on it is scheduled, until at + lasts
    kPauseClient,  ///< the rank computes, until at + lasts
    kKillClient,   ///< the rank's process ends
    kKillNode,     ///< the node's engine ends with all its ranks
};

struct ScenarioEvent {
    EventKind kind = EventKind::kPauseClient;
    Nanos at = 0;  ///< after plan_events()
    Nanos lasts = 0;
    std::uint64_t index = 0;
    double speed = 1;
};

/// Arms the events, whose times count from this call. `events` is copied. `on_kill` kills, since it
/// knows the ranks; if empty, this function kills.
void plan_events(SimCluster& cluster, const std::vector<ScenarioEvent>& events,
                 const std::function<void(const ScenarioEvent&)>& on_kill = {});
/// Ends all faults: rates, partitions, unplugged cables of live nodes, slow processors.
void heal(SimCluster& cluster);

}  // namespace ulc::sim
