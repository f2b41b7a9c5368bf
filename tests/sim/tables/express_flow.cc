// SPDX-License-Identifier: BSD-3-Clause
// Table 5: optimistic flow control of Express Messages compared with the conservative one of NX/2,
// on two nodes (Express §5.1).
//
// Profiles optimistic and conservative on the same host: the paper's own comparison without NX/2's
// library, which copies as well ("Forced conservative Express Messages" is our conservative).
// Protocol messages: RESERVE, GRANT, REFUSE, inquiries and answers to them. The network is a link
// of 2.8 MB/s, as the iPSC/2 had it; the paper does not say so.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/check.h"
#include "tests/sim/cluster/experiment.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/list.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kLink = 22'400'000;
constexpr std::size_t kShortMax = 100;  ///< Express §2.1

std::string text(const char* format, double a, double b = 0) {
    std::array<char, 120> out{};
    std::snprintf(out.data(), out.size(), format, a, b);
    return out.data();
}

Figures run(const char* host, const char* profile, TrafficKind kind, std::size_t octets,
            std::uint64_t count, std::uint64_t seed) {
    Experiment e;
    e.cluster.net.ports = 2;
    e.cluster.net.medium = MediumKind::kDirect;
    e.cluster.net.bits_per_second = kLink;
    e.cluster.net.mtu = 4200;  // a page in a packet, as there
    e.cluster.net.seed = seed;
    e.cluster.seed = seed;
    e.cluster.sizes = {256, 512, 1U << 20, 1U << 20};
    e.cluster.engine.profile = profile;
    const auto preset = host_preset(host);
    ULC_CHECK(preset.has_value());
    e.cluster.hosts = {*preset};
    e.traffic = {.kind = kind, .octets = octets, .count = count, .warm_up = 16};
    return run_experiment(e);
}

class Bench {
public:
    explicit Bench(const TableOptions& options)
        : options_(options), count_(options.quick ? 100 : 1000) {}

    [[nodiscard]] double latency(const char* profile, std::size_t octets,
                                 const char* host = "express-poll") const {
        const Figures f = run(host, profile, TrafficKind::kPingPong, octets,
                              options_.quick ? 20 : 200, options_.seed);
        return f.error.empty() ? static_cast<double>(f.latency_percentile(50)) / kMicrosecond
                               : std::nan("");
    }
    struct Stream {
        double megabytes = 0;
        double optimistic = 0;  ///< share of messages without a reservation
        double protocol = 0;    ///< protocol messages a message
        double failed = 0;      ///< share that found no space
    };
    [[nodiscard]] Stream stream(const char* profile, std::size_t octets) const {
        const Figures f =
            run("express-poll", profile, TrafficKind::kStream, octets, count_, options_.seed);
        if (!f.error.empty()) return {std::nan(""), 0, 0, 0};
        const auto messages = static_cast<double>(f.messages);
        const auto of = [&](Counter counter) {
            return static_cast<double>(f.count(counter)) / messages;
        };
        return {f.goodput() / 1e6, 1 - of(Counter::reserve_sent),
                of(Counter::reserve_sent) + of(Counter::grant_sent) + of(Counter::refuse_sent) +
                    of(Counter::probe_sent) + of(Counter::ack_sent) + of(Counter::req_sent),
                of(Counter::refuse_sent)};
    }

private:
    TableOptions options_;
    std::uint64_t count_;
};

double most(const Curve& over, const Curve& under, bool inverse) {
    double best = 0;
    for (std::size_t i = 0; i < over.points.size(); ++i) {
        const double ratio = over.points[i].second / under.points[i].second;
        best = std::max(best, inverse ? 1 / ratio : ratio);
    }
    return best;
}

}  // namespace

Table express_flow(const TableOptions& options) {
    Table table;
    table.name = "express-flow";
    table.title = "Express Messages: optimistic against conservative flow control";
    table.method =
        "Two nodes on a link of 22.4 Mb/s, hosts express-poll and express-upcall; ping-pong, and a "
        "stream one way.";
    const Bench bench(options);
    const std::vector<std::size_t> sizes =
        options.quick ? std::vector<std::size_t>{4, 100, 101, 500}
                      : std::vector<std::size_t>{4,   20,  50,  100,  101,  150,  200,
                                                 300, 500, 750, 1000, 1500, 2000, 4000};
    Curve slow{"ours, conservative", {}, false};
    Curve fast{"ours, optimistic", {}, false};
    Curve slow_stream = slow;
    Curve fast_stream = fast;
    for (const std::size_t octets : sizes) {
        const auto x = static_cast<double>(octets);
        slow.points.emplace_back(x, bench.latency("conservative", octets));
        fast.points.emplace_back(x, bench.latency("optimistic", octets));
        slow_stream.points.emplace_back(x, bench.stream("conservative", octets).megabytes);
        fast_stream.points.emplace_back(x, bench.stream("optimistic", octets).megabytes);
    }
    const auto optimistic = bench.stream("optimistic", 500);
    const auto conservative = bench.stream("conservative", 500);
    table.figures.push_back({"sent optimistically, 500 B", "%", 88.0, optimistic.optimistic * 100,
                             "§5.1; the bound on optimism is derived from this",
                             FigureKind::kInput});
    table.figures.push_back({"of these failed", "%", 0.0, optimistic.failed * 100, "§5.1"});
    table.figures.push_back({"protocol messages a message, optimistic, 500 B", "%", 24.0,
                             optimistic.protocol * 100, "§5.1; two for each one not optimistic"});
    table.figures.push_back({"protocol messages a message, conservative, 500 B", "%", 200.0,
                             conservative.protocol * 100, "§5.1"});
    table.figures.push_back({"latency gain, most", "×", 2.5, most(slow, fast, false),
                             "§1, §7: against NX/2, which may copy as well"});
    table.figures.push_back(
        {"throughput gain, most", "×", 2.8, most(slow_stream, fast_stream, true), "the same"});
    const double upcall =
        bench.latency("optimistic", 4, "express-upcall") - bench.latency("optimistic", 4);
    table.figures.push_back(
        {"an upcall instead of a poll", "µs", 27.0, upcall, "§5.1", FigureKind::kInput});
    const auto step = [&](const Curve& curve) {
        const auto at = [&](double x) {
            return std::ranges::find(curve.points, x, &std::pair<double, double>::first)->second;
        };
        return at(kShortMax + 1) / at(kShortMax);
    };
    table.shapes.push_back(
        {"the conservative latency has a step at 100 B (figure 2): over half more",
         text("%.2f ×", step(slow)), step(slow) > 1.5});
    table.shapes.push_back(
        {"the optimistic one has none: under 2 %", text("%.3f ×", step(fast)), step(fast) < 1.02});
    table.shapes.push_back(
        {"optimistic has the higher throughput above 100 B (figure 3)",
         text("%.2f to %.2f MB/s at 500 B", optimistic.megabytes, conservative.megabytes),
         optimistic.megabytes > conservative.megabytes});
    table.shapes.push_back(
        {"its protocol messages are a small part of the messages: under 30 %, and at least 190 % "
         "conservatively",
         text("%.0f %%, %.0f %%", optimistic.protocol * 100, conservative.protocol * 100),
         optimistic.protocol < 0.3 && conservative.protocol > 1.9});
    table.pictures.push_back({"express-latency",
                              "One-way latency (Express figure 2)",
                              "octets",
                              "µs",
                              false,
                              false,
                              {slow, fast}});
    table.pictures.push_back({"express-throughput",
                              "Throughput (Express figure 3)",
                              "octets",
                              "MB/s",
                              false,
                              false,
                              {slow_stream, fast_stream}});
    return table;
}

}  // namespace ulc::sim
