// SPDX-License-Identifier: BSD-3-Clause
// Random scenarios in which a node stops, or a wire fails and is never healed. Not all arrives
// then, but both ends of each relation come to one view of it, and every wait ends. Used by
// `ulc-sim check --liveness`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/check/check_run.h"
#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {

struct LivenessFault {
    enum class Kind : std::uint8_t {
        kPause,    ///< nothing on the node is scheduled for 0.1 to 10 × dead
        kOneWay,   ///< frames of the node do not arrive at `other`, from then on
        kUnplug,   ///< the node's cable is out from then on
        kRestart,  ///< its engine is killed with its ranks, and the next starts after `lasts`
        kSplit,    ///< the nodes below `other` + 1 and the rest do not hear each other from then on
    };
    Kind kind{};
    Nanos at = 0;
    Nanos lasts = 0;  ///< kPause, kRestart
    std::uint16_t node = 0;
    std::uint16_t other = 0;
};

struct LivenessScenario {
    std::uint64_t seed = 0;
    std::uint16_t nodes = 2;
    std::uint16_t ranks = 2;
    Nanos dead = 0;  ///< node_dead and peer_dead
    double loss = 0;
    Nanos think = 0;         ///< mean time between two messages of a rank
    double talkative = 0.5;  ///< share of the ranks that send at all
    std::vector<LivenessFault> faults;

    [[nodiscard]] std::uint16_t node_of(std::size_t rank) const noexcept {
        return static_cast<std::uint16_t>(rank % nodes);
    }
    /// For people, several lines.
    [[nodiscard]] std::string describe() const;
};

[[nodiscard]] LivenessScenario liveness_scenario(std::uint64_t seed);

/// Judges, 2 × dead, the patience and a sweep after the last fault. A rank holds another for dead
/// if and only if the other holds it for dead; a pause that is too short ends nothing. Then each
/// send is done, with or without error, and all that was sent between two ranks that hold each
/// other for living arrived once. Ranks of an engine that was killed are held for dead by all
/// others. After a restart all ranks leave and join again, under the same name, and each is heard
/// by each. recorder: records the run; nullptr: none.
[[nodiscard]] CheckResult run_liveness(const LivenessScenario& scenario,
                                       Recorder* recorder = nullptr);

}  // namespace ulc::sim
