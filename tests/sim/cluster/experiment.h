// An experiment: a cluster from (medium, hosts, engine), some traffic, and the figures that it gives. What ulc-sim run does
// with a scenario file, and what tables of figures are made with:
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
    kStream,     ///< rank 0 sends `count` messages to rank 1, as fast as it goes
    kPingPong,   ///< rank 0 and rank 1, `count` round trips; a latency is half of one (GAMMA §2.2)
    kMulticast,  ///< rank 0 multicasts `count` messages to all
    kIncast,     ///< every other rank streams `count` messages to rank 0
    kCollective,  ///< `count` times one collective, one after the other; its latency ends at the last rank
};

struct ExperimentTraffic {
    TrafficKind kind = TrafficKind::kStream;
    std::size_t octets = 1000;  ///< of a message; of each rank's part in an allgather
    std::uint64_t count = 1000;
    std::uint64_t warm_up = 0;  ///< so many of them before the clock starts
    CollectiveKind collective = CollectiveKind::kBarrier;
    std::string algorithm;     ///< as of coll.h; empty: the library chooses
    bool rotate_root = false;  ///< the root of a broadcast goes round (URTP §4.1)
};

struct Experiment {
    ClusterConfig cluster;
    std::uint16_t ranks = 0;  ///< on the nodes in turn; 0: one a node
    ExperimentTraffic traffic;
    std::vector<ScenarioEvent>
        events;  ///< kKill… end what they kill; times count from the start of the traffic
    Nanos limit = 600 * kSecond;
    Tap* tap = nullptr;  ///< sees every frame from the start; outlives the run
};

struct Figures {
    std::string
        error;  ///< empty: all arrived, whole; else what was wrong, and the rest says how far it came
    Nanos form_time = 0;
    Nanos elapsed = 0;            ///< of the traffic, warm-up not counted
    std::uint64_t messages = 0;   ///< delivered
    std::uint64_t octets = 0;     ///< of payload, delivered
    std::uint64_t receivers = 1;  ///< of each message
    std::vector<Nanos> latency;   ///< one a message or operation, ascending
    std::vector<std::uint64_t>
        octets_by_source;  ///< when the first source had all of its messages delivered
    std::vector<std::uint64_t> counters;  ///< of all engines, during the traffic; by Counter
    MediumReport medium;
    std::uint64_t tx_frames = 0;  ///< of all NICs, during the traffic
    std::uint64_t tx_octets = 0;
    std::uint64_t overruns = 0;  ///< frames that found a NIC's ring full
    std::uint64_t given_up = 0;  ///< frames after 16 collisions
    std::uint64_t turns = 0;

    [[nodiscard]] std::uint64_t count(Counter counter) const {
        return counters[static_cast<std::size_t>(counter)];
    }
    /// Payload octets a second at each receiver.
    [[nodiscard]] double goodput() const;
    /// 0 … 100, nearest rank; 0 if there is none.
    [[nodiscard]] Nanos latency_percentile(double percent) const;
    /// ACK, REQ and PROBE frames for each first transmission.
    [[nodiscard]] double control_per_data() const;
    [[nodiscard]] std::uint64_t repairs() const;
    /// Jain's index over octets_by_source, without rank 0: 1 is fair.
    [[nodiscard]] double fairness() const;
};

[[nodiscard]] Figures run_experiment(const Experiment& experiment);

}  // namespace ulc::sim
