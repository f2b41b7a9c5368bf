// SPDX-License-Identifier: BSD-3-Clause
// Table 8: the papers' applications on their clusters (GAMMA §6.2, §6.3; URTP §5, which
// urtp_applications.cc adds).
//
// Computing is a time: operations by the paper's speed of one processor. Communication is the
// shipped collectives, on the paper's hosts and medium, in the order of bench/apps/. A host has one
// processor: what its engine takes while the application computes makes the computation that much
// longer.
#include "tests/sim/tables/applications/application_run.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/sim/coll/budgets.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/applications/work.h"
#include "tests/sim/tables/list.h"

namespace ulc::sim {
namespace {

constexpr double kPentium = 183e6;  ///< operations a second: "180-185 MFLOPS" (§6.3, read)
constexpr double kLinpack = 180e6;  ///< §6.2, read: the bound by which its speed-up is taken
constexpr std::size_t kPanel = 64;  ///< columns

constexpr const char* kDirect = "multicast";
constexpr const char* kEmulated = "binomial";  ///< as MPICH does (§6.2)

/// Four PCs on a hub (§6.2.4), at the costs that GAMMA §4.5 gives for a Pentium 133.
ClusterConfig gamma_cluster(std::uint16_t nodes, const TableOptions& options) {
    ClusterConfig config = gamma_hub(nodes);
    config.net.seed = config.seed = options.seed;
    config.sizes = {256, 256, 1U << 20, 4U << 20};
    return config;
}

/// C = A · B with everything at rank 0 (§6.3). Seconds; not a number: it failed.
double master_slave(std::size_t m, std::uint16_t nodes, const char* broadcast,
                    const TableOptions& options) {
    ApplicationRun run(gamma_cluster(nodes, options));
    const std::size_t block = m / nodes * m * sizeof(double);
    for (std::uint16_t rank = 0; rank < nodes; ++rank) {
        run.broadcast(rank, 0, m * m * sizeof(double), broadcast);
        run.scatter(rank, block, "");
        run.compute(rank, time_of(2 * cube(static_cast<double>(m)) / nodes, kPentium));
        run.gather(rank, block, "token");
    }
    return run.seconds();
}

/// LU with panels of 64 columns, dealt cyclically (§6.2), then the backward substitution, as in
/// bench/apps/linpack.cc.
double linpack(std::size_t order, std::uint16_t nodes, const char* broadcast,
               const TableOptions& options) {
    ApplicationRun run(gamma_cluster(nodes, options));
    const std::size_t panels = (order + kPanel - 1) / kPanel;
    const auto columns_of = [&](std::size_t panel) {
        return std::min(kPanel, order - panel * kPanel);
    };
    for (std::size_t k = 0; k < panels; ++k) {
        const auto rows = static_cast<double>(order - k * kPanel);
        const auto width = static_cast<double>(columns_of(k));
        const auto owner = static_cast<std::uint16_t>(k % nodes);
        const std::size_t octets = (order - k * kPanel) * columns_of(k) * sizeof(double);
        for (std::uint16_t rank = 0; rank < nodes; ++rank) {
            if (rank == owner)
                run.compute(rank, time_of(rows * width * width - cube(width) / 3, kLinpack));
            run.broadcast(rank, owner, octets, broadcast);
            double behind = 1;  // the right-hand side, at every rank
            for (std::size_t j = k + 1; j < panels; ++j)
                if (j % nodes == rank) behind += static_cast<double>(columns_of(j));
            const double operations = width * width * behind + 2 * (rows - width) * width * behind;
            run.compute(rank, time_of(operations, kLinpack));
        }
    }
    for (std::size_t k = panels; k-- > 0;) {
        const auto owner = static_cast<std::uint16_t>(k % nodes);
        const double rows = static_cast<double>(k * kPanel + columns_of(k));
        run.compute(owner, time_of(2 * rows * static_cast<double>(columns_of(k)), kLinpack));
        if (k == 0) continue;
        const auto next = static_cast<std::uint16_t>((k - 1) % nodes);
        run.hand_on(owner, next, k * kPanel * sizeof(double));
    }
    return run.seconds();
}

/// Speed-ups on 4 nodes by size, with direct and with emulated broadcast, and on 2.
struct SpeedUps {
    Curve direct{"ours on 4, direct broadcast", {}, false};
    Curve emulated{"ours on 4, broadcast by unicast", {}, false};
    Curve two{"ours on 2", {}, false};
};

template <typename Run>
SpeedUps speed_ups(std::span<const std::size_t> sizes, double (*alone)(std::size_t), Run run) {
    SpeedUps out;
    for (const std::size_t size : sizes) {
        const auto x = static_cast<double>(size);
        out.direct.points.emplace_back(x, alone(size) / run(size, 4, kDirect));
        out.emulated.points.emplace_back(x, alone(size) / run(size, 4, kEmulated));
        out.two.points.emplace_back(x, alone(size) / run(size, 2, kDirect));
    }
    return out;
}

/// Ours is the greater at each point.
bool above(const Curve& greater, const Curve& lesser) {
    for (std::size_t n = 0; n < greater.points.size(); ++n)
        if (!(greater.points[n].second > lesser.points[n].second)) return false;
    return true;
}

void add_gamma(Table& table, const std::string& what, const std::string& name, SpeedUps ours,
               const std::vector<std::optional<double>>& paper) {
    Curve papers{"GAMMA on 4", {}, true};
    double worst = 1;
    for (std::size_t n = 0; n < ours.direct.points.size(); ++n) {
        const auto [x, direct] = ours.direct.points[n];
        const std::string at = what + text(" of order %.0f, speed-up on 4", x);
        table.figures.push_back({at, "", paper[n], direct, "direct broadcast"});
        table.figures.push_back(
            {at, "", {}, ours.emulated.points[n].second, "broadcast by unicast"});
        table.figures.push_back({what + text(" of order %.0f, speed-up on 2", x),
                                 "",
                                 {},
                                 ours.two.points[n].second,
                                 "direct broadcast"});
        if (paper[n]) papers.points.emplace_back(x, *paper[n]);
        worst = std::min(worst, direct / paper[n].value_or(direct));
    }
    if (!papers.points.empty())
        table.shapes.push_back({what + ": none on 4 is more than 5 % below the paper's",
                                text("at worst %.2f of it", worst), worst > 0.95});
    table.shapes.push_back(
        {what + ": direct broadcast beats broadcast by unicast at every order (figure 6.3)",
         text("smallest: %.2f to %.2f", ours.direct.points[0].second,
              ours.emulated.points[0].second),
         above(ours.direct, ours.emulated)});
    table.shapes.push_back(
        {what + ": 4 nodes are faster than 2 at every order",
         text("smallest: %.2f to %.2f", ours.direct.points[0].second, ours.two.points[0].second),
         above(ours.direct, ours.two)});
    table.shapes.push_back(
        {what + ": the speed-up grows with the order",
         text("%.2f to %.2f", ours.direct.points.front().second, ours.direct.points.back().second),
         rises(ours.direct)});
    table.pictures.push_back({name,
                              what + " on GAMMA's cluster",
                              "order",
                              "speed-up",
                              false,
                              false,
                              {papers, ours.direct, ours.emulated, ours.two}});
}

double product_alone(std::size_t m) { return 2 * cube(static_cast<double>(m)) / kPentium; }
double linpack_alone(std::size_t n) {
    const auto order = static_cast<double>(n);
    return (2 * cube(order) / 3 + 2 * order * order) / kLinpack;
}
}  // namespace

Table applications(const TableOptions& options) {
    Table table;
    table.name = "applications";
    table.title = "The papers' applications: speed-up against one processor";
    table.method =
        "Computing by the paper's speed of one processor, communication by the shipped collectives "
        "in virtual time. GAMMA: hub at "
        "100 Mb/s, hosts gamma-0.4, 183 and 180 MFLOPS. URTP: hub at 10 Mb/s, its hosts, 10 and 4 "
        "MFLOPS (estimates).";
    using Sizes = std::vector<std::size_t>;
    const Sizes products = options.quick ? Sizes{400, 600} : Sizes{400, 600, 1000, 1500};
    const std::vector<std::optional<double>> paper{1.61, 1.98, 2.51, 2.84};
    add_gamma(table, "master and slaves", "applications-product",
              speed_ups(products, product_alone,
                        [&](std::size_t m, std::uint16_t nodes, const char* broadcast) {
                            return master_slave(m, nodes, broadcast, options);
                        }),
              paper);
    const Sizes orders = options.quick ? Sizes{512, 1000} : Sizes{1000, 2000, 4000};
    add_gamma(table, "Linpack", "applications-linpack",
              speed_ups(orders, linpack_alone,
                        [&](std::size_t n, std::uint16_t nodes, const char* broadcast) {
                            return linpack(n, nodes, broadcast, options);
                        }),
              options.quick ? std::vector<std::optional<double>>{{}, {}}
                            : std::vector<std::optional<double>>{{}, {}, 2.88});
    add_urtp_applications(table, options);
    return table;
}

}  // namespace ulc::sim
