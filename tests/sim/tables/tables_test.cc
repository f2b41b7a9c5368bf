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

/// Expects that each claim holds, except those that docs/benchmarks/PAPERS.md lists as different:
/// then `differs` names the start of the claim.
void expect_shapes(Table (*make)(const TableOptions&), const std::vector<std::string>& differs) {
    const Table table = make({.seed = 1, .quick = true});
    EXPECT_FALSE(table.shapes.empty());
    std::size_t known = 0;
    for (const Shape& shape : table.shapes) {
        const bool is_known = std::ranges::any_of(
            differs, [&](const std::string& start) { return shape.claim.starts_with(start); });
        known += is_known ? 1 : 0;
        EXPECT_EQ(shape.holds, !is_known) << shape.claim << ": " << shape.ours;
    }
    EXPECT_EQ(known, differs.size()) << "a claim that differs is not there";
    for (const Figure& figure : table.figures)
        EXPECT_TRUE(!figure.ours || std::isfinite(*figure.ours)) << figure.what;
}

TEST(tables, urtps_shapes_hold_on_its_cluster) {
    // Each message of a barrier's gather costs the root its driver's time, and requests collide:
    // the cost grows with the hosts.
    expect_shapes(urtp_cluster, {"barriers with a slow root", "barriers with a fast root"});
}

TEST(tables, each_step_of_gammas_latency_gains_what_the_thesis_says) {
    expect_shapes(gamma_latency, {});
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
    expect_shapes(gamma_barriers, {});
}

TEST(tables, pcode_is_flat_where_tcp_is_linear) { expect_shapes(pcode_broadcast, {}); }

TEST(tables, groups_share_addresses_at_less_cost_than_by_hash_or_broadcast) {
    expect_shapes(group_addresses, {});
}
TEST(tables, optimism_saves_what_express_says) { expect_shapes(express_flow, {}); }

TEST(tables, both_techniques_gain_what_express_says) { expect_shapes(express_applications, {}); }

TEST(tables, applications_are_as_fast_as_gammas) {
    // URTP gives no speeds of its hosts: by our estimates the rival's compute twice as fast, and
    // two of them are ahead still.
    expect_shapes(applications, {"product of 128: URTP is faster on 2"});
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
