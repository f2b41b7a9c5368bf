// SPDX-License-Identifier: BSD-3-Clause
// Table 3: URTP on its eight RS/6000 of four speeds and 10 Mb/s Ethernet (URTP §3.3, §4).
//
// Profile urtp-1997. The loop is the paper's: calls back to back, the root rotates, the mean over
// ranks (§4.1). A packet holds 1440 bytes ("about 1.5 KBytes"); the algorithms are the paper's,
// from coll/. For most figures it prints a curve without numbers; there the table checks the shapes
// that its text claims.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "tests/sim/cluster/experiment.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/programs/message_programs.h"
#include "tests/sim/tables/claims/judge.h"
#include "tests/sim/tables/list.h"
#include "tests/sim/tables/loop.h"

namespace ulc::sim {
namespace {

constexpr const char* kInPackets = "@1440";
constexpr const char* kMedianHost = "urtp-530h";

std::string text(const char* format, double a, double b = 0, double c = 0) {
    std::array<char, 120> out{};
    std::snprintf(out.data(), out.size(), format, a, b, c);
    return out.data();
}

enum class Subset : std::uint8_t { kSlow, kFast };  ///< rank 0 the slowest, or the fastest

class Cluster {
public:
    /// `gap`: instead of the paper's δ.
    explicit Cluster(const TableOptions& options, const char* profile = "urtp-1997", Nanos gap = 0)
        : options_(options), profile_(profile), gap_(gap) {}

    [[nodiscard]] ClusterConfig config(std::uint16_t nodes, Subset subset) const {
        ClusterConfig config;
        config.net.ports = nodes;
        config.net.medium = MediumKind::kHub;
        config.net.bits_per_second = 10'000'000;
        config.net.seed = options_.seed;
        config.seed = options_.seed;
        config.sizes = {256, 256, 1U << 20, 4U << 20};
        config.engine.profile = profile_;
        if (gap_ > 0) config.engine.params.min_req_gap = gap_;
        config.hosts = urtp_hosts();
        if (subset == Subset::kFast) std::ranges::reverse(config.hosts);
        config.hosts.resize(nodes);
        return config;
    }

    /// Returns ms of one collective, the mean as the paper takes it.
    [[nodiscard]] double collective(std::uint16_t nodes, Subset subset, CollectiveKind kind,
                                    const std::string& algorithm, std::size_t octets) const {
        std::vector<Operation> operations;
        for (std::size_t n = 0; n < kWarmUp + rounds(octets); ++n)
            operations.push_back(
                {kind, algorithm, octets, static_cast<std::uint16_t>(n % nodes), false});
        return ms(loop_of_collectives(config(nodes, subset), operations, kWarmUp));
    }
    [[nodiscard]] double broadcast(std::uint16_t nodes, std::size_t octets) const {
        return collective(nodes, Subset::kSlow, CollectiveKind::kBroadcast,
                          std::string("multicast") + kInPackets, octets);
    }
    [[nodiscard]] double allgather(std::uint16_t nodes, std::size_t octets,
                                   const std::string& algorithm) const {
        return collective(nodes, Subset::kSlow, CollectiveKind::kAllgather, algorithm + kInPackets,
                          octets);
    }
    [[nodiscard]] double barrier(std::uint16_t nodes, Subset subset) const {
        return collective(nodes, subset, CollectiveKind::kBarrier, "gather_broadcast", 0);
    }
    [[nodiscard]] double scatter(std::uint16_t nodes, std::size_t octets) const {
        return collective(nodes, Subset::kSlow, CollectiveKind::kScatter, "packed", octets);
    }
    [[nodiscard]] double gather(std::uint16_t nodes, std::size_t octets) const {
        return collective(nodes, Subset::kSlow, CollectiveKind::kGather, "direct", octets);
    }

    /// Returns Mbit/s of payload between the two fastest, or the two slowest.
    [[nodiscard]] double stream(Subset subset) const {
        Experiment e;
        e.cluster = config(2, subset);
        e.traffic = {.kind = TrafficKind::kStream,
                     .octets = 32U << 10,
                     .count = options_.quick ? 16U : 128U,
                     .warm_up = 4};
        const Figures figures = run_experiment(e);
        return figures.error.empty() ? figures.goodput() * 8 / 1e6 : std::nan("");
    }
    [[nodiscard]] double one_way_ms(Subset subset, std::size_t octets) const {
        Experiment e;
        e.cluster = config(2, subset);
        e.traffic = {.kind = TrafficKind::kPingPong,
                     .octets = octets,
                     .count = options_.quick ? 10U : 50U,
                     .warm_up = 4};
        const Figures figures = run_experiment(e);
        return figures.error.empty()
                   ? static_cast<double>(figures.latency_percentile(50)) / kMillisecond
                   : std::nan("");
    }
    /// Returns µs of processor for a multicast of `octets` to others (dropped) and to us
    /// (received), on the median host (figure 3).
    [[nodiscard]] std::pair<double, double> drop_and_receive(std::size_t octets) const {
        ClusterConfig config = this->config(3, Subset::kSlow);
        config.hosts = {*host_preset(kMedianHost)};
        SimCluster cluster(config);
        if (!cluster.form(3, [](std::size_t n) { return static_cast<std::uint16_t>(n); }))
            return {};
        MessageLog log;
        log.sent_at.resize(3);
        log.octets_by_source.resize(3);
        Receiver wanted(cluster.client(1), 1, octets, log);
        Receiver unwanted(cluster.client(2), 2, octets, log);
        cluster.set_program(1, &wanted);
        cluster.set_program(2, &unwanted);
        constexpr unsigned kFrames = 16;
        const std::array before{cluster.busy(1), cluster.busy(2)};
        for (unsigned n = 0; n < kFrames; ++n) {
            const std::uint64_t number = message_number(0, n);
            const std::uint64_t due = log.messages + 1;
            if (!cluster.client(0).send(cluster.client(0).world, number,
                                        Oracle::payload(number, octets), 1U << 1))
                return {};
            cluster.touch(0);
            if (!cluster.run(kSecond, [&] { return log.messages == due; })) return {};
            (void)cluster.run(5 * kMillisecond, [] { return false; });
            cluster.client(0).poll();
        }
        const auto each = [&](std::uint16_t node) {
            return static_cast<double>(cluster.busy(node) - before[node - 1U]) / kFrames /
                   kMicrosecond;
        };
        std::pair result{each(2), each(1)};
        cluster.set_program(1, nullptr);
        cluster.set_program(2, nullptr);
        return result;
    }

private:
    static constexpr std::size_t kWarmUp = 8;
    [[nodiscard]] std::size_t rounds(std::size_t octets) const {
        const std::size_t all = octets > (16U << 10) ? 40 : 200;
        return options_.quick ? all / 8 : all;
    }
    [[nodiscard]] static double ms(const LoopTimes& times) {
        return times.ok ? times.us / 1000 : std::nan("");
    }

    TableOptions options_;
    const char* profile_;
    Nanos gap_;
};

std::string list(const Curve& curve) {
    std::string out;
    for (const auto& [x, y] : curve.points)
        out += text(out.empty() ? "%.1f" : ", %.1f", y);
    return out + " ms";
}

double at(const Curve& curve, double x) {
    for (const auto& [at_x, y] : curve.points)
        if (at_x == x) return y;
    return std::nan("");
}

double spread(const Curve& curve) {
    const auto [least, most] =
        std::ranges::minmax(curve.points, {}, [](const auto& p) { return p.second; });
    return most.second / least.second;
}

constexpr double kNear = 0.2;  ///< share by which a prediction may be off

void add_stated(Table& table, const Cluster& cluster) {
    const auto near = [&](const char* what, const char* unit, double paper, double ours,
                          const char* note) {
        add_near(table, {what, unit, paper, ours, note}, kNear);
    };
    near("stream, two fastest hosts", "Mbit/s", 8.8, cluster.stream(Subset::kFast),
         "§3.3; which two is not said");
    table.figures.push_back(
        {"stream, two slowest hosts", "Mbit/s", {}, cluster.stream(Subset::kSlow), ""});
    table.figures.push_back({"one way, 32 B, two fastest",
                             "ms",
                             {},
                             cluster.one_way_ms(Subset::kFast, 32),
                             "figure 4 has no numbers"});
    near("broadcast, 1 KB, 8 hosts", "ms", 3.87, cluster.broadcast(8, 1024), "§4.2");
    near("broadcast, 4 KB, 8 hosts", "ms", 6.0, cluster.broadcast(8, 4096), "§4.2");
    near("allgather, 32 B, 8 hosts", "ms", 6.1, cluster.allgather(8, 32, "concurrent:1"), "§4.3");
    near("allgather, 1 KB, 8 hosts", "ms", 12.7, cluster.allgather(8, 1024, "concurrent:1"),
         "§4.3");
}

/// Adds the cells with a figure of the paper's, with this `variant`.
void add_variant(Table& table, const Cluster& cluster, const std::string& variant,
                 const char* note) {
    table.figures.push_back(
        {"broadcast, 1 KB, " + variant, "ms", 3.87, cluster.broadcast(8, 1024), note});
    table.figures.push_back(
        {"broadcast, 4 KB, " + variant, "ms", 6.0, cluster.broadcast(8, 4096), ""});
    table.figures.push_back(
        {"allgather, 32 B, " + variant, "ms", 6.1, cluster.allgather(8, 32, "concurrent:1"), ""});
    table.figures.push_back({"allgather, 1 KB, " + variant, "ms", 12.7,
                             cluster.allgather(8, 1024, "concurrent:1"), ""});
}

void add_algorithms(Table& table, const Cluster& cluster, bool quick) {
    for (const std::size_t octets : {std::size_t{32}, std::size_t{1024}, std::size_t{16384}}) {
        if (quick && octets > 1024) continue;
        const double one = cluster.allgather(8, octets, "round_robin");
        const double two = cluster.allgather(8, octets, "concurrent:1");
        const std::string where = std::to_string(octets) + " B, 8 hosts";
        add_bound(table,
                  {"algorithm 1 ÷ 2, " + where, "", 1.5, one / two, "§4.3: 1.5 to 2",
                   FigureKind::kAtLeast},
                  "algorithm 2 (k = 1) is 1.5 times as fast as 1, " + where + " (§4.3)");
    }
}

void add_concurrency(Table& table, const Cluster& cluster, bool quick) {
    Curve curve{"ours, 4 slow hosts", {}, false};
    const std::size_t octets = quick ? 16U << 10 : 64U << 10;
    for (const unsigned k : quick ? std::vector{1U, 2U, 4U, 12U}
                                  : std::vector{1U, 2U, 3U, 4U, 5U, 6U, 8U, 12U, 16U, 24U})
        curve.points.emplace_back(k,
                                  cluster.allgather(4, octets, "concurrent:" + std::to_string(k)));
    const auto best = std::ranges::min(curve.points, {}, [](const auto& p) { return p.second; });
    table.figures.push_back(
        {"allgather, 64 KiB, 4 hosts, best k", "", 4.0, best.first, "figure 8"});
    table.shapes.push_back({"allgather of 64 KiB on 4: k = 2 is faster than 1 (figure 8)",
                            list(curve), at(curve, 2) < at(curve, 1)});
    table.shapes.push_back(
        claim_of("and k = 4 is within a tenth of the best",
                 text("best k %.0f: %.0f ms, k = 4: %.0f", best.first, best.second, at(curve, 4)),
                 at(curve, 4) / best.second, {.most = 1.1}));
    table.pictures.push_back({"urtp-allgather-k",
                              "Allgather of 64 KiB by k, 4 slow hosts (URTP figure 8)",
                              "k",
                              "ms",
                              false,
                              false,
                              {curve}});
}

void add_barriers(Table& table, const Cluster& cluster, bool quick) {
    Curve slow{"ours, slow subset", {}, false};
    Curve fast{"ours, fast subset", {}, false};
    for (const std::uint16_t nodes : quick ? std::vector<std::uint16_t>{2, 8}
                                           : std::vector<std::uint16_t>{2, 3, 4, 5, 6, 7, 8}) {
        slow.points.emplace_back(nodes, cluster.barrier(nodes, Subset::kSlow));
        fast.points.emplace_back(nodes, cluster.barrier(nodes, Subset::kFast));
    }
    table.shapes.push_back(
        claim_of("barriers with a slow root stay flat to 8 hosts: within twice (figure 11)",
                 list(slow), spread(slow), {.most = 2}));
    table.shapes.push_back(claim_of("barriers with a fast root stay flat to 8 hosts: within twice",
                                    list(fast), spread(fast), {.most = 2}));
    table.shapes.push_back({"the root's speed sets the time: on 2 and on 8 the fast subset wins",
                            list(fast), at(fast, 2) < at(slow, 2) && at(fast, 8) < at(slow, 8)});
    table.pictures.push_back({"urtp-barrier",
                              "Barriers on 10 Mb/s (URTP figure 11)",
                              "hosts",
                              "ms",
                              false,
                              false,
                              {slow, fast}});
}

void add_scatter_gather(Table& table, const Cluster& cluster, bool quick) {
    Picture picture{"urtp-scatter-gather",
                    "Scatter and gather on 10 Mb/s (URTP figures 9 and 10)",
                    "octets",
                    "ms",
                    true,
                    true,
                    {}};
    const std::vector<std::size_t> sizes =
        quick ? std::vector<std::size_t>{4, 128, 4096, 8192}
              : std::vector<std::size_t>{4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
    for (const std::uint16_t nodes : {std::uint16_t{4}, std::uint16_t{8}}) {
        if (quick && nodes == 8) continue;
        Curve curve{"ours, scatter on " + std::to_string(nodes), {}, false};
        for (const std::size_t octets : sizes)
            curve.points.emplace_back(octets, cluster.scatter(nodes, octets));
        table.figures.push_back(
            {curve.name.substr(6) + ", 4 B", "ms", {}, at(curve, 4), "figure 9 has no numbers"});
        if (nodes == 4) {
            table.shapes.push_back(
                {"scatter on 4 is flat while the blocks fit one packet: 128 B within twice 4 B "
                 "(figure 9)",
                 list(curve), at(curve, 128) < 2 * at(curve, 4)});
            const double growth = at(curve, 8192) / at(curve, 4096);
            table.shapes.push_back({"and about doubles with the size beyond (4 to 8 KiB)",
                                    text("%.2f ×", growth), growth > 1.5 && growth < 2.5});
        }
        picture.curves.push_back(std::move(curve));
    }
    Curve gather{"ours, gather on 4", {}, false};
    for (const std::size_t octets : sizes)
        gather.points.emplace_back(octets, cluster.gather(4, octets));
    table.figures.push_back(
        {"gather on 4, 4 B", "ms", {}, at(gather, 4), "figure 10 has no numbers"});
    const double scatter = at(picture.curves.front(), 4);
    table.shapes.push_back({"for small messages gather beats scatter (§4.4)",
                            text("%.2f to %.2f ms", at(gather, 4), scatter),
                            at(gather, 4) < scatter});
    picture.curves.push_back(std::move(gather));
    table.pictures.push_back(std::move(picture));
}

/// The shares of a frame that is dropped and of one that is received are charges of the host: no
/// claim is made of them.
void add_drops(Table& table, const Cluster& cluster, bool quick) {
    Curve dropped{"ours, dropped", {}, false};
    Curve received{"ours, received", {}, false};
    for (const std::size_t octets :
         quick ? std::vector<std::size_t>{64, 1400}
               : std::vector<std::size_t>{16, 64, 128, 256, 512, 1024, 1400}) {
        const auto [drop, receive] = cluster.drop_and_receive(octets);
        dropped.points.emplace_back(octets, drop);
        received.points.emplace_back(octets, receive);
    }
    table.figures.push_back({"a dropped frame, 64 B",
                             "µs",
                             {},
                             at(dropped, 64),
                             "figure 3 has no numbers; its step at 128 B (mbuf) is not modelled"});
    table.figures.push_back({"a received frame, 64 B", "µs", 300.0, at(received, 64),
                             "§3.3, UDP less 100", FigureKind::kInput});
    table.figures.push_back({"a received frame, 1400 B", "µs", 500.0, at(received, 1400),
                             "§3.3, UDP less 100", FigureKind::kInput});
    table.pictures.push_back({"urtp-drop",
                              "Processor time of an unwanted frame (URTP figure 3)",
                              "octets",
                              "µs",
                              false,
                              false,
                              {dropped, received}});
}

}  // namespace

Table urtp_cluster(const TableOptions& options) {
    Table table;
    table.name = "urtp-cluster";
    table.title = "URTP on eight workstations and 10 Mb/s Ethernet";
    table.method =
        "Hub at 10 Mb/s, hosts of §4.1 (3 of 20 MHz, 2 of 33, 1 of 62.5, 2 of 66), profile "
        "urtp-1997; calls back to back, the "
        "root goes round, mean over ranks.";
    const Cluster cluster(options);
    add_stated(table, cluster);
    add_variant(table, Cluster(options, "urtp-1997", 50 * kMillisecond), "δ = 50 ms",
                "instead of 1 ms: no packet is repeated that only waits for the medium");
    add_variant(table, Cluster(options, "urtp"), "[urtp]", "the default profile");
    add_algorithms(table, cluster, options.quick);
    add_concurrency(table, cluster, options.quick);
    add_barriers(table, cluster, options.quick);
    add_scatter_gather(table, cluster, options.quick);
    add_drops(table, cluster, options.quick);
    if (!options.quick) {
        Curve broadcast{"ours, 8 hosts", {}, false};
        for (std::size_t octets = 4; octets <= 16384; octets *= 4)
            broadcast.points.emplace_back(octets, cluster.broadcast(8, octets));
        table.pictures.push_back({"urtp-broadcast",
                                  "Broadcast on 10 Mb/s (URTP figure 5)",
                                  "octets",
                                  "ms",
                                  true,
                                  true,
                                  {broadcast, {"URTP, stated", {{1024, 3.87}, {4096, 6}}, true}}});
        Curve nodes{"ours, slow subset", {}, false};
        for (std::uint16_t n = 2; n <= 8; n += 2)
            nodes.points.emplace_back(n, cluster.allgather(n, 64U << 10, "concurrent:1"));
        table.pictures.push_back({"urtp-allgather-hosts",
                                  "Allgather of 64 KiB by hosts (URTP figure 7)",
                                  "hosts",
                                  "ms",
                                  false,
                                  false,
                                  {nodes}});
    }
    return table;
}

}  // namespace ulc::sim
