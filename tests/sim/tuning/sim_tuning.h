// Measures selection tables in the simulator: every candidate of every operation on the media that a table distinguishes, at 100 Mb/s with
// ideal hosts (on a hub, those of GAMMA). What ships is made of it (`ulc-sim tune`), and a test measures samples again.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "coll/table_text.h"
#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {

/// What a port of a `shallow` switch buffers: 21 full frames.
inline constexpr std::uint64_t kShallowOctets = 32 * 1024;
/// What a port of a `switch` buffers at the least. Where nobody knows the switch, a choice must do on this one and on one that never runs
/// out: the slower time counts.
inline constexpr std::uint64_t kSwitchOctets = 64 * 1024;

/// What stands at a hub: computers as old as it. On ideal hosts one chain would be the best barrier, and on these it takes half as long
/// again as two.
inline constexpr const char* kHubHosts = "gamma-0.4";

/// One operation's sizes at one number of ranks: measured one after another, so that a choice far behind is left out of greater ones.
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

/// Whatever of the grid has several nodes and moves no more octets than can be simulated soon.
[[nodiscard]] std::vector<TuningColumn> columns_of(const TuningGrid& grid);

/// at.ranks on as many nodes as it takes, joined by whatever at.medium may be.
[[nodiscard]] std::vector<ClusterConfig> clusters_of(const coll::Situation& at);

/// One cell a size.
[[nodiscard]] std::vector<coll::Cell> measure(const TuningColumn& column);

/// Of these choices, those that end in time.
[[nodiscard]] coll::Cell measure(const coll::Situation& at,
                                 std::span<const std::string_view> choices);

}  // namespace ulc::sim
