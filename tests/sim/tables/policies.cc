// SPDX-License-Identifier: BSD-3-Clause
// Table 6, ours: every policy over loss, group size, switch and hub; and from it the default for
// each case.
//
// Messages of 1000 bytes, one packet each, on hosts like this project's machine. Payload is the
// data that each receiver gets, as a share of the line; 88 % is a line full of them on a switch.
// Control packets are frames without payload, of all nodes, for each packet first sent; header
// bytes are the bytes of a data frame beyond its payload, including Ethernet's 14. A
// retransmission's time counts from when the loss can be seen.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "base/check.h"
#include "tests/sim/cluster/experiment.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/programs/latency.h"
#include "tests/sim/tables/list.h"
#include "tests/sim/tables/loop.h"
#include "tests/sim/tables/short_messages.h"
#include "wire/header.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kOctets = 1000;
constexpr std::uint64_t kGigabit = 1'000'000'000;
constexpr std::uint64_t kFastEthernet = 100'000'000;
constexpr std::uint16_t kNodesOfAllMax = 64;  ///< more, which take a minute: only the default
constexpr Nanos kLimit = 10 * kSecond;

/// Policies that deliver every packet; unicast: PCODE's rules are for groups.
using Names = std::vector<const char*>;
const Names kStreams = {"urtp", "urtp-1997", "gbn",   "gbn+block",  "block",        "eager", "lazy",
                        "open", "aimd",      "delay", "optimistic", "conservative", "credit"};
const Names kGroups = {"urtp",   "urtp-1997", "gbn",  "gbn+block", "block",      "eager",
                       "lazy",   "open",      "aimd", "delay",     "optimistic", "conservative",
                       "credit", "p0",        "p1",   "pcode"};
/// For tests.
const Names kFewStreams = {"urtp", "urtp-1997", "gbn+block", "conservative"};
const Names kFewGroups = {"urtp", "urtp-1997", "gbn+block", "eager", "pcode"};

/// Frames on the wire, by kind.
class WireCount : public Tap {
public:
    void on_frame(std::uint16_t, bool outbound, const std::vector<std::byte>& frame,
                  Nanos) override {
        if (!outbound || frame.size() < wire::kHeadOctets) return;
        const auto& header =
            *reinterpret_cast<const wire::Header*>(frame.data() + sizeof(wire::EthernetHeader));
        switch (static_cast<wire::FrameType>(header.version_type & 0xfU)) {
            case wire::FrameType::kData:
            case wire::FrameType::kMcast:
            case wire::FrameType::kCounted:
                ++data;
                header_octets += frame.size() - kOctets;
                break;
            case wire::FrameType::kJob:
            case wire::FrameType::kNode:
            case wire::FrameType::kLink:
                break;
            case wire::FrameType::kAck:
            case wire::FrameType::kReq:
            case wire::FrameType::kProbe:
            case wire::FrameType::kFlow:
            case wire::FrameType::kStatus:
            case wire::FrameType::kNack:
                ++control;
                break;
        }
    }
    std::uint64_t data = 0;
    std::uint64_t header_octets = 0;
    std::uint64_t control = 0;
};

struct Case {
    MediumKind medium = MediumKind::kSwitch;
    std::uint16_t nodes = 2;
    bool multicast = false;
    double loss = 0;
};

struct Result {
    double payload = std::nan("");  ///< % of the line, at each receiver
    double control = std::nan("");  ///< for each data packet
    double header = std::nan("");   ///< bytes
};

class Bench {
public:
    explicit Bench(const TableOptions& options) : options_(options) {}

    [[nodiscard]] Result run(const std::string& profile, const Case& c) const {
        if (c.nodes > kNodesOfAllMax && profile != "urtp") return {};
        Experiment e;
        const bool hub = c.medium == MediumKind::kHub;
        const std::uint64_t rate = hub ? kFastEthernet : kGigabit;
        e.cluster = config(profile, c.medium, c.nodes);
        e.cluster.net.bits_per_second = rate;
        e.cluster.net.faults.loss = c.loss;
        e.cluster.sizes = {64, 64, 256U << 10, 256U << 10};
        e.traffic.kind = c.multicast ? TrafficKind::kMulticast : TrafficKind::kStream;
        e.traffic.octets = kOctets;
        e.traffic.count = count(c);
        e.limit = kLimit;
        WireCount wire;
        e.tap = &wire;
        const Figures f = run_experiment(e);
        Result result;
        if (!f.error.empty() || wire.data == 0) return result;
        result.payload = f.goodput() * 8 * 100 / static_cast<double>(rate);
        result.control =
            static_cast<double>(wire.control) / static_cast<double>(f.count(Counter::data_sent));
        result.header = static_cast<double>(wire.header_octets) / static_cast<double>(wire.data);
        return result;
    }
    [[nodiscard]] double repair_us(const std::string& profile, std::uint16_t receivers,
                                   MediumKind medium) const {
        const Nanos longest =
            measure_multicast_repair(profile, receivers, options_.quick ? 2 : 20, medium);
        return longest > 0 ? static_cast<double>(longest) / kMicrosecond : std::nan("");
    }
    [[nodiscard]] double barrier_us(const std::string& profile, std::uint16_t nodes,
                                    MediumKind medium) const {
        ClusterConfig cluster = config(profile, medium, nodes);
        const std::vector<Operation> operations(
            options_.quick ? 20 : 120, {CollectiveKind::kBarrier, "gather_broadcast", 0, 0, false});
        const LoopTimes times = loop_of_collectives(cluster, operations, 10);
        return times.ok ? times.us : std::nan("");
    }

private:
    [[nodiscard]] ClusterConfig config(const std::string& profile, MediumKind medium,
                                       std::uint16_t nodes) const {
        ClusterConfig cluster;
        cluster.net.ports = nodes;
        cluster.net.medium = medium;
        cluster.net.bits_per_second = medium == MediumKind::kHub ? kFastEthernet : kGigabit;
        cluster.net.latency = 2 * kMicrosecond;
        cluster.net.seed = options_.seed;
        cluster.seed = options_.seed;
        cluster.engine.profile = profile;
        const auto preset = host_preset("own-machine");
        ULC_CHECK(preset.has_value());
        cluster.hosts = {*preset};
        return cluster;
    }
    /// Returns a number such that a cell costs about the same number of deliveries at any size, and
    /// that events at the end do not count: in a large group every member reports once that it has
    /// the last packet.
    [[nodiscard]] std::uint64_t count(const Case& c) const {
        if (options_.quick) return std::clamp<std::uint64_t>(1500 / (c.nodes - 1U), 24, 600);
        return std::clamp<std::uint64_t>(12000 / (c.nodes - 1U), 8UL * c.nodes, 4000);
    }

    TableOptions options_;
};

Grid grid_of(std::string title, std::string unit, std::vector<std::string> columns, int digits) {
    Grid grid;
    grid.title = std::move(title);
    grid.unit = std::move(unit);
    grid.columns = std::move(columns);
    grid.digits = digits;
    return grid;
}

std::string loss_text(double loss) {
    std::array<char, 16> out{};
    std::snprintf(out.data(), out.size(), "%.0e", loss);
    return loss == 0 ? "none" : out.data();
}

const Grid::Row& row_of(const Grid& grid, std::string_view name) {
    const auto found = std::ranges::find(grid.rows, name, &Grid::Row::name);
    ULC_CHECK(found != grid.rows.end());
    return *found;
}

/// Returns the best of a column, and its name.
std::pair<std::string, double> best_of(const Grid& grid, std::size_t column, bool least) {
    std::pair<std::string, double> best{"", std::nan("")};
    for (const Grid::Row& row : grid.rows) {
        const double value = row.values[column];
        if (std::isnan(value)) continue;
        if (std::isnan(best.second) || (least ? value < best.second : value > best.second))
            best = {row.name, value};
    }
    return best;
}

/// Returns "name (87.1), …" of each column.
std::string winners(const Grid& grid, bool least) {
    std::string out;
    for (std::size_t column = 0; column < grid.columns.size(); ++column) {
        const auto [name, value] = best_of(grid, column, least);
        std::array<char, 80> one{};
        std::snprintf(one.data(), one.size(), "%s%s: %s %.*f", out.empty() ? "" : ", ",
                      grid.columns[column].c_str(), name.c_str(), grid.digits, value);
        out += one.data();
    }
    return out;
}

/// Returns the ratio of the default to the best: 1 is equal, 0.9 a tenth worse, in the worst of the
/// columns.
double default_to_best(const Grid& grid, std::size_t columns, bool least) {
    double worst = 1;
    const Grid::Row& own = row_of(grid, "urtp");
    for (std::size_t column = 0; column < columns; ++column) {
        const double best = best_of(grid, column, least).second;
        const double ratio = least ? best / own.values[column] : own.values[column] / best;
        worst = std::isnan(ratio) ? 0 : std::min(worst, ratio);
    }
    return worst;
}

template <typename Measure>
void fill(Grid& grid, const Names& names, std::size_t columns, const Measure& measure) {
    for (const char* name : names) {
        Grid::Row row{name, {}};
        for (std::size_t column = 0; column < columns; ++column)
            row.values.push_back(measure(name, column));
        grid.rows.push_back(std::move(row));
    }
}

/// Adds payload and control packets of the same runs.
template <typename CaseOf>
std::pair<Grid, Grid> sweep(const Bench& bench, const std::string& title,
                            const std::vector<std::string>& columns, const Names& names,
                            const CaseOf& case_of) {
    Grid payload = grid_of(title + ": payload", "% of the line", columns, 1);
    Grid control = grid_of(title + ": control packets", "a data packet", columns, 2);
    std::map<std::pair<std::string, std::size_t>, Result> results;
    fill(payload, names, columns.size(), [&](const char* name, std::size_t column) {
        const Result result = bench.run(name, case_of(column));
        results[{name, column}] = result;
        return result.payload;
    });
    fill(control, names, columns.size(), [&](const char* name, std::size_t column) {
        return results.at({name, column}).control;
    });
    return {payload, control};
}

std::string percent(double share) {
    std::array<char, 24> out{};
    std::snprintf(out.data(), out.size(), "%.0f %%", share * 100);
    return out.data();
}

void judge_payload(Table& table, const std::string& where, const Grid& payload, std::size_t columns,
                   double enough) {
    const double share = default_to_best(payload, columns, false);
    table.shapes.push_back(
        {where + ": the default has at least " + percent(enough) + " of the best's payload",
         percent(share) + "; best " + winners(payload, false), share >= enough});
}

/// Returns a column's head for each point.
template <typename Point, typename Text>
std::vector<std::string> labels(const std::vector<Point>& points, Text text) {
    std::vector<std::string> heads;
    heads.reserve(points.size());
    for (const Point& point : points)
        heads.push_back(text(point));
    return heads;
}

std::string medium_and_count(const std::pair<MediumKind, std::uint16_t>& point) {
    return (point.first == MediumKind::kHub ? "hub, " : "switch, ") + std::to_string(point.second);
}

void add_loss(Table& table, const Bench& bench, bool quick) {
    const std::vector<double> losses =
        quick ? std::vector<double>{0, 1e-2}
              : std::vector<double>{0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1};
    const auto columns = labels(losses, loss_text);
    const std::size_t to_one_percent = quick ? 2 : 6;
    auto [stream, stream_control] =
        sweep(bench, "one stream on a switch, by loss", columns, quick ? kFewStreams : kStreams,
              [&](std::size_t i) { return Case{.loss = losses[i]}; });
    judge_payload(table, "one stream, loss to 1e-2", stream, to_one_percent, 0.95);
    auto [multicast, multicast_control] = sweep(
        bench, "multicast to 15 on a switch, by loss", columns, quick ? kFewGroups : kGroups,
        [&](std::size_t i) { return Case{.nodes = 16, .multicast = true, .loss = losses[i]}; });
    judge_payload(table, "multicast to 15, loss to 1e-2", multicast, to_one_percent, 0.95);
    for (Grid* grid : {&stream, &stream_control, &multicast, &multicast_control})
        table.grids.push_back(std::move(*grid));
}

void add_nodes(Table& table, const Bench& bench, bool quick, MediumKind medium,
               const std::string& where, const std::vector<std::uint16_t>& nodes, double loss,
               double enough) {
    const auto columns = labels(nodes, [](std::uint16_t n) { return std::to_string(n); });
    auto [payload, control] =
        sweep(bench, "multicast on " + where + ", loss " + loss_text(loss) + ", by nodes", columns,
              quick ? kFewGroups : kGroups, [&](std::size_t i) {
                  return Case{medium, nodes[i], true, loss};
              });
    judge_payload(table, "multicast on " + where, payload, columns.size(), enough);
    const Grid::Row& own = row_of(control, "urtp");
    double most = 0;
    for (std::size_t column = 0; column < columns.size(); ++column)
        most = std::max(most, own.values[column] - 2 * loss * (nodes[column] - 1));
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "at most %.2f", most);
    table.shapes.push_back({"multicast on " + where +
                                ": acknowledgements and requests of the default do not implode: at "
                                "most 1.5 a data packet, in addition to two for each loss",
                            text.data(), most <= 1.5});
    table.grids.push_back(std::move(payload));
    table.grids.push_back(std::move(control));
}

void add_headers(Table& table, const Bench& bench, bool quick) {
    const std::vector<std::uint16_t> nodes =
        quick ? std::vector<std::uint16_t>{2, 8} : std::vector<std::uint16_t>{2, 8, 64};
    const auto columns = labels(nodes, [](std::uint16_t n) { return std::to_string(n); });
    Grid grid =
        grid_of("multicast without loss, by nodes: header", "octets a data frame", columns, 1);
    fill(grid,
         Names{"urtp", "urtp-1997", "gbn", "optimistic", "conservative", "credit", "pcode",
               "detect"},
         nodes.size(), [&](const char* name, std::size_t column) {
             return bench.run(name, {.nodes = nodes[column], .multicast = true}).header;
         });
    const Grid::Row& own = row_of(grid, "urtp");
    table.shapes.push_back(
        {"the default's header is as long at any size",
         std::to_string(std::lround(own.values.back())) + " bytes",
         std::ranges::all_of(own.values, [&](double v) { return v == own.values.front(); })});
    table.grids.push_back(std::move(grid));
}

void add_repairs(Table& table, const Bench& bench, bool quick) {
    const std::vector<std::pair<MediumKind, std::uint16_t>> cases =
        quick ? std::vector<std::pair<MediumKind, std::uint16_t>>{{MediumKind::kSwitch, 15}}
              : std::vector<std::pair<MediumKind, std::uint16_t>>{{MediumKind::kSwitch, 1},
                                                                  {MediumKind::kSwitch, 15},
                                                                  {MediumKind::kSwitch, 63},
                                                                  {MediumKind::kHub, 15}};
    const auto columns = labels(cases, medium_and_count);
    Grid grid =
        grid_of("longest repair of a lost multicast, by medium and receivers", "µs", columns, 0);
    fill(grid, quick ? kFewGroups : kGroups, cases.size(),
         [&](const char* name, std::size_t column) {
             return bench.repair_us(name, cases[column].second, cases[column].first);
         });
    const double on_switch = row_of(grid, "urtp").values[quick ? 0 : 1];
    table.shapes.push_back({"the default repairs a multicast to 15 on a switch within 150 µs",
                            percent(on_switch / 150) + " of it; least " + winners(grid, true),
                            on_switch <= 150});
    table.grids.push_back(std::move(grid));
}

void add_barriers(Table& table, const Bench& bench, bool quick) {
    const std::vector<std::pair<MediumKind, std::uint16_t>> cases =
        quick ? std::vector<std::pair<MediumKind, std::uint16_t>>{{MediumKind::kHub, 8}}
              : std::vector<std::pair<MediumKind, std::uint16_t>>{{MediumKind::kSwitch, 4},
                                                                  {MediumKind::kSwitch, 16},
                                                                  {MediumKind::kHub, 4},
                                                                  {MediumKind::kHub, 16}};
    const auto columns = labels(cases, medium_and_count);
    Grid grid = grid_of("barrier (gather and broadcast), by medium and nodes", "µs", columns, 0);
    fill(grid, quick ? kFewGroups : kGroups, cases.size(),
         [&](const char* name, std::size_t column) {
             return bench.barrier_us(name, cases[column].second, cases[column].first);
         });
    const double share = default_to_best(grid, quick ? 1 : 2, true);
    if (!quick)
        table.shapes.push_back({"barriers on a switch: the default is within a fifth of the best",
                                percent(share) + "; best " + winners(grid, true), share >= 0.8});
    table.grids.push_back(std::move(grid));
}

}  // namespace

Table policies_compared(const TableOptions& options) {
    Table table;
    table.name = "policies";
    table.title = "Every policy over loss, nodes and media";
    table.method =
        "Messages of 1000 B, hosts own-machine; switch at 1 Gb/s and 2 µs, hub at 100 Mb/s; each "
        "receiver loses frames at random. More than 64 "
        "nodes: the default alone. A dash: "
        "not done within 10 s of virtual time.";
    const Bench bench(options);
    add_loss(table, bench, options.quick);
    const auto on_switch = options.quick ? std::vector<std::uint16_t>{64}
                                         : std::vector<std::uint16_t>{2, 4, 16, 64, 256, 1024};
    add_nodes(table, bench, options.quick, MediumKind::kSwitch, "a switch", on_switch, 1e-3, 0.9);
    const auto on_hub =
        options.quick ? std::vector<std::uint16_t>{8} : std::vector<std::uint16_t>{2, 4, 16, 64};
    add_nodes(table, bench, options.quick, MediumKind::kHub, "a hub", on_hub, 1e-4, 0.8);
    add_headers(table, bench, options.quick);
    add_repairs(table, bench, options.quick);
    add_barriers(table, bench, options.quick);
    add_short_messages(table, options);
    return table;
}

}  // namespace ulc::sim
