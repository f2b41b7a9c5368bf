// SPDX-License-Identifier: BSD-3-Clause
// Tables 1 to 5 of Express (§5.2): both applications with and without the paper's two techniques.
//
// 32 and 16 simulated nodes run the applications on the page protocol of bench/apps/dsm and on the
// shipped scheduler and transport (programs.h). Four ways of sending differ in one part
// each:
//
//   Express            profile `optimistic`; a message interrupts a thread that computes
//   conservative       the same by profile `conservative` (table 3)
//   polling only       as Express, but no message interrupts (table 5)
//   NX/2's library     conservative; each message costs an upcall, and a copy (table 1)
//
// So no gain is a figure of a host. Charges, by their source: host `express-poll` (presets.cc); 27
// µs for an upcall (§5.1, read), which is also the trap of an access that faults (estimate). The
// paper names the machine, not its speed. Estimates for a node of 80386 and 80387 at 16 MHz: 0.25 M
// floating-point operations and 4 M instructions a second, and 10 MB/s for a copy. The grid
// "by the charge for computing" shows what depends on them.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/applications/work.h"
#include "tests/sim/tables/express/programs.h"
#include "tests/sim/tables/list.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kLink = 22'400'000;  ///< as express-flow
constexpr std::uint16_t kSorProcesses = 32;
constexpr std::uint16_t kRouterProcesses = 16;
constexpr double kFlops = 0.25e6;
constexpr double kSorOperations = 6;  ///< a point: 3 sums, a quotient, a difference, a product
constexpr double kInstructions = 4e6;
constexpr double kRouterInstructions = 25;  ///< a point of a route: indices, a load, a sum
constexpr double kCopyOctet = 100;          ///< ns

enum Way : std::uint8_t { kExpress, kConservative, kPolling, kCrossing, kNx, kWays };
constexpr const char* kWayNames[] = {
    "Express [optimistic]",
    "reserving [conservative]",
    "polling only [optimistic]",
    "reserving, an upcall a message [conservative]",
    "and a copy: NX/2's library [conservative]",
};

ExpressSystem system_of(Way way, std::uint16_t processes, Nanos point, std::uint64_t seed) {
    const auto polls = host_preset("express-poll");
    const auto upcalls = host_preset("express-upcall");
    ULC_CHECK(polls.has_value() && upcalls.has_value());
    const bool reserves = way == kConservative || way >= kCrossing;
    ExpressSystem system;
    NetConfig& net = system.cluster.net;
    net.ports = processes;
    net.medium = MediumKind::kCutThrough;  // circuits of a hypercube
    net.latency = 0;
    net.bits_per_second = kLink;
    net.mtu = 4200;  // a page in a packet, as there
    net.segments = 512;
    net.seed = seed;
    system.cluster.seed = seed;
    system.cluster.sizes = {256, 512, 1U << 20, 1U << 20};
    system.cluster.hosts = {*polls};
    system.cluster.engine.profile = reserves ? "conservative" : "optimistic";
    system.rules.interrupts = way != kPolling;
    system.rules.upcall = upcalls->interrupt_cost;
    system.rules.crosses_always = way >= kCrossing;
    system.rules.copy_octet = way == kNx ? kCopyOctet : 0;
    system.memory = {upcalls->interrupt_cost, polls->submit, kCopyOctet};
    system.point = point;
    return system;
}

/// An application, run in each way.
struct Runs {
    std::array<ProgramFigures, kWays> ways;

    /// Returns how much longer another way takes than Express, %.
    [[nodiscard]] double gain_over(Way other) const {
        return (ways[other].seconds / ways[kExpress].seconds - 1) * 100;
    }
    [[nodiscard]] std::string error() const {
        for (const ProgramFigures& figures : ways)
            if (!figures.error.empty()) return figures.error;
        return {};
    }
};

/// `all`: also kCrossing, which is no table's.
template <typename Run>
Runs each_way(bool all, Run run) {
    Runs runs;
    for (unsigned way = 0; way < kWays; ++way)
        if (all || way != kCrossing) runs.ways[way] = run(static_cast<Way>(way));
    return runs;
}

Nanos point_time(double operations, double speed, double factor) {
    return time_of(operations * factor, speed);
}

Runs sor_runs(const TableOptions& options, double charge = 1, bool pages_first = true) {
    return each_way(charge == 1 && pages_first && !options.quick, [&](Way way) {
        return run_sor(
            system_of(way, kSorProcesses, point_time(kSorOperations, kFlops, charge), options.seed),
            {.iterations = options.quick ? 5U : 20U, .pages_first = pages_first});
    });
}

Runs router_runs(const TableOptions& options, std::uint64_t seed, double charge = 1,
                 bool copies = true) {
    return each_way(charge == 1 && copies && !options.quick, [&](Way way) {
        return run_router(system_of(way, kRouterProcesses,
                                    point_time(kRouterInstructions, kInstructions, charge), seed),
                          {.seed = seed, .copies = copies});
    });
}

/// The middle, and the span, of the circuits.
struct Gains {
    double median = 0;
    double least = 0;
    double most = 0;
};
Gains gains_over(const std::vector<Runs>& all, Way other) {
    std::vector<double> gains;
    gains.reserve(all.size());
    for (const Runs& runs : all)
        gains.push_back(runs.gain_over(other));
    std::ranges::sort(gains);
    return {gains[gains.size() / 2], gains.front(), gains.back()};
}

void add_ways(Table& table, const Runs& sor, const std::vector<Runs>& router, unsigned iterations) {
    Grid grid{"time by way of sending", "ms an iteration, s", {"SOR", "router"}, {}, 2};
    for (unsigned way = 0; way < kWays; ++way) {
        if (sor.ways[way].seconds == 0) continue;  // left out
        std::vector<double> seconds;
        seconds.reserve(router.size());
        for (const Runs& runs : router)
            seconds.push_back(runs.ways[way].seconds);
        std::ranges::sort(seconds);
        grid.rows.push_back(
            {kWayNames[way],
             {sor.ways[way].seconds * 1e3 / iterations, seconds[seconds.size() / 2]}});
    }
    grid.rows.push_back(
        {"of this, computing (mean of the processes)",
         {sor.ways[kExpress].computing * 1e3 / iterations, router[0].ways[kExpress].computing}});
    table.grids.push_back(std::move(grid));
}

/// Adds the gains with other estimates, and of other programs.
void add_variations(Table& table, const TableOptions& options) {
    Grid grid{"gains by the charge for computing, and by program",
              "%",
              {"table 1", "table 3", "table 5"},
              {},
              1};
    const auto add = [&](const std::string& name, const Runs& runs) {
        ULC_CHECK(runs.error().empty());
        grid.rows.push_back(
            {name, {runs.gain_over(kNx), runs.gain_over(kConservative), runs.gain_over(kPolling)}});
    };
    for (const double charge : {0.5, 2.0}) {
        const std::string suffix = charge < 1 ? ", half the charge" : ", twice the charge";
        add("SOR" + suffix, sor_runs(options, charge));
        add("router" + suffix, router_runs(options, options.seed, charge));
    }
    add("SOR, which fetches pages row by row", sor_runs(options, 1, false));
    add("router, which reads the shared costs in place",
        router_runs(options, options.seed, 1, false));
    table.grids.push_back(std::move(grid));
}

void add_gain(Table& table, const std::string& name, Way way, double paper_sor, double paper_router,
              const Runs& sor, const std::vector<Runs>& router) {
    const Gains gains = gains_over(router, way);
    table.figures.push_back({name + ", SOR", "%", paper_sor, sor.gain_over(way), "§5.2"});
    table.figures.push_back(
        {name + ", router", "%", paper_router, gains.median,
         router.size() == 1 ? "§5.2"
                            : "§5.2; circuits: " + text("%.0f to %.0f", gains.least, gains.most)});
}

}  // namespace

Table express_applications(const TableOptions& options) {
    Table table;
    table.name = "express-applications";
    table.title = "Express Messages: two applications on shared memory";
    table.method =
        "SOR of 512 × 256 points on 32 nodes, a router of 1,266 wires on 16, checked against one "
        "process. Gain: time of the other way ÷ time of Express − 1. Router: median of circuits.";
    const unsigned iterations = options.quick ? 5 : 20;
    const Runs sor = sor_runs(options);
    std::vector<Runs> router;
    for (std::uint64_t n = 0; n < (options.quick ? 1U : 3U); ++n)
        router.push_back(router_runs(options, options.seed + n));
    std::string wrong = sor.error();
    for (const Runs& runs : router)
        if (wrong.empty()) wrong = runs.error();
    table.shapes.push_back(
        {"each run's result is that of one process: the grid bit by bit; every wire connected, and "
         "the costs the sums of the routes",
         wrong.empty() ? "all" : wrong, wrong.empty()});
    if (!wrong.empty()) return table;

    const ProgramFigures& s = sor.ways[kExpress];
    const ProgramFigures& r = router[0].ways[kExpress];
    add_gain(table, "table 1: over NX/2's library", kNx, 7.1, 33, sor, router);
    table.figures.push_back(
        {"table 2: sent optimistically, SOR", "%", 100, s.optimistic * 100, "§5.2.1"});
    table.figures.push_back(
        {"table 2: sent optimistically, router", "%", 99.9, r.optimistic * 100, "§5.2.1"});
    table.figures.push_back({"table 2: of these refused, SOR", "%", 0, s.refused * 100, "§5.2.1"});
    table.figures.push_back(
        {"table 2: of these refused, router", "%", 0, r.refused * 100, "§5.2.1"});
    add_gain(table, "table 3: over conservative", kConservative, 2.5, 11, sor, router);
    table.figures.push_back({"table 4: polled, SOR", "%", 94, s.polled * 100, "§5.2.2"});
    table.figures.push_back({"table 4: polled, router", "%", 83, r.polled * 100, "§5.2.2"});
    add_gain(table, "table 5: polling only costs", kPolling, 0, 39, sor, router);

    const auto both = [&](Way way) {
        return text("%.1f and %.1f %%", gains_over(router, way).median, sor.gain_over(way));
    };
    const auto router_gains_more = [&](Way way) {
        return sor.gain_over(way) > 0 && gains_over(router, way).least > sor.gain_over(way);
    };
    table.shapes.push_back(
        {"table 1: both gain, and the router more than SOR", both(kNx), router_gains_more(kNx)});
    table.shapes.push_back(
        {"table 2: 99 % and more are sent optimistically, and under 1 % refused",
         text("%.2f %%, %.2f %% refused", 100 * std::min(s.optimistic, r.optimistic),
              100 * std::max(s.refused, r.refused)),
         std::min(s.optimistic, r.optimistic) >= 0.99 && std::max(s.refused, r.refused) < 0.01});
    table.shapes.push_back({"table 3: both gain, and the router more than SOR", both(kConservative),
                            router_gains_more(kConservative)});
    table.shapes.push_back({"table 4: most messages are polled, and of SOR's more",
                            text("%.0f and %.0f %%", s.polled * 100, r.polled * 100),
                            r.polled > 0.5 && s.polled > r.polled});
    table.shapes.push_back(
        {"table 5: polling only costs the router 15 % and more, and SOR at most 3 %",
         both(kPolling), gains_over(router, kPolling).least >= 15 && sor.gain_over(kPolling) <= 3});
    add_ways(table, sor, router, iterations);
    if (!options.quick) add_variations(table, options);
    return table;
}

}  // namespace ulc::sim
