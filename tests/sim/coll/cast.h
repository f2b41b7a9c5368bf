// SPDX-License-Identifier: BSD-3-Clause
// A cluster whose ranks each run a list of collectives, for tests of failures between them.
#pragma once

#include <utility>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/collective_actor.h"

namespace ulc::sim {

inline ClusterConfig config_of(std::uint16_t ranks, std::uint64_t seed) {
    ClusterConfig config;
    config.seed = seed;
    config.embedded = Embedded::kHalf;
    config.net.ports = ranks;
    config.net.seed = seed;
    config.net.bits_per_second = 100'000'000;
    return config;
}

/// Runs one program a rank until all have ended, except those that died.
struct Cast {
    Cast(LibCluster& cluster, std::vector<std::vector<Operation>> all)
        : lib(cluster), programs(std::move(all)) {
        actors.reserve(lib.ranks());
        for (std::uint16_t rank = 0; rank < lib.ranks(); ++rank)
            actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), programs[rank],
                                rank + 1U);
    }
    bool run(Nanos limit) {
        const auto all_ended = [&] {
            for (std::uint16_t rank = 0; rank < lib.ranks(); ++rank)
                if (lib.endpoint(rank) != nullptr && !actors[rank].ended()) return false;
            return true;
        };
        return lib.run(limit, all_ended,
                       [&](std::uint16_t rank, Nanos now) { return actors[rank].step(now); });
    }
    LibCluster& lib;
    std::vector<std::vector<Operation>> programs;
    std::vector<CollectiveActor> actors;
};

/// A barrier in which each rank sends before it waits, so that none is silent.
inline Operation meeting() { return {CollectiveKind::kBarrier, "dissemination:3"}; }

/// A process that dies frees nothing; here, this list owns its memory to the end.
inline std::vector<ulc_coll*>& of_the_dead = *new std::vector<ulc_coll*>;

/// Limits with which members ask each other soon.
inline client::Limits impatient(std::uint16_t /*rank*/) {
    client::Limits limits;
    limits.patience_ms = 20;
    return limits;
}

}  // namespace ulc::sim
