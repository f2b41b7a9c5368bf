// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tuning/sim_tuning.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/check.h"
#include "coll/tuning/candidates.h"
#include "coll/tuning/decide.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/programs/collective_timing.h"

namespace ulc::sim {
namespace {

/// Bytes that one operation may bring to all ranks together.
constexpr std::uint64_t kMovedMax = 4U << 20;
/// The longest vector: 22 ms on a wire of 100 Mb/s, so that latency no longer matters.
constexpr std::uint64_t kOctetsMax = 256U << 10;
/// A choice that takes this multiple of the best time at one size is not tried at greater ones. (A
/// pipeline is far behind with small vectors and wins with large ones.)
constexpr double kHopeless = 16;
/// Times closer than this factor decide nothing, whatever their noise.
constexpr double kNear = 1.5;

/// Rounds on a switch without loss are all similar; on a hub each has different collisions, and if
/// buffers overflow each has different losses.
[[nodiscard]] unsigned rounds_of(const coll::Situation& at, const ClusterConfig& config) {
    if (config.net.medium == MediumKind::kSwitch && config.net.buffer_octets == 0) return 3;
    const unsigned rounds = at.octets <= 1024 ? 12 : 6;
    return at.ranks > 16 ? rounds / 2 : rounds;
}

[[nodiscard]] double quantile(const std::vector<double>& sorted, double q) {
    return sorted[static_cast<std::size_t>(
        std::lround(q * static_cast<double>(sorted.size() - 1)))];
}

struct Timed {
    double us = 0;     ///< median
    double noise = 0;  ///< noise of the median, as a share
};

[[nodiscard]] Timed time_on(const ClusterConfig& config, const coll::Situation& at,
                            std::string_view choice) {
    const Operation operation{.kind = kind_of(at.op),
                              .algorithm = std::string(choice),
                              .octets = static_cast<std::size_t>(at.octets)};
    CollectiveTiming timing = time_collective(config, operation, rounds_of(at, config), at.ranks);
    if (!timing.ok) return {};
    std::ranges::sort(timing.each_us);
    const double median = quantile(timing.each_us, 0.5);
    const double spread = quantile(timing.each_us, 0.75) - quantile(timing.each_us, 0.25);
    return {median, spread / median / std::sqrt(static_cast<double>(timing.each_us.size()))};
}

/// Returns the slowest time on the possible media; nothing if one of them was not done in time.
[[nodiscard]] Timed time_of(const coll::Situation& at, std::string_view choice) {
    Timed slowest;
    for (const ClusterConfig& config : clusters_of(at)) {
        const Timed timed = time_on(config, at, choice);
        if (timed.us == 0) return {};
        if (timed.us > slowest.us) slowest = timed;
    }
    return slowest;
}

[[nodiscard]] std::uint64_t moved(const coll::Candidates& what, std::uint16_t ranks,
                                  std::uint64_t octets) {
    const bool all_to_all = what.op == coll::Op::kAllgather || what.op == coll::Op::kAlltoall ||
                            what.op == coll::Op::kReduceScatter;
    return octets * ranks * (all_to_all ? ranks : 1);
}

}  // namespace

std::vector<TuningColumn> columns_of(const TuningGrid& grid) {
    std::vector<TuningColumn> columns;
    for (const coll::Candidates& what : coll::candidates()) {
        if (!grid.ops.empty() && std::ranges::find(grid.ops, what.op) == grid.ops.end()) continue;
        for (const ulc::Medium medium : grid.media) {
            for (const std::uint16_t per_node : grid.per_node) {
                for (const std::uint16_t ranks : grid.ranks) {
                    if (ranks <= per_node) continue;
                    TuningColumn column{
                        {.op = what.op, .medium = medium, .per_node = per_node, .ranks = ranks},
                        {}};
                    for (const std::uint64_t octets : what.octets)
                        if (octets <= kOctetsMax && moved(what, ranks, octets) <= kMovedMax)
                            column.octets.push_back(octets);
                    columns.push_back(column);
                }
            }
        }
    }
    return columns;
}

std::vector<ClusterConfig> clusters_of(const coll::Situation& at) {
    ClusterConfig config =
        fast_ethernet(static_cast<std::uint16_t>((at.ranks + at.per_node - 1) / at.per_node));
    if (at.medium == ulc::Medium::kHub) {
        config.net.medium = MediumKind::kHub;
        config.hosts = {*host_preset(kHubHosts)};
    }
    if (at.medium == ulc::Medium::kShallow) config.net.buffer_octets = kShallowOctets;
    std::vector<ClusterConfig> all{config};
    if (at.medium == ulc::Medium::kSwitch)
        all.emplace_back(config).net.buffer_octets = kSwitchOctets;
    return all;
}

coll::Cell measure(const coll::Situation& at, std::span<const std::string_view> choices) {
    coll::Cell cell{at, 0, {}};
    std::vector<Timed> all;
    for (const std::string_view choice : choices) {
        const Timed timed = time_of(at, choice);
        if (timed.us == 0) continue;
        all.push_back(timed);
        cell.us.emplace_back(choice, timed.us);
    }
    double best = HUGE_VAL;
    for (const Timed& timed : all)
        best = std::min(best, timed.us);
    for (const Timed& timed : all)
        if (timed.us < kNear * best) cell.noise = std::max(cell.noise, timed.noise);
    return cell;
}

std::vector<coll::Cell> measure(const TuningColumn& column) {
    const auto what = std::ranges::find(coll::candidates(), column.at.op, &coll::Candidates::op);
    ULC_CHECK(what != coll::candidates().end());
    std::vector<coll::Cell> cells;
    std::vector<std::string_view> choices = what->choices;
    for (const std::uint64_t octets : column.octets) {
        coll::Situation at = column.at;
        at.octets = octets;
        coll::Cell cell = measure(at, choices);
        std::erase_if(choices, [&](std::string_view choice) {
            return coll::loss_of(cell, choice) > kHopeless - 1;
        });
        if (!cell.us.empty()) cells.push_back(std::move(cell));
    }
    return cells;
}

}  // namespace ulc::sim
