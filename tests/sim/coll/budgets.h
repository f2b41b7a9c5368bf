// SPDX-License-Identifier: BSD-3-Clause
// Budgets of the collectives on simulated media. budget_test.cc tests them; `ulc-sim tables
// collectives` prints them with the measured costs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/units.h"
#include "tests/sim/host/nic.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/programs/collective_timing.h"
#include "wire/header.h"

namespace ulc::sim {

inline constexpr double kBroadcastTo16Max = 1.1;  ///< times a broadcast to 2
inline constexpr double kAllgatherMax = 1.3;      ///< times allgather_bound_us(), on 16 nodes
inline constexpr double kOnceMax = 1.05;          ///< times each byte's payload on the wire
/// A barrier on the switch is never slower than the best of these.
inline constexpr const char* kKnownBarriers[] = {"gather_broadcast", "chain:2", "dissemination"};

/// Profiles whose barrier on gamma_hub() takes at most two_chains_us(), in the median of kHubRuns
/// runs. Collisions are random, and one collision more is a tenth of the barrier of six nodes.
inline constexpr const char* kHubProfiles[] = {"gbn", "urtp"};
inline constexpr unsigned kHubRuns = 5;
inline constexpr unsigned kHubTrials = 24;

/// Returns the time of GAMMA's barrier of two chains, equation (5.2), from 3 nodes on; measured up
/// to 16.
[[nodiscard]] constexpr double two_chains_us(std::uint16_t nodes) { return 20 + 8.5 * nodes; }

/// Lower bound: the blocks of all others come in at each port of fast_ethernet(); a block fits one
/// frame.
[[nodiscard]] inline double allgather_bound_us(std::uint16_t nodes, std::size_t octets) {
    const Nanos bound = (nodes - 1) * line_time(octets + wire::kHeadOctets, 100'000'000);
    return static_cast<double>(bound) / static_cast<double>(kMicrosecond);
}

/// Returns the cluster of the measurements of GAMMA §5.4: a repeater of 100 Mb/s, hosts of GAMMA
/// 0.4.
[[nodiscard]] inline ClusterConfig gamma_hub(std::uint16_t nodes) {
    ClusterConfig config = fast_ethernet(nodes);
    config.net.medium = MediumKind::kHub;
    config.net.repeater = 900;  // §5.4: 0.9 µs
    const auto preset = host_preset("gamma-0.4");
    ULC_CHECK(preset.has_value());
    config.hosts = {*preset};
    return config;
}

}  // namespace ulc::sim
