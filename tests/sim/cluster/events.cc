// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/cluster/events.h"

#include <algorithm>

namespace ulc::sim {
namespace {

void begin(SimCluster& cluster, const ScenarioEvent& event, Nanos until) {
    const auto node = static_cast<std::uint16_t>(event.index);
    switch (event.kind) {
        case EventKind::kPartition: {
            std::vector<std::uint16_t> islands(std::max<std::uint16_t>(cluster.nodes(), 2));
            for (std::size_t port = 0; port < islands.size(); ++port)
                islands[port] = static_cast<std::uint16_t>(event.index >> port & 1U);
            cluster.net().faults().partition(islands);
            return;
        }
        case EventKind::kUnplug:
            cluster.net().faults().unplug(node);
            return;
        case EventKind::kSlowNode:
            cluster.set_speed(node, event.speed);
            return;
        case EventKind::kPauseNode:
            cluster.pause_node(node, until);
            return;
        case EventKind::kPauseClient:
            cluster.pause_client(event.index, until);
            return;
        case EventKind::kKillClient:
            cluster.kill_client(event.index);
            return;
        case EventKind::kKillNode:
            cluster.kill_node(node);
            return;
    }
}

void end(SimCluster& cluster, const ScenarioEvent& event) {
    const auto node = static_cast<std::uint16_t>(event.index);
    switch (event.kind) {
        case EventKind::kPartition:
            cluster.net().faults().partition(
                std::vector<std::uint16_t>(std::max<std::uint16_t>(cluster.nodes(), 2)));
            return;
        case EventKind::kUnplug:
            if (cluster.alive(node)) cluster.net().faults().unplug(node, false);
            return;
        case EventKind::kSlowNode:
            cluster.set_speed(node, 1);
            return;
        case EventKind::kPauseNode:
        case EventKind::kPauseClient:
        case EventKind::kKillClient:
        case EventKind::kKillNode:
            return;
    }
}

}  // namespace

void plan_events(SimCluster& cluster, const std::vector<ScenarioEvent>& events,
                 const std::function<void(const ScenarioEvent&)>& on_kill) {
    const Nanos start = cluster.now();
    for (const ScenarioEvent& event : events) {
        const Nanos until = start + event.at + event.lasts;
        const bool kills =
            event.kind == EventKind::kKillClient || event.kind == EventKind::kKillNode;
        const bool of_node =
            event.kind == EventKind::kUnplug || event.kind == EventKind::kSlowNode ||
            event.kind == EventKind::kPauseNode || event.kind == EventKind::kKillNode;
        cluster.at(start + event.at, [=, &cluster] {
            if (of_node && !cluster.alive(static_cast<std::uint16_t>(event.index))) return;
            if (event.kind == EventKind::kKillClient && cluster.gone(event.index)) return;
            if (kills && on_kill) {
                on_kill(event);
            } else {
                begin(cluster, event, until);
            }
        });
        if (!kills) cluster.at(until, [=, &cluster] { end(cluster, event); });
    }
}

void heal(SimCluster& cluster) {
    cluster.net().faults().heal(true);
    for (std::uint16_t node = 0; node < cluster.nodes(); ++node) {
        if (!cluster.alive(node)) continue;
        cluster.net().faults().unplug(node, false);
        cluster.set_speed(node, 1);
    }
}

}  // namespace ulc::sim
