// SPDX-License-Identifier: BSD-3-Clause
// Scenario files: the examples are read and run; each mistake names file, line and key.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/sim/scenario/scenario_file.h"

namespace ulc::sim {
namespace {

std::string mistake_in(const std::string& text) {
    const std::string path = testing::TempDir() + "ulc_scenario.toml";
    std::ofstream(path) << text;
    Scenario scenario;
    const std::string mistake = read_scenario(path, 0, scenario);
    return mistake.starts_with(path) ? mistake.substr(path.size()) : "no path: " + mistake;
}

void expect_start(const std::string& text, const std::string& start) {
    const std::string mistake = mistake_in(text);
    EXPECT_TRUE(mistake.starts_with(start)) << mistake << "\n  should begin with " << start;
}

TEST(Scenario, a_mistake_names_file_line_and_key) {
    expect_start("[medium]\nnodes = 0\n", ":2: medium.nodes: must be from 1 to 4096");
    expect_start("[medium]\nnodes = 2.5\n", ":2: medium.nodes: must be a whole number");
    expect_start("[medium]\nnodes = \"many\"\n", ":2: medium.nodes: must be a number");
    expect_start("[medium]\nkind = \"ring\"\n", ":2: medium.kind: must be one of switch, ");
    expect_start("[medium]\nkind = \"direct\"\nnodes = 3\n", ":1: medium: a cable has two ends");
    expect_start("[medium]\nport_rates_mbps = [1, \"x\"]\n", ":2: medium.port_rates_mbps: each");
    expect_start("\n[faults]\nlos = 0.1\n", ":3: faults.los: is not a key here; there are ");
    expect_start("[faults]\nloss = 1.5\n", ":2: faults.loss: must be from 0 to 1");
    expect_start("[host]\npreset = \"cray\"\n", ":2: host.preset: must name a host: ideal, ");
    expect_start("[host]\npreset = []\n", ":2: host.preset: names no host");
    expect_start("[host]\nnotice = 1\n", ":2: host.notice: must be a text in quotes");
    expect_start("[engine]\nwindow = 100\n", ":2: engine.window: must be a power of two");
    expect_start("[engine]\nprofile = \"tcp\"\n", ":2: engine.profile: is no profile");
    expect_start("[engine]\ncrc = 1\n", ":2: engine.crc: must be true or false");
    expect_start("[region]\nsubmission_slots = 9\n",
                 ":2: region.submission_slots: must be a power");
    expect_start("[traffic]\ncount = 0\n", ":2: traffic.count: must be from 1");
    expect_start("[medium]\nnodes = 1\n[traffic]\n", ":3: traffic.ranks: there must be two");
    expect_start("[[event]]\nat_us = 1\n", ":1: event.kind: must be there");
    expect_start("[[event]]\nkind = \"unplug\"\n", ":1: event.node: must be there");
    expect_start("[[event]]\nkind = \"kill-client\"\nrank = 2\n", ":3: event.rank: must be from 0");
    expect_start("[[event]]\nkind = \"partition\"\nnodes = [5]\n", ":3: event.nodes: each must");
    expect_start("medium = 3\n", ":1: medium: must be a table");
    expect_start("[medium\n", ":1: ");
    expect_start("seeds = 3\n", ":1: seeds: is not a key here");
}

TEST(Scenario, a_file_that_is_not_there_is_named) {
    Scenario scenario;
    EXPECT_TRUE(read_scenario("/nowhere/x.toml", 0, scenario).starts_with("/nowhere/x.toml:"));
}

TEST(Scenario, the_seed_of_the_command_line_wins) {
    const std::string path = testing::TempDir() + "ulc_scenario.toml";
    std::ofstream(path) << "seed = 5\n";
    Scenario scenario;
    ASSERT_EQ(read_scenario(path, 0, scenario), "");
    EXPECT_EQ(scenario.experiment.cluster.seed, 5U);
    ASSERT_EQ(read_scenario(path, 9, scenario), "");
    EXPECT_EQ(scenario.experiment.cluster.net.seed, 9U);
}

TEST(Scenario, every_example_runs) {
    std::size_t examples = 0;
    for (const auto& entry : std::filesystem::directory_iterator(ULC_SCENARIOS)) {
        Scenario scenario;
        ASSERT_EQ(read_scenario(entry.path().string(), 0, scenario), "") << entry.path();
        auto& traffic = scenario.experiment.traffic;
        traffic.count = std::min<std::uint64_t>(traffic.count, 20);  // a taste of each
        EXPECT_EQ(run_experiment(scenario.experiment).error, "") << entry.path();
        ++examples;
    }
    EXPECT_GE(examples, 5U);
}

}  // namespace
}  // namespace ulc::sim
