// SPDX-License-Identifier: BSD-3-Clause
// Runs an experiment: a cluster made from (medium, hosts, engine), some traffic, and the resulting
// figures. `ulc-sim run` runs one from a scenario file, and the tables of figures are made with
// them:
//
//   Experiment e;
//   e.cluster.net.ports = 2;
//   e.cluster.net.bits_per_second = 100'000'000;
//   e.cluster.hosts = {*host_preset("gamma-0.4")};
//   e.traffic = {.kind = TrafficKind::kPingPong, .octets = 0, .count = 1000};
//   const Figures f = run_experiment(e);    // f.latency_percentile(50)
//
// Deterministic: the same experiment gives the same figures. Times are virtual.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "tests/sim/cluster/events.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/collective_actor.h"

namespace ulc::sim {

enum class TrafficKind : std::uint8_t {
    kStream,     ///< rank 0 sends `count` messages to rank 1 at full speed
    kPingPong,   ///< rank 0 and rank 1, `count` round trips; a latency is half of one (GAMMA §2.2)
    kMulticast,  ///< rank 0 multicasts `count` messages to all
    kIncast,     ///< every other rank streams `count` messages to rank 0
    /// `count` times one collective, one after the other; its latency ends at the last rank
    kCollective,
};

struct ExperimentTraffic {
    TrafficKind kind = TrafficKind::kStream;
    std::size_t octets = 1000;  ///< size of a message, or of each rank's part in an allgather
    std::uint64_t count = 1000;
    std::uint64_t warm_up = 0;  ///< number of messages before the clock starts
    CollectiveKind collective = CollectiveKind::kBarrier;
    std::string algorithm;     ///< as in coll.h; empty: the library chooses
    bool rotate_root = false;  ///< the root of a broadcast rotates (URTP §4.1)
};

struct Experiment {
    ClusterConfig cluster;
    std::uint16_t ranks = 0;  ///< on the nodes in turn; 0: one a node
    ExperimentTraffic traffic;
    std::vector<ScenarioEvent>
        events;  ///< kKill… ends its target; times count from the start of the traffic
    Nanos limit = 600 * kSecond;
    Tap* tap = nullptr;  ///< sees every frame from the start; outlives the run
};

struct Figures {
    /// Empty: all arrived, whole; else the fault, and the other fields say how far the run came
    std::string error;
    Nanos form_time = 0;
    Nanos elapsed = 0;            ///< duration of the traffic without warm-up
    std::uint64_t messages = 0;   ///< delivered
    std::uint64_t octets = 0;     ///< payload delivered
    std::uint64_t receivers = 1;  ///< receivers of each message
    std::vector<Nanos> latency;   ///< one a message or operation, ascending
    std::vector<std::uint64_t>
        octets_by_source;  ///< at the time when all messages of the first source were delivered
    std::vector<std::uint64_t> counters;  ///< sums over all engines, during the traffic; by Counter
    MediumReport medium;
    std::uint64_t tx_frames = 0;  ///< sum over all NICs, during the traffic
    std::uint64_t tx_octets = 0;
    std::uint64_t overruns = 0;  ///< frames that found a NIC's ring full
    std::uint64_t given_up = 0;  ///< frames dropped after 16 collisions
    std::uint64_t turns = 0;

    [[nodiscard]] std::uint64_t count(Counter counter) const {
        return counters[static_cast<std::size_t>(counter)];
    }
    /// Returns the payload bytes a second at each receiver.
    [[nodiscard]] double goodput() const;
    /// Returns a percentile, 0 … 100, nearest rank; 0 if there is no latency.
    [[nodiscard]] Nanos latency_percentile(double percent) const;
    /// Returns the ACK, REQ and PROBE frames for each first transmission.
    [[nodiscard]] double control_per_data() const;
    [[nodiscard]] std::uint64_t repairs() const;
    /// Returns Jain's index over octets_by_source, without rank 0: 1 is fair.
    [[nodiscard]] double fairness() const;
};

[[nodiscard]] Figures run_experiment(const Experiment& experiment);

}  // namespace ulc::sim
