// SPDX-License-Identifier: BSD-3-Clause
// Tests how the papers' tables are printed, and that the loops behind them measure what they claim.
// Each claim of docs/benchmarks/PAPERS.md holds on quick points; one that is known to differ must
// differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/cluster/experiment.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/applications/application_run.h"
#include "tests/sim/tables/claims/judge.h"
#include "tests/sim/tables/list.h"
#include "tests/sim/tables/measure.h"
#include "tests/sim/tables/table_output.h"

namespace ulc::sim {
namespace {

Table small_table() {
    Table table;
    table.name = "small";
    table.title = "A small one";
    table.method = "by hand";
    table.figures = {{"latency", "µs", 10.0, 12.5, "§1"},
                     {"theirs alone", "MB/s", 3.0, {}, ""},
                     {"ours alone", "B", {}, 96.0, ""},
                     {"nothing to divide by", "µs", 0.0, 1.0, ""}};
    table.shapes = {{"falls", "3, 2, 1", true}, {"rises", "3, 2, 1", false}};
    table.pictures = {
        {"small", "Title", "x", "y", true, false, {{"ours", {{1, 2}, {2, 4}}, false}}}};
    return table;
}

TEST(tables, text_has_paper_ours_and_deviation_in_columns) {
    const std::string text = text_of(small_table());
    EXPECT_NE(text.find("latency               µs     10.0  12.5      +25 %  §1\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("theirs alone          MB/s   3.00     –\n"), std::string::npos) << text;
    EXPECT_NE(text.find("ours alone            B         –  96.0\n"), std::string::npos) << text;
    EXPECT_NE(text.find("holds    falls: 3, 2, 1\n"), std::string::npos) << text;
    EXPECT_NE(text.find("DIFFERS  rises: 3, 2, 1\n"), std::string::npos) << text;
}

TEST(tables, an_input_has_no_deviation_and_a_bound_is_kept_or_broken) {
    Table table = small_table();
    table.figures = {{"entered", "µs", 10.0, 12.5, "", FigureKind::kInput}};
    add_bound(table, {"speed", "MFLOPS", 450.0, 466.0, "", FigureKind::kAtMost}, "not over 450");
    add_bound(table, {"nodes", "", 32.0, 32.0, "", FigureKind::kAtLeast}, "32 at least");
    const std::string text = text_of(table);
    EXPECT_NE(text.find("entered  µs        10.0  12.5      input\n"), std::string::npos) << text;
    EXPECT_NE(text.find("speed    MFLOPS   ≤ 450   466     BROKEN\n"), std::string::npos) << text;
    EXPECT_NE(text.find("nodes            ≥ 32.0  32.0       kept\n"), std::string::npos) << text;
    EXPECT_NE(text.find("DIFFERS  not over 450: 466 MFLOPS (beyond by 1.04 ×)\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("holds    32 at least: 32.0\n"), std::string::npos) << text;
    const auto json = nlohmann::json::parse(json_of({table}, {}));
    EXPECT_TRUE(json["tables"][0]["figures"][0]["deviation"].is_null());
    EXPECT_EQ(json["tables"][0]["figures"][0]["kind"], "input");
    EXPECT_EQ(json["tables"][0]["figures"][1]["kind"], "at most");
}

TEST(tables, a_claim_says_how_far_ours_is_beyond_it) {
    EXPECT_EQ(beyond(1.5, {1, 2}), 1);
    EXPECT_EQ(beyond(3, {1, 2}), 1.5);
    EXPECT_EQ(beyond(0.25, {1, 2}), 4);
    EXPECT_TRUE(std::isinf(beyond(-1, {1, 2})));
    EXPECT_TRUE(std::isinf(beyond(std::nan(""), {1, 2})));
    Table table;
    add_near(table, {"near", "", 100.0, 109.0, ""});
    add_near(table, {"far", "", 100.0, 121.0, ""});
    EXPECT_TRUE(table.shapes[0].holds);
    EXPECT_FALSE(table.shapes[1].holds);
    EXPECT_NEAR(*table.shapes[1].beyond, 1.1, 1e-9);
    EXPECT_EQ(fault_of(table), "");
}

TEST(tables, a_claim_about_an_input_is_a_fault_of_the_table) {
    const auto fault = [](const Figure& figure, const Shape& shape) {
        Table table;
        table.figures = {figure};
        table.shapes = {shape};
        return fault_of(table);
    };
    const Figure input{"latency", "µs", 21.0, 21.1, "", FigureKind::kInput};
    const Figure bound{"speed", "", 450.0, 466.0, "", FigureKind::kAtMost};
    const Shape no_claim{"another", "", true};
    EXPECT_EQ(fault(input, no_claim), "");
    EXPECT_EQ(fault(input, {"near 21", "21.1 µs", true, 1.0, "latency"}),
              "'near 21' is about an input");
    EXPECT_EQ(fault(input, {"near 21", "", true, 1.0, "throughput"}),
              "'near 21' is about a figure that is not there");
    EXPECT_EQ(fault({"latency", "µs", {}, 21.1, "", FigureKind::kInput}, no_claim),
              "'latency' is an input without a figure of a paper");
    EXPECT_EQ(fault(bound, no_claim), "'speed' is a bound without a claim");
    EXPECT_EQ(fault(bound, {"within 10 %", "466", true, 1.0, "speed"}),
              "'within 10 %' contradicts its bound");
    EXPECT_EQ(fault(bound, {"at most 450", "466", false, 1.04, "speed"}), "");
    EXPECT_EQ(fault(bound, {"at most 450", "466", false, 1.0, "speed"}),
              "'at most 450' is judged against its own factor");
}

TEST(tables, json_holds_what_the_text_does) {
    const auto json = nlohmann::json::parse(json_of({small_table()}, {.seed = 7}));
    EXPECT_EQ(json["seed"], 7);
    const auto& table = json["tables"].at(0);
    EXPECT_EQ(table["figures"][0]["deviation"], 0.25);
    EXPECT_TRUE(table["figures"][1]["ours"].is_null());
    EXPECT_TRUE(table["figures"][3]["deviation"].is_null());
    EXPECT_EQ(table["shapes"][1]["holds"], false);
    EXPECT_EQ(table["curves"][0]["points"][1][1], 4.0);
}

TEST(tables, a_picture_is_a_gnuplot_program_with_its_data) {
    const std::string script = gnuplot_of(small_table().pictures[0]);
    EXPECT_NE(script.find("set output 'small.svg'"), std::string::npos);
    EXPECT_NE(script.find("set logscale x 2"), std::string::npos);
    EXPECT_EQ(script.find("set logscale y"), std::string::npos);
    EXPECT_NE(script.find("$curve0 << EOD\n1 2\n2 4\nEOD\n"), std::string::npos);
    EXPECT_NE(script.find("plot $curve0 with linespoints title \"ours\""), std::string::npos);
}

ClusterConfig config_of(const char* host, MediumKind medium, std::uint16_t nodes) {
    ClusterConfig config;
    config.net.ports = nodes;
    config.net.medium = medium;
    config.net.bits_per_second = 100'000'000;
    config.hosts = {*host_preset(host)};
    return config;
}

TEST(tables, ping_pong_on_the_ideal_host_is_the_wire_and_little_more) {
    PingPongBench bench(config_of("ideal", MediumKind::kDirect, 2));
    // 72 bytes of 80 ns and two cables' ends; at most five rounds of 50 ns.
    const Measured shortest = bench.one_way(0, 10);
    ASSERT_TRUE(shortest.ok);
    EXPECT_GE(shortest.us, 5.76);
    EXPECT_LE(shortest.us, 5.76 + 0.25 + 0.05);
    const Measured large = bench.one_way(256U << 10, 2);
    ASSERT_TRUE(large.ok);
    const double asymptotic = megabytes_per_second(256U << 10, large.us);
    EXPECT_GT(asymptotic, 0.95 * 12.5);
    EXPECT_LT(asymptotic, 12.5 * 1486 / 1538) << "no more than the payload of full frames";
    const std::size_t half = half_power_point(bench, asymptotic, 1500, 4);
    EXPECT_GT(half, 40U);
    EXPECT_LE(half, 96U) << "the design's budget";
}

TEST(tables, gammas_ladder_is_climbed_step_by_step) {
    double before = 1e9;
    for (const char* host : {"gamma-0.1", "gamma-0.2", "gamma-0.3", "gamma-0.4"}) {
        PingPongBench bench(config_of(host, MediumKind::kDirect, 2));
        const Measured time = bench.one_way(0, 8);
        ASSERT_TRUE(time.ok) << host;
        EXPECT_LT(time.us, before) << host;
        before = time.us;
    }
}

TEST(tables, barriers_on_a_hub_have_the_order_of_gamma) {
    const auto time = [](const char* algorithm) {
        ClusterConfig config = config_of("gamma-0.4", MediumKind::kHub, 16);
        config.engine.profile = "gbn";
        const Measured measured = barrier_time(config, algorithm, 24);
        EXPECT_TRUE(measured.ok) << algorithm;
        return measured.us;
    };
    const double one = time("chain:1");
    const double two = time("chain:2");
    const double all = time("gather_broadcast");
    EXPECT_LT(two, one);
    EXPECT_LT(one, all);
    // One latency a member (5.1), the master's multicast the last.
    PingPongBench bench(config_of("gamma-0.4", MediumKind::kHub, 2));
    EXPECT_NEAR(one, 16 * bench.one_way(0, 8).us, 0.1 * one);
}

/// A claim that docs/benchmarks/PAPERS.md lists as different.
struct Difference {
    const char* claim;  ///< start of Shape::claim
    double beyond_max;  ///< accepted Shape::beyond
};

/// Returns the first claim whose verdict is not the expected one, and why; empty: none. A claim
/// that differs must differ, by no more than was accepted.
std::string unexpected_of(const Table& table, const std::vector<Difference>& differs) {
    for (const Difference& known : differs)
        if (std::ranges::none_of(table.shapes, [&](const Shape& shape) {
                return shape.claim.starts_with(known.claim);
            }))
            return std::string(known.claim) + ": a claim that differs is not there";
    for (const Shape& shape : table.shapes) {
        const auto known = std::ranges::find_if(differs, [&](const Difference& difference) {
            return shape.claim.starts_with(difference.claim);
        });
        const std::string what = shape.claim + ": " + shape.ours;
        if (known == differs.end()) {
            if (!shape.holds) return what + ": does not hold";
        } else if (shape.holds) {
            return what + ": holds, and is listed as different";
        } else if (!shape.beyond || *shape.beyond > known->beyond_max) {
            return what + ": beyond by " + std::to_string(shape.beyond.value_or(std::nan(""))) +
                   ", accepted " + std::to_string(known->beyond_max);
        }
    }
    return {};
}

/// An input comes back in this share of it; the costs of Linux TCP's hosts leave the most.
constexpr Allowed kComesBack{0.75, 1.25};

/// Expects that each claim holds, except those that differ, and that each input comes back.
void expect_shapes(Table (*make)(const TableOptions&), const std::vector<Difference>& differs) {
    const Table table = make({.seed = 1, .quick = true});
    EXPECT_FALSE(table.shapes.empty());
    EXPECT_EQ(fault_of(table), "");
    EXPECT_EQ(unexpected_of(table, differs), "");
    for (const Figure& figure : table.figures) {
        EXPECT_TRUE(!figure.ours || std::isfinite(*figure.ours)) << figure.what;
        // Else the host is not set from it.
        if (figure.kind == FigureKind::kInput) {
            EXPECT_LE(beyond(*figure.ours / *figure.paper, kComesBack), 1) << figure.what;
        }
    }
}

TEST(tables, an_accepted_difference_may_not_grow) {
    const auto unexpected = [](double ours, double accepted) {
        Table table;
        table.shapes = {claim_of("flat", "", ours, {.most = 2})};
        return unexpected_of(table, {{"flat", accepted}});
    };
    EXPECT_EQ(unexpected(3, 1.6), "");
    EXPECT_NE(unexpected(3, 1.4), "");
    EXPECT_NE(unexpected(1, 1.4), "") << "it holds";
    EXPECT_NE(unexpected(std::nan(""), 100), "");
    Table without_ratio;
    without_ratio.shapes = {{"flat", "grows", false}};
    EXPECT_NE(unexpected_of(without_ratio, {{"flat", 100}}), "");
    EXPECT_NE(unexpected_of(without_ratio, {}), "");
    EXPECT_NE(unexpected_of({}, {{"flat", 2}}), "");
}

TEST(tables, urtps_shapes_hold_on_its_cluster) {
    // Each message of a barrier's gather costs the root its driver's time, and requests collide:
    // the cost grows with the hosts. Requests of every receiver collide with the next packet.
    expect_shapes(urtp_cluster, {{"barriers with a slow root", 1.4},
                                 {"barriers with a fast root", 2.7},
                                 {"broadcast, 4 KB, 8 hosts", 2.0},
                                 {"allgather, 32 B, 8 hosts", 1.1},
                                 {"allgather, 1 KB, 8 hosts", 1.7},
                                 {"algorithm 2 (k = 1) is 1.5 times as fast as 1, 32 B", 1.5},
                                 {"algorithm 2 (k = 1) is 1.5 times as fast as 1, 1024 B", 3.1}});
}

TEST(tables, each_step_of_gammas_latency_gains_what_the_thesis_says) {
    // A window of 32 packets, and acknowledgements that collide with data.
    expect_shapes(gamma_latency, {{"Linux 2.0.29 TCP, 3c905, PII 300 [tcp], asymptotic", 1.15},
                                  {"Linux 2.0.29 TCP, 3c905, PII 300 [tcp], half-power", 2.0}});
}

TEST(tables, mpi_over_gamma_and_unet_is_the_sum_of_its_parts) { expect_shapes(mpi_hosts, {}); }

// The parts of mpi-hosts: profile and library decide whether a host's cost is ever due.
TEST(tables, acknowledgements_and_matches_cost_where_there_are_any) {
    const auto with = [](const char* profile, Nanos HostCosts::*part, Nanos cost) {
        ClusterConfig config = config_of("ideal", MediumKind::kDirect, 2);
        config.engine.profile = profile;
        config.hosts[0].*part = cost;
        return config;
    };
    const auto libulc = [](const ClusterConfig& config) {
        const Measured measured = PingPongBench(config).one_way(0, 20);
        EXPECT_TRUE(measured.ok);
        return measured.us;
    };
    const auto rings = [](const ClusterConfig& config) {
        Experiment experiment;
        experiment.cluster = config;
        experiment.traffic = {
            .kind = TrafficKind::kPingPong, .octets = 0, .count = 20, .warm_up = 4};
        const Figures figures = run_experiment(experiment);
        EXPECT_EQ(figures.error, "");
        return static_cast<double>(figures.latency_percentile(50)) / kMicrosecond;
    };
    constexpr Nanos kCost = 10 * kMicrosecond;
    for (const char* profile : {"detect", "gbn"}) {
        const ClusterConfig free = with(profile, &HostCosts::match, 0);
        const ClusterConfig matching = with(profile, &HostCosts::match, kCost);
        EXPECT_DOUBLE_EQ(rings(matching), rings(free)) << profile;
        EXPECT_NEAR(libulc(matching), libulc(free) + 10, 0.2) << profile;
        const ClusterConfig acknowledging = with(profile, &HostCosts::acknowledge, kCost);
        const bool acknowledges = std::string_view(profile) == "gbn";
        EXPECT_NEAR(rings(acknowledging), rings(free) + (acknowledges ? 20 : 0), 0.2) << profile;
        EXPECT_NEAR(libulc(acknowledging), libulc(free) + (acknowledges ? 20 : 0), 0.2) << profile;
    }
}

TEST(tables, gammas_barriers_have_the_thesis_order_on_the_hub) {
    // On a hub the default's acknowledgements collide with the barrier's messages.
    expect_shapes(gamma_barriers, {{"urtp: 2-chain on 48 nodes", 1.1}});
}

TEST(tables, pcode_is_flat_where_tcp_is_linear) {
    // Our hosts copy each byte at the same cost, whatever the size.
    expect_shapes(pcode_broadcast, {{"on 3 machines pcode almost stops growing", 1.3}});
}

TEST(tables, groups_share_addresses_at_less_cost_than_by_hash_or_broadcast) {
    expect_shapes(group_addresses, {});
}
TEST(tables, optimism_saves_what_express_says) { expect_shapes(express_flow, {}); }

TEST(tables, both_techniques_gain_what_express_says) { expect_shapes(express_applications, {}); }

TEST(tables, applications_are_as_fast_as_gammas) {
    // URTP gives no speeds of its hosts: by our estimates the rival's compute twice as fast, and
    // two of them are ahead still.
    // MPICH's queues are the rest of a latency on another processor.
    expect_shapes(applications, {{"product of 128: URTP is faster on 2", 2.0},
                                 {"Linpack: MPICH does not exceed 450 MFLOPS", 1.05}});
}

TEST(tables, molecular_dynamics_gains_from_broadcast) { expect_shapes(molecular_dynamics, {}); }

TEST(tables, threads_of_an_engine_gain_what_the_model_says) { expect_shapes(engine_threads, {}); }

TEST(tables, collectives_keep_their_budgets) { expect_shapes(collectives, {}); }

// A host's processor runs its engine while the application computes.
TEST(tables, what_the_engine_takes_of_a_computation_lengthens_it) {
    const auto time_with = [](std::size_t octets) {
        ClusterConfig config = config_of("ideal", MediumKind::kDirect, 2);
        config.hosts[0].receive_frame = 20 * kMicrosecond;
        ApplicationRun run(config);
        run.compute(1, 50 * kMillisecond);
        run.hand_on(0, 1, octets);
        return run.seconds();
    };
    EXPECT_NEAR(time_with(1), 0.050, 0.0002);
    constexpr double kFrames = 150'000.0 / 1486;
    EXPECT_NEAR(time_with(150'000), 0.050 + kFrames * 20e-6, 0.0005);
}

TEST(tables, the_default_is_the_best_policy_or_near_it) { expect_shapes(policies_compared, {}); }

TEST(tables, a_grid_is_printed_in_columns_and_as_json) {
    Table table = small_table();
    table.grids = {
        {"share, by loss", "%", {"none", "1e-02"}, {{"urtp", {94.13, std::nan("")}}}, 1}};
    EXPECT_NE(text_of(table).find("  share, by loss\n  %     none  1e-02\n  urtp  94.1      –\n"),
              std::string::npos)
        << text_of(table);
    const auto json = nlohmann::json::parse(json_of({table}, {}));
    EXPECT_EQ(json["tables"][0]["grids"][0]["rows"]["urtp"][0], 94.13);
    EXPECT_TRUE(json["tables"][0]["grids"][0]["rows"]["urtp"][1].is_null());
}

}  // namespace
}  // namespace ulc::sim
