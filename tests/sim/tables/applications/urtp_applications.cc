// SPDX-License-Identifier: BSD-3-Clause
// URTP's applications (§5, figures 12 to 16): a sparse matrix times a vector, again and again, and
// a dense product, on up to four workstations and a hub of 10 Mb/s.
//
// The paper gives no numbers for its figures, and no speed of its processors on these problems: we
// print ours by processors, and judge what its text says of the curves, with speeds that are
// estimates. Figure 14's rival, IBM MPL over UDP, is our own transport by unicast on faster hosts
// of one kind, and its allgather is a ring. The paper says no more of it, and both favour it.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/applications/application_run.h"
#include "tests/sim/tables/applications/work.h"
#include "tests/sim/tables/claims/judge.h"

namespace ulc::sim {
namespace {

constexpr double kRs6000 = 10e6;         ///< dense, a host of speed 1 (estimate)
constexpr double kRs6000Sparse = 4e6;    ///< (estimate)
constexpr std::size_t kRowEntries = 22;  ///< 0.02 % of 110,000
constexpr std::uint16_t kProcessors[] = {1, 2, 4};
constexpr std::size_t kOrderOfRivals = 128;  ///< figure 14

/// Hosts and communication of a program.
struct System {
    const char* profile;
    const char* allgather;  ///< as for ulc_allgather_start(); empty: the choice
    std::vector<HostCosts> hosts;

    /// Returns the speed of the fastest of four hosts, on which the program runs alone.
    [[nodiscard]] double speed_alone() const {
        return std::ranges::max(std::span(hosts).first(4), {}, &HostCosts::speed).speed;
    }
};

System ours() { return {"urtp", "", urtp_hosts()}; }

System mpl() {
    const auto host = host_preset("mpl-udp");
    ULC_CHECK(host.has_value());
    return {"urtp", "ring", std::vector(4, *host)};
}

ClusterConfig cluster_of(const System& system, std::uint16_t nodes, const TableOptions& options) {
    ClusterConfig config;
    config.net.ports = nodes;
    config.net.medium = MediumKind::kHub;
    config.net.bits_per_second = 10'000'000;
    config.net.seed = config.seed = options.seed;
    config.sizes = {256, 256, 1U << 20, 4U << 20};
    config.engine.profile = system.profile;
    config.hosts = system.hosts;
    config.hosts.resize(nodes);
    return config;
}

/// Rank r's share of `all`, in equal parts.
std::size_t share(std::size_t all, std::size_t r, std::size_t ranks) {
    return all * (r + 1) / ranks - all * r / ranks;
}

/// C = A · B by blocks of columns. Seconds; not a number: it failed.
double dense_product(const System& system, std::size_t m, std::uint16_t nodes,
                     const TableOptions& options) {
    const double operations = 2 * cube(static_cast<double>(m));
    if (nodes == 1) return operations / (kRs6000 * system.speed_alone());
    ApplicationRun run(cluster_of(system, nodes, options));
    for (std::uint16_t rank = 0; rank < nodes; ++rank) {
        run.allgather(rank, share(m, 0, nodes) * m * sizeof(double), system.allgather);
        run.compute(rank, time_of(operations / nodes, kRs6000 * system.hosts[rank].speed));
    }
    return run.seconds();
}

/// x ← A · x, mean of some iterations. Seconds.
double sparse_iteration(const System& system, std::size_t unknowns, std::uint16_t nodes,
                        const TableOptions& options) {
    constexpr unsigned kIterations = 4;
    const auto operations = [](std::size_t rows) {
        return 2.0 * static_cast<double>(kRowEntries * rows);
    };
    if (nodes == 1) return operations(unknowns) / (kRs6000Sparse * system.speed_alone());
    ApplicationRun run(cluster_of(system, nodes, options));
    for (std::uint16_t rank = 0; rank < nodes; ++rank) {
        for (unsigned n = 0; n < kIterations; ++n) {
            run.compute(rank, time_of(operations(share(unknowns, rank, nodes)),
                                      kRs6000Sparse * system.hosts[rank].speed));
            run.allgather(rank, share(unknowns, 0, nodes) * sizeof(double), system.allgather);
        }
    }
    return run.seconds() / kIterations;
}

using Program = double (*)(const System&, std::size_t, std::uint16_t, const TableOptions&);

struct Application {
    std::string what;
    std::string name;  ///< first word of its pictures
    const char* unit_of_size;
    const char* times_figure;  ///< in the paper
    const char* gains_figure;
    Program program;
    std::vector<std::size_t> sizes;
};

std::string on(std::size_t processors) { return "on " + std::to_string(processors); }

/// Adds the times of one size. Returns them by processors, in milliseconds.
Curve add_times(Table& table, const std::string& what, const char* figure, const System& system,
                Program program, std::size_t size, const TableOptions& options) {
    Curve times{what, {}, false};
    for (const std::uint16_t nodes : kProcessors) {
        const double ms = program(system, size, nodes, options) * 1e3;
        times.points.emplace_back(nodes, ms);
        table.figures.push_back(
            {what + ", " + on(nodes), "ms", {}, ms, std::string(figure) + " has no numbers"});
    }
    return times;
}

void add(Table& table, const Application& application, const TableOptions& options) {
    Picture times{application.name + "-times",
                  application.what + " on URTP's cluster (" + application.times_figure + ")",
                  "processors",
                  "ms",
                  false,
                  true,
                  {}};
    Curve two{"ours on 2", {}, false};
    Curve four{"ours on 4", {}, false};
    for (const std::size_t size : application.sizes) {
        const std::string what = application.what + ", " + std::to_string(size);
        times.curves.push_back(add_times(table, what, application.times_figure, ours(),
                                         application.program, size, options));
        const auto& points = times.curves.back().points;
        two.points.emplace_back(size, points[0].second / points[1].second);
        four.points.emplace_back(size, points[0].second / points[2].second);
        table.figures.push_back({what + ", speed-up on 4",
                                 "",
                                 {},
                                 four.points.back().second,
                                 std::string(application.gains_figure) + " has no numbers"});
    }
    for (const Curve* curve : {&two, &four})
        table.shapes.push_back(
            {application.what + ": the speed-up grows with the size, " + curve->name + " (URTP §5)",
             text("%.2f to %.2f", curve->points.front().second, curve->points.back().second),
             rises(*curve)});
    table.pictures.push_back(std::move(times));
    table.pictures.push_back(
        {application.name,
         application.what + " on URTP's cluster (" + application.gains_figure + ")",
         application.unit_of_size,
         "speed-up",
         false,
         false,
         {two, four}});
}

/// Figure 14: the dense product by URTP on its hosts, by MPL over UDP on faster ones.
void add_rivals(Table& table, const TableOptions& options) {
    const Curve urtp = add_times(table, "product of 128, URTP's hosts", "figure 14", ours(),
                                 dense_product, kOrderOfRivals, options);
    const Curve rival = add_times(table, "product of 128, MPL over UDP on faster hosts",
                                  "figure 14", mpl(), dense_product, kOrderOfRivals, options);
    const auto both = [&](std::size_t n) {
        return text("%.0f to %.0f ms", urtp.points[n].second, rival.points[n].second);
    };
    const auto wins = [&](std::size_t n) { return urtp.points[n].second < rival.points[n].second; };
    table.shapes.push_back(
        {"product of 128: MPL's hosts are faster on one processor (figure 14)", both(0), !wins(0)});
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}})
        table.shapes.push_back(claim_of("product of 128: URTP is faster " + on(kProcessors[n]) +
                                            ", although its hosts are slower (figure 14)",
                                        both(n), urtp.points[n].second / rival.points[n].second,
                                        {.most = 1}));
    // The hosts' speeds are estimates, and computing goes by them: what URTP itself gains is the
    // time that is not computing.
    const auto exchange = [](const Curve& curve, std::size_t n, const System& system) {
        double slowest = system.hosts[0].speed;
        for (std::size_t rank = 0; rank < kProcessors[n]; ++rank)
            slowest = std::min(slowest, system.hosts[rank].speed);
        const double operations = 2 * cube(kOrderOfRivals) / kProcessors[n];
        return curve.points[n].second - operations / (kRs6000 * slowest) * 1e3;
    };
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}}) {
        const double a = exchange(urtp, n, ours()), b = exchange(rival, n, mpl());
        table.figures.push_back(
            {"product of 128, not computing " + on(kProcessors[n]) + ", URTP", "ms", {}, a, ""});
        table.figures.push_back(
            {"product of 128, not computing " + on(kProcessors[n]) + ", MPL", "ms", {}, b, ""});
    }
    table.shapes.push_back(
        {"product of 128: on 4, URTP takes less time that is not computing",
         text("%.0f to %.0f ms", exchange(urtp, 2, ours()), exchange(rival, 2, mpl())),
         exchange(urtp, 2, ours()) < exchange(rival, 2, mpl())});
    table.pictures.push_back({"applications-urtp-rivals",
                              "Dense product of order 128 (figure 14)",
                              "processors",
                              "ms",
                              false,
                              false,
                              {urtp, rival}});
}

}  // namespace

void add_urtp_applications(Table& table, const TableOptions& options) {
    using Sizes = std::vector<std::size_t>;
    add(table,
        {"dense product", "applications-urtp-dense", "order", "figure 15", "figure 16",
         dense_product, options.quick ? Sizes{64, 128} : Sizes{64, 128, 256}},
        options);
    add(table,
        {"sparse iteration", "applications-urtp-sparse", "unknowns", "figure 12", "figure 13",
         sparse_iteration, options.quick ? Sizes{1100, 4400} : Sizes{1100, 4400, 110'000}},
        options);
    add_rivals(table, options);
}

}  // namespace ulc::sim
