// SPDX-License-Identifier: BSD-3-Clause
// Table 8: the papers' applications on their clusters (GAMMA §6.2, §6.3; URTP §5, which
// urtp_applications.cc adds).
//
// Computing is a time: operations by the paper's speed of one processor. Communication is the
// shipped collectives, on the paper's hosts and medium, in the order of bench/apps/. A host has one
// processor: what its engine takes while the application computes makes the computation that much
// longer.
//
// GAMMA's rival is MPICH over Linux TCP on the same PCs. Its host is TCP's with the cost of MPICH's
// queues (presets.cc), its transport is go-back-n with TCP's acknowledgements, and its collectives
// are messages from rank to rank, each whole before it is passed on.
#include "tests/sim/tables/applications/application_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "tests/sim/coll/budgets.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/applications/work.h"
#include "tests/sim/tables/claims/judge.h"
#include "tests/sim/tables/list.h"
#include "tests/sim/tables/measure.h"

namespace ulc::sim {
namespace {

constexpr double kPentium = 183e6;  ///< operations a second: "180-185 MFLOPS" (§6.3, read)
constexpr double kLinpack = 180e6;  ///< §6.2, read: the bound by which its speed-up is taken
constexpr double kLinpackGamma = 519e6 / kLinpack;  ///< at order 4000 on 4 (§6.2.5, read)
constexpr double kLinpackMpich = 450e6 / kLinpack;  ///< it does not exceed that (§6.2.5, read)
constexpr std::size_t kPanel = 64;                  ///< columns

/// Bytes of second-level cache (§6.2.4, read).
constexpr double kCache = 512 * 1024;
/// A panel is factored by level 2 (bench/apps/lu.cc), which reads and writes each element of 8
/// bytes for 2 operations: a copy of 8 bytes. A panel beyond the cache goes at the speed of memory,
/// 150 MB/s by copy (estimate, as for the hosts in presets.cc).
constexpr double kFactor = 150e6 / sizeof(double) * 2;

/// The system under a program: GAMMA's hosts, with ULC's broadcast or with one by unicast, or MPICH
/// over TCP.
enum class System : std::uint8_t { kDirect, kUnicast, kMpich };

/// Four PCs on a hub (§6.2.4), at the costs that GAMMA §4.5 gives for a Pentium 133, or at those of
/// MPICH over Linux TCP on the Pentium II.
ClusterConfig cluster_of(System system, std::uint16_t nodes, const TableOptions& options) {
    ClusterConfig config = gamma_hub(nodes);
    config.net.seed = config.seed = options.seed;
    config.sizes = {256, 256, 1U << 20, 4U << 20};
    if (system == System::kMpich) {
        config.hosts = {host_preset("mpich-tcp-pii300").value()};
        use_linux_tcp(config);
    }
    return config;
}

/// A program's phases for all ranks, by a system's collectives.
class Program {
public:
    Program(System system, std::uint16_t nodes, const TableOptions& options)
        : system_(system), nodes_(nodes), run_(cluster_of(system, nodes, options)) {}

    void broadcast(std::uint16_t root, std::size_t octets) {
        if (system_ == System::kMpich) return broadcast_by_messages(root, octets);
        for (std::uint16_t rank = 0; rank < nodes_; ++rank)
            run_.broadcast(rank, root, octets,
                           system_ == System::kDirect ? "multicast" : "binomial");
    }
    void scatter(std::size_t block) {
        for (std::uint16_t rank = 0; rank < nodes_; ++rank)
            system_ == System::kMpich ? run_.hand_on(0, rank, block)
                                      : run_.scatter(rank, block, "");
    }
    void gather(std::size_t block) {
        for (std::uint16_t rank = 0; rank < nodes_; ++rank)
            system_ == System::kMpich ? run_.hand_on(rank, 0, block)
                                      : run_.gather(rank, block, "token");
    }
    [[nodiscard]] ApplicationRun& run() { return run_; }
    [[nodiscard]] std::uint16_t nodes() const { return nodes_; }

private:
    /// MPICH's binomial tree: the largest subtree first, the whole message before it is passed on.
    void broadcast_by_messages(std::uint16_t root, std::size_t octets) {
        const auto rank_at = [&](unsigned position) {
            return static_cast<std::uint16_t>((position + root) % nodes_);
        };
        for (unsigned half = std::bit_ceil(unsigned{nodes_}) / 2; half > 0; half /= 2)
            for (unsigned top = 0; top + half < nodes_; top += 2 * half)
                run_.hand_on(rank_at(top), rank_at(top + half), octets);
    }

    System system_;
    std::uint16_t nodes_;
    ApplicationRun run_;
};

/// C = A · B with everything at rank 0 (§6.3). Seconds; not a number: it failed.
double master_slave(std::size_t m, std::uint16_t nodes, System system,
                    const TableOptions& options) {
    Program program(system, nodes, options);
    const std::size_t block = m / nodes * m * sizeof(double);
    program.broadcast(0, m * m * sizeof(double));
    program.scatter(block);
    for (std::uint16_t rank = 0; rank < nodes; ++rank)
        program.run().compute(rank, time_of(2 * cube(static_cast<double>(m)) / nodes, kPentium));
    program.gather(block);
    return program.run().seconds();
}

/// LU with panels of 64 columns, dealt cyclically (§6.2), then the backward substitution, as in
/// bench/apps/linpack.cc.
double linpack(std::size_t order, std::uint16_t nodes, System system, const TableOptions& options) {
    Program program(system, nodes, options);
    ApplicationRun& run = program.run();
    const std::size_t panels = (order + kPanel - 1) / kPanel;
    const auto columns_of = [&](std::size_t panel) {
        return std::min(kPanel, order - panel * kPanel);
    };
    for (std::size_t k = 0; k < panels; ++k) {
        const auto rows = static_cast<double>(order - k * kPanel);
        const auto width = static_cast<double>(columns_of(k));
        const auto owner = static_cast<std::uint16_t>(k % nodes);
        const std::size_t octets = (order - k * kPanel) * columns_of(k) * sizeof(double);
        const bool cached = rows * width * sizeof(double) <= kCache;
        run.compute(owner,
                    time_of(rows * width * width - cube(width) / 3, cached ? kLinpack : kFactor));
        program.broadcast(owner, octets);
        for (std::uint16_t rank = 0; rank < nodes; ++rank) {
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

/// Speed-ups by size.
struct SpeedUps {
    Curve direct{"ours on 4, direct broadcast", {}, false};
    Curve emulated{"ours on 4, broadcast by unicast", {}, false};
    Curve two{"ours on 2", {}, false};
    Curve mpich{"MPICH over TCP on 4", {}, false};
    Curve mpich_two{"MPICH over TCP on 2", {}, false};
};

template <typename Run>
SpeedUps speed_ups(std::span<const std::size_t> sizes, double (*alone)(std::size_t), Run run) {
    SpeedUps out;
    for (const std::size_t size : sizes) {
        const auto add = [&](Curve& curve, std::uint16_t nodes, System system) {
            curve.points.emplace_back(static_cast<double>(size),
                                      alone(size) / run(size, nodes, system));
        };
        add(out.direct, 4, System::kDirect);
        add(out.emulated, 4, System::kUnicast);
        add(out.two, 2, System::kDirect);
        add(out.mpich, 4, System::kMpich);
        add(out.mpich_two, 2, System::kMpich);
    }
    return out;
}

/// Ours is the greater at each point.
bool above(const Curve& greater, const Curve& lesser) {
    for (std::size_t n = 0; n < greater.points.size(); ++n)
        if (!(greater.points[n].second > lesser.points[n].second)) return false;
    return true;
}

/// The paper's speed-ups on 4 nodes, by size.
using Papers = std::vector<std::optional<double>>;

/// The paper's speed-ups of MPICH on 4 nodes, by size; all predictions, or all bounds.
struct Rivals {
    Papers papers;
    FigureKind kind = FigureKind::kPrediction;
    const char* bound = "";  ///< claim, if they are bounds
};

/// Adds MPICH's speed-up at one size, and the claim on it.
void add_rival(Table& table, std::string what, const Rivals& mpich, std::size_t n, double ours) {
    Figure figure{std::move(what), "", mpich.papers[n], ours, "MPICH over TCP", mpich.kind};
    if (!figure.paper) {
        figure.kind = FigureKind::kPrediction;
        table.figures.push_back(std::move(figure));
    } else if (mpich.kind == FigureKind::kPrediction) {
        add_near(table, std::move(figure));
    } else {
        add_bound(table, std::move(figure), mpich.bound);
    }
}

void add_gamma(Table& table, const std::string& what, const std::string& name, const SpeedUps& ours,
               const Papers& paper, const Rivals& mpich) {
    Curve papers{"GAMMA on 4", {}, true};
    double worst = 1;
    for (std::size_t n = 0; n < ours.direct.points.size(); ++n) {
        const auto [x, direct] = ours.direct.points[n];
        const auto add = [&, order = x](std::optional<double> theirs, const Curve& curve, int nodes,
                                        const char* note) {
            table.figures.push_back({what + text(" of order %.0f, speed-up on %.0f", order, nodes),
                                     "", theirs, curve.points[n].second, note});
        };
        add(paper[n], ours.direct, 4, "direct broadcast");
        add({}, ours.emulated, 4, "broadcast by unicast");
        add({}, ours.two, 2, "direct broadcast");
        add_rival(table, what + text(" of order %.0f, speed-up on 4, MPICH", x), mpich, n,
                  ours.mpich.points[n].second);
        add({}, ours.mpich_two, 2, "MPICH over TCP");
        if (paper[n]) papers.points.emplace_back(x, *paper[n]);
        worst = std::min(worst, direct / paper[n].value_or(direct));
    }
    if (!papers.points.empty())
        table.shapes.push_back({what + ": none on 4 is more than 5 % below the paper's",
                                text("at worst %.2f of it", worst), worst > 0.95});
    const auto compare = [&](const char* claim, const Curve& greater, const Curve& lesser) {
        table.shapes.push_back(
            {what + claim,
             text("smallest: %.2f to %.2f", greater.points[0].second, lesser.points[0].second),
             above(greater, lesser)});
    };
    compare(": direct broadcast beats broadcast by unicast at every order (figure 6.3)",
            ours.direct, ours.emulated);
    compare(": 4 nodes are faster than 2 at every order", ours.direct, ours.two);
    compare(": direct broadcast beats MPICH over TCP at every order", ours.direct, ours.mpich);
    table.shapes.push_back(
        {what + ": the speed-up grows with the order",
         text("%.2f to %.2f", ours.direct.points.front().second, ours.direct.points.back().second),
         rises(ours.direct)});
    table.pictures.push_back(
        {name,
         what + " on GAMMA's cluster",
         "order",
         "speed-up",
         false,
         false,
         {papers, ours.direct, ours.emulated, ours.two, ours.mpich, ours.mpich_two}});
}

/// §6.3: MPICH's broadcast costs so much that two nodes are faster than four, unless the matrix is
/// large.
void add_mpich_product(Table& table, const SpeedUps& ours) {
    const double four = ours.mpich.points.front().second;
    const double two = ours.mpich_two.points.front().second;
    table.shapes.push_back(
        {"master and slaves: MPICH is faster on 2 than on 4 at the smallest "
         "order, and than one processor (§6.3)",
         text("%.2f on 2, %.2f on 4", two, four), two > four && two > 1});
    table.shapes.push_back(
        {"master and slaves: MPICH is slower than broadcast by unicast on GAMMA's hosts",
         text("smallest: %.2f to %.2f", ours.emulated.points[0].second, four),
         above(ours.emulated, ours.mpich)});
}

/// §6.2.5: more processors pay "only when the matrix becomes large enough", and GAMMA by unicast is
/// "similar".
void add_mpich_linpack(Table& table, const SpeedUps& ours) {
    const auto gain = [&](std::size_t n) {
        return ours.mpich.points[n].second / ours.mpich_two.points[n].second - 1;
    };
    const std::size_t last = ours.mpich.points.size() - 1;
    table.shapes.push_back(
        {"Linpack: MPICH gains less than 10 % from 2 more nodes at the smallest order, and more at "
         "each greater one (§6.2.5)",
         text("%.0f %%, then %.0f %%", gain(0) * 100, gain(1) * 100), gain(0) < 0.1 && [&] {
             for (std::size_t n = 1; n <= last; ++n)
                 if (gain(n) <= gain(n - 1)) return false;
             return true;
         }()});
    const double similar = ours.mpich.points[last].second / ours.emulated.points[last].second - 1;
    table.shapes.push_back(
        {"Linpack: MPICH at the largest order is within 15 % of broadcast by "
         "unicast on GAMMA's hosts (figure 6.3)",
         text("%.1f %%", similar * 100), std::abs(similar) < 0.15});
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
        "100 Mb/s, hosts gamma-0.4, 183 and 180 MFLOPS, a panel beyond the cache 38 (estimate). "
        "MPICH: host mpich-tcp-pii300, messages by gbn+block. URTP: hub at 10 Mb/s, its hosts, 10 "
        "and 4 MFLOPS (estimates).";
    using Sizes = std::vector<std::size_t>;
    const Sizes products = options.quick ? Sizes{400, 1500} : Sizes{400, 600, 1000, 1500};
    const SpeedUps product =
        speed_ups(products, product_alone, [&](std::size_t m, std::uint16_t nodes, System system) {
            return master_slave(m, nodes, system, options);
        });
    add_gamma(table, "master and slaves", "applications-product", product,
              options.quick ? Papers{1.61, 2.84} : Papers{1.61, 1.98, 2.51, 2.84},
              {options.quick ? Papers{{}, 2.02} : Papers{{}, {}, {}, 2.02}});
    add_mpich_product(table, product);
    const Sizes orders = options.quick ? Sizes{512, 1000, 4000} : Sizes{512, 1000, 2000, 4000};
    const SpeedUps lu =
        speed_ups(orders, linpack_alone, [&](std::size_t n, std::uint16_t nodes, System system) {
            return linpack(n, nodes, system, options);
        });
    add_gamma(table, "Linpack", "applications-linpack", lu,
              options.quick ? Papers{{}, {}, kLinpackGamma} : Papers{{}, {}, {}, kLinpackGamma},
              {options.quick ? Papers{{}, {}, kLinpackMpich} : Papers{{}, {}, {}, kLinpackMpich},
               FigureKind::kAtMost, "Linpack: MPICH does not exceed 450 MFLOPS on 4 (§6.2.5)"});
    add_mpich_linpack(table, lu);
    add_urtp_applications(table, options);
    return table;
}

}  // namespace ulc::sim
