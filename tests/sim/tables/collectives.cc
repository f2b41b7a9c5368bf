// SPDX-License-Identifier: BSD-3-Clause
// Compares our own collectives with their budgets (tests/sim/coll/budgets.h), which
// coll/budget_test.cc tests.
//
// On a switch of Fast Ethernet with ideal hosts, as time_collective() measures: all start at once
// on a silent wire, until the last is done; mean of four, the root rotates. On GAMMA's hub with
// GAMMA's hosts by its loop, as table gamma-barriers, next to the line of its two chains, equation
// (5.2). References are shipped algorithms that are not chosen there: they show the benefit of the
// choice.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tests/sim/coll/budgets.h"
#include "tests/sim/tables/list.h"
#include "tests/sim/tables/measure.h"

namespace ulc::sim {
namespace {

constexpr unsigned kRounds = 4;
constexpr std::size_t kBroadcastOctets = 64 * 1024;
constexpr std::size_t kBlockOctets = 1024;
constexpr std::size_t kLargeBlockOctets = 8192;
constexpr const char* kChosen = "";

using Nodes = std::vector<std::uint16_t>;

std::string text(const char* format, double a, double b = 0) {
    std::array<char, 100> out{};
    std::snprintf(out.data(), out.size(), format, a, b);
    return out.data();
}

std::vector<std::string> columns_of(const Nodes& nodes) {
    std::vector<std::string> out;
    for (const std::uint16_t n : nodes)
        out.push_back(std::to_string(n));
    return out;
}

/// Measures on fast_ethernet(); a failed measurement has no number.
CollectiveTiming timed(std::uint16_t nodes, const Operation& operation,
                       const TableOptions& options) {
    ClusterConfig config = fast_ethernet(nodes);
    config.net.seed = config.seed = options.seed;
    CollectiveTiming timing = time_collective(config, operation, kRounds);
    if (!timing.ok) timing.us = timing.payload_octets = std::nan("");
    return timing;
}

/// Returns microseconds, by number of nodes.
std::vector<double> times_of(const Nodes& nodes, const Operation& operation,
                             const TableOptions& options) {
    std::vector<double> out;
    for (const std::uint16_t n : nodes)
        out.push_back(timed(n, operation, options).us);
    return out;
}

std::vector<double> ratios(const std::vector<double>& values, const std::vector<double>& to) {
    std::vector<double> out;
    for (std::size_t i = 0; i < values.size(); ++i)
        out.push_back(values[i] / to[i]);
    return out;
}

void add_broadcast(Table& table, const TableOptions& options) {
    const Nodes nodes = options.quick ? Nodes{2, 16} : Nodes{2, 4, 8, 16};
    const auto times = [&](const char* algorithm) {
        std::vector<double> out = times_of(nodes,
                                           {.kind = CollectiveKind::kBroadcast,
                                            .algorithm = algorithm,
                                            .octets = kBroadcastOctets},
                                           options);
        for (double& time : out)
            time /= 1000;
        return out;
    };
    const std::vector<double> chosen = times(kChosen);
    const std::vector<double> tree = times("binomial");
    const std::vector<double> to_2(nodes.size(), chosen.front());
    const std::vector<double> ratio = ratios(chosen, to_2);
    const std::vector<double> tree_ratio = ratios(tree, to_2);
    table.grids.push_back({"broadcast of 64 KiB on the switch, by nodes",
                           "ms",
                           columns_of(nodes),
                           {{"chosen", chosen}, {"binomial tree", tree}},
                           2});
    table.grids.push_back({"the same, of the chosen one's time to 2 nodes",
                           "×",
                           columns_of(nodes),
                           {{"chosen", ratio}, {"binomial tree", tree_ratio}},
                           2});
    table.shapes.push_back(
        {text("a broadcast to 16 nodes takes at most %.1f × what it takes to 2", kBroadcastTo16Max),
         text("%.2f ×, the binomial tree %.2f", ratio.back(), tree_ratio.back()),
         ratio.back() <= kBroadcastTo16Max});
}

void add_allgather(Table& table, const TableOptions& options) {
    const Nodes nodes = options.quick ? Nodes{4, 16} : Nodes{4, 8, 16};
    const auto times = [&](const char* algorithm) {
        return times_of(
            nodes,
            {.kind = CollectiveKind::kAllgather, .algorithm = algorithm, .octets = kBlockOctets},
            options);
    };
    std::vector<double> bound;
    for (const std::uint16_t n : nodes)
        bound.push_back(allgather_bound_us(n, kBlockOctets));
    const std::vector<double> chosen = times(kChosen);
    const std::vector<double> robin = times("round_robin");
    const std::vector<double> ratio = ratios(chosen, bound);
    const std::vector<double> robin_ratio = ratios(robin, bound);
    table.grids.push_back(
        {"allgather of 1 KiB each on the switch, by nodes",
         "µs",
         columns_of(nodes),
         {{"the wire's bound", bound}, {"chosen", chosen}, {"round_robin", robin}},
         0});
    table.grids.push_back({"the same, of the bound: the others' blocks, in at one port",
                           "×",
                           columns_of(nodes),
                           {{"chosen", ratio}, {"round_robin", robin_ratio}},
                           2});
    table.shapes.push_back(
        {text("an allgather on 16 nodes takes at most %.1f × the wire's bound", kAllgatherMax),
         text("%.2f ×, round_robin %.2f", ratio.back(), robin_ratio.back()),
         ratio.back() <= kAllgatherMax});
}

void add_barrier(Table& table, const TableOptions& options) {
    const Nodes nodes = options.quick ? Nodes{4, 16} : Nodes{4, 8, 16, 64};
    const auto times = [&](const char* algorithm) {
        return times_of(nodes, {.kind = CollectiveKind::kBarrier, .algorithm = algorithm}, options);
    };
    const std::vector<double> chosen = times(kChosen);
    std::vector<double> best(nodes.size(), std::numeric_limits<double>::infinity());
    Grid grid{"barrier on the switch, by nodes", "µs", columns_of(nodes), {{"chosen", chosen}}, 1};
    bool holds = true;
    for (const char* known : kKnownBarriers) {
        const std::vector<double> us = times(known);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            holds = holds && chosen[i] <= us[i];
            best[i] = std::min(best[i], us[i]);
        }
        grid.rows.push_back({known, us});
    }
    table.grids.push_back(std::move(grid));
    table.shapes.push_back(
        {"a barrier on the switch is at no number of nodes slower than the best of the known ones",
         text("at worst %.2f × the best", std::ranges::max(ratios(chosen, best))), holds});
}

/// Counts like time_collective(): payload of data packets alone, a multicast once.
void add_once(Table& table, const TableOptions& options) {
    const Nodes nodes = options.quick ? Nodes{2, 5, 16} : Nodes{2, 5, 16, 64};
    const auto multiples = [&](const Operation& operation) {
        const bool each = operation.kind == CollectiveKind::kAllgather;
        std::vector<double> out;
        for (const std::uint16_t n : nodes)
            out.push_back(timed(n, operation, options).payload_octets /
                          static_cast<double>(operation.octets * (each ? n : 1U)));
        return out;
    };
    const auto allgather = [](std::size_t octets, const char* algorithm) {
        return Operation{
            .kind = CollectiveKind::kAllgather, .algorithm = algorithm, .octets = octets};
    };
    Grid grid{"payload on the wire, as a multiple of each octet once, by nodes",
              "×",
              columns_of(nodes),
              {{"broadcast, 64 KiB",
                multiples({.kind = CollectiveKind::kBroadcast, .octets = kBroadcastOctets})},
               {"allgather, 1 KiB", multiples(allgather(kBlockOctets, kChosen))},
               {"allgather, 8 KiB", multiples(allgather(kLargeBlockOctets, kChosen))}},
              3};
    for (const Grid::Row& row : grid.rows) {
        const bool holds = std::ranges::all_of(
            row.values, [](double once) { return once >= 1 && once <= kOnceMax; });
        table.shapes.push_back({row.name + text(": each octet is on the wire once, within %.0f %%",
                                                (kOnceMax - 1) * 100),
                                text("at worst %.3f ×", std::ranges::max(row.values)), holds});
    }
    grid.rows.push_back({"allgather, 1 KiB, ring", multiples(allgather(kBlockOctets, "ring"))});
    table.grids.push_back(std::move(grid));
}

void add_hub(Table& table, const TableOptions& options) {
    const Nodes shown = options.quick ? Nodes{3, 6, 8, 16} : Nodes{3, 4, 6, 8, 12, 16, 24, 32};
    Nodes nodes = shown;
    if (!options.quick) {  // the claim is about every number of nodes
        nodes.resize(30);
        std::iota(nodes.begin(), nodes.end(), std::uint16_t{3});
    }
    for (const char* profile : kHubProfiles) {
        double worst = 0;
        bool holds = true;
        for (const std::uint16_t n : nodes) {
            ClusterConfig config = gamma_hub(n);
            config.net.seed = config.seed = options.seed;
            config.engine.profile = profile;
            const Measured chosen = barrier_median(config, kChosen, kHubTrials, kHubRuns);
            const double us = chosen.ok ? chosen.us : std::nan("");
            const double ratio = us / two_chains_us(n);
            holds = holds && ratio <= 1;
            worst = std::max(worst, ratio);
            if (std::ranges::find(shown, n) == shown.end()) continue;
            table.figures.push_back(
                {"barrier on the hub, " + std::to_string(n) + " nodes, " + profile, "µs",
                 two_chains_us(n), us, n > 16 ? "(5.2), extrapolated" : "(5.2)"});
        }
        table.shapes.push_back({std::string(profile) + ": a barrier on the hub takes no longer "
                                                       "than GAMMA's two chains, 20 + 8.5 N µs",
                                text("at worst %.3f ×", worst), holds});
    }
}

}  // namespace

Table collectives(const TableOptions& options) {
    Table table;
    table.name = "collectives";
    table.title = "Collectives on simulated Ethernet against their budgets";
    table.method =
        "Switch at 100 Mb/s, ideal hosts: from the start of all until the last is done, mean of 4. "
        "Hub at 100 Mb/s with 0.9 µs, hosts gamma-0.4: GAMMA's loop, 24 trials, paper: its two "
        "chains. Chosen: what the library takes when no algorithm is named.";
    add_broadcast(table, options);
    add_allgather(table, options);
    add_barrier(table, options);
    add_once(table, options);
    add_hub(table, options);
    return table;
}

}  // namespace ulc::sim
