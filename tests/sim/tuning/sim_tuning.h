// SPDX-License-Identifier: BSD-3-Clause
// Measures selection tables in the simulator: every candidate of every operation on the media that
// a table distinguishes, at 100 Mb/s with ideal hosts (on a hub, those of GAMMA). The shipped
// tables are made from it (`ulc-sim tune`), and a test measures samples again.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "coll/table_text.h"
#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {

/// Buffer of a port of a `shallow` switch: 21 full frames.
inline constexpr std::uint64_t kShallowOctets = 32 * 1024;
/// Minimum buffer of a port of a `switch`. For an unknown switch, a choice must work on this one
/// and on one with unlimited buffers: the slower time counts.
inline constexpr std::uint64_t kSwitchOctets = 64 * 1024;

/// The hosts at a hub: computers as old as it. On ideal hosts one chain would be the best barrier,
/// and on these it takes half as long again as two.
inline constexpr const char* kHubHosts = "gamma-0.4";

/// One operation's sizes at one number of ranks: measured one after another, so that a choice far
/// behind is left out of greater ones.
struct TuningColumn {
    coll::Situation at;  ///< octets: nothing
    std::vector<std::uint64_t> octets;
};

struct TuningGrid {
    std::vector<ulc::Medium> media{ulc::Medium::kSwitch, ulc::Medium::kShallow, ulc::Medium::kHub};
    std::vector<std::uint16_t> per_node{1, 4};
    std::vector<std::uint16_t> ranks{2, 4, 8, 16, 64};
    std::vector<coll::Op> ops;  ///< empty: all that are measured
};

/// Returns the columns of the grid that have several nodes and move no more bytes than can be
/// simulated quickly.
[[nodiscard]] std::vector<TuningColumn> columns_of(const TuningGrid& grid);

/// Returns at.ranks on the number of nodes that they need, joined by each medium that at.medium may
/// be.
[[nodiscard]] std::vector<ClusterConfig> clusters_of(const coll::Situation& at);

/// Measures one cell a size.
[[nodiscard]] std::vector<coll::Cell> measure(const TuningColumn& column);

/// Measures those of these choices that end in time.
[[nodiscard]] coll::Cell measure(const coll::Situation& at,
                                 std::span<const std::string_view> choices);

}  // namespace ulc::sim
