// SPDX-License-Identifier: BSD-3-Clause
// Table 9: molecular dynamics on GAMMA's cluster (GAMMA §6.4, figure 6.6).
//
// The figure draws speed-ups without numbers, and GAMMA §6.4 does not say how long a step takes on
// one processor. So a step has the time at which the original turns at eight nodes, as §6.4.4 says;
// the rest follows. Computing is that time; the exchanges are the shipped messages and collectives
// on the simulated hub. MD and MD-TOKEN have a host of Linux TCP at a third of the Pentium II's
// speed: a Pentium 133 with PVM's layers above TCP (estimate).
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "tests/sim/coll/budgets.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/applications/application_run.h"
#include "tests/sim/tables/list.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kMolecules = 4000;  ///< read
constexpr std::size_t kVector = 3 * sizeof(double);
constexpr unsigned kDipoleTurns = 8;  ///< as many as ulc-md needs at a liquid's density
constexpr double kStepAlone = 8;      ///< seconds on one processor (fitted, see above)

/// Ways in which ranks bring their parts to each other (§6.4.2, §6.4.3).
enum class Way { kMessages, kToken, kTokenOnly, kBroadcast };

constexpr double kLayered = 1.0 / 3;  ///< part of the preset's speed (estimate)

/// Each rank's part to each other rank: all at once, or one rank after another.
void exchange_by_messages(ApplicationRun& run, std::uint16_t nodes, std::size_t octets, Way way) {
    const bool by_token = way != Way::kMessages;
    const auto other = [nodes](std::uint16_t rank, std::uint16_t n) {
        return static_cast<std::uint16_t>((rank + n) % nodes);
    };
    for (std::uint16_t outer = 0; outer < nodes; ++outer) {
        for (std::uint16_t inner = 0; inner < nodes && way != Way::kTokenOnly; ++inner) {
            const std::uint16_t from = by_token ? outer : inner;
            run.hand_on(from, other(from, by_token ? inner : outer), octets);
        }
        if (by_token && outer + 1 < nodes) run.hand_on(outer, other(outer, 1), 1);
    }
}

/// Seconds of one step: the positions go around, then forces are computed, then the dipoles of each
/// turn go around. Forces take half of the computing, the turns the other half (estimate).
double step_seconds(Way way, std::uint16_t nodes, double speed, const TableOptions& options) {
    ClusterConfig config = gamma_hub(nodes);
    config.net.seed = config.seed = options.seed;
    config.sizes = {256, 256, 1U << 20, 4U << 20};
    if (way != Way::kBroadcast) {
        config.hosts = {host_preset("linux-tcp-pii300").value()};
        config.hosts[0].speed = speed;
    }
    ApplicationRun run(config);
    const std::size_t octets = (kMolecules + nodes - 1U) / nodes * kVector;
    const auto exchange = [&] {
        if (way != Way::kBroadcast) return exchange_by_messages(run, nodes, octets, way);
        for (std::uint16_t rank = 0; rank < nodes; ++rank)
            run.allgather(rank, octets, "round_robin");
    };
    const auto compute = [&](double seconds) {
        for (std::uint16_t rank = 0; rank < nodes; ++rank)
            run.compute(rank, static_cast<Nanos>(seconds / nodes * 1e9));
    };
    exchange();
    compute(kStepAlone / 2);
    for (unsigned turn = 0; turn < kDipoleTurns; ++turn) {
        compute(kStepAlone / 2 / kDipoleTurns);
        exchange();
    }
    return run.seconds();
}

std::string text(const char* format, double a, double b) {
    std::array<char, 100> out{};
    std::snprintf(out.data(), out.size(), format, a, b);
    return out.data();
}

double at(const Curve& curve, double nodes) {
    const auto found = std::ranges::find(curve.points, nodes, &std::pair<double, double>::first);
    return found->second;
}

}  // namespace

Table molecular_dynamics(const TableOptions& options) {
    Table table;
    table.name = "molecular-dynamics";
    table.title = "Molecular dynamics of 4,000 molecules: speed-up by nodes";
    table.method =
        "Hub at 100 Mb/s. MD-GAMMA: hosts gamma-0.4, allgather by broadcasts in turn. MD, "
        "MD-TOKEN: "
        "hosts linux-tcp-pii300 at a third of their speed, a message to each other rank, all at "
        "once or "
        "rank by rank. A step takes 8 s on one processor (fitted to where MD turns) and exchanges "
        "nine "
        "times.";
    Curve md{"MD", {}, false};
    Curve token{"MD-TOKEN", {}, false};
    Curve gamma{"MD-GAMMA", {}, false};
    for (const std::uint16_t nodes : {2, 4, 8, 12, 16}) {
        for (const auto& [curve, way] :
             {std::pair{&md, Way::kMessages}, {&token, Way::kToken}, {&gamma, Way::kBroadcast}}) {
            curve->points.emplace_back(nodes,
                                       kStepAlone / step_seconds(way, nodes, kLayered, options));
            table.figures.push_back({curve->name + " on " + std::to_string(nodes) + ", speed-up",
                                     "",
                                     {},
                                     curve->points.back().second,
                                     "figure 6.6 has no numbers"});
        }
    }
    table.figures.push_back(
        {"MD, most nodes that gain", "", 8.0,
         std::ranges::max(md.points, {}, &std::pair<double, double>::second).first,
         "§6.4.4: a step's 8 s are fitted to it", FigureKind::kInput});
    table.shapes.push_back({"MD-GAMMA rises to 16 nodes",
                            text("%.2f on 8, %.2f on 16", at(gamma, 8), at(gamma, 16)),
                            std::ranges::is_sorted(gamma.points)});
    table.shapes.push_back(
        {"MD-GAMMA is the fastest on 8 and 16 nodes",
         text("on 16: %.2f, MD %.2f", at(gamma, 16), at(md, 16)),
         at(gamma, 8) > at(md, 8) && at(gamma, 16) > at(md, 16) && at(gamma, 16) > at(token, 16)});
    table.shapes.push_back({"MD-TOKEN is no faster than MD on 16 nodes",
                            text("%.2f, MD %.2f", at(token, 16), at(md, 16)),
                            at(token, 16) <= at(md, 16)});
    const double tokens = step_seconds(Way::kTokenOnly, 16, kLayered, options) - kStepAlone / 16;
    const double share = tokens * at(token, 16) / kStepAlone;
    table.shapes.push_back({"the token itself costs less than 5 % on 16 nodes",
                            text("%.1f %% of %.2f s", 100 * share, kStepAlone / at(token, 16)),
                            share > 0 && share < 0.05});
    const double quick =
        step_seconds(Way::kMessages, 16, 1, options) / step_seconds(Way::kToken, 16, 1, options);
    table.shapes.push_back({"a token gains on hosts that send at less cost (§6.4.4, its reason)",
                            text("%.2f of MD's speed at full speed, %.2f at a third", quick,
                                 at(token, 16) / at(md, 16)),
                            quick > 1 && quick > at(token, 16) / at(md, 16)});
    table.pictures.push_back({"molecular-dynamics",
                              "Molecular dynamics on GAMMA's cluster",
                              "nodes",
                              "speed-up",
                              false,
                              false,
                              {md, token, gamma}});
    return table;
}

}  // namespace ulc::sim
