// SPDX-License-Identifier: BSD-3-Clause
// Tests that the data by which an algorithm is chosen reach every member alike, and that the
// shipped tables agree with the simulator's measurements.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coll/selection.h"
#include "coll/table_text.h"
#include "coll/tuning/decide.h"
#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/tuning/sim_tuning.h"

namespace ulc::sim {
namespace {

using coll::Op;

/// Returns "medium/per_node" as every member of the group reports it, or the member that differs.
std::string known(LibCluster& lib, const std::vector<std::uint16_t>& members,
                  const std::vector<ulc_group>& groups) {
    std::string all;
    for (std::size_t i = 0; i < members.size(); ++i) {
        std::uint16_t per_node = 0;
        const char* medium = ulc_coll_medium(lib.endpoint(members[i]), groups[i], &per_node);
        if (medium == nullptr) return "rank " + std::to_string(members[i]) + " knows nothing";
        std::string one = medium;
        one += "/";
        one += std::to_string(per_node);
        if (!all.empty() && one != all) return one.append(" against ").append(all);
        all = std::move(one);
    }
    return all;
}

std::vector<std::uint16_t> all_of(const LibCluster& lib) {
    std::vector<std::uint16_t> members;
    for (std::uint16_t rank = 0; rank < lib.ranks(); ++rank)
        members.push_back(rank);
    return members;
}

std::string known_of_world(LibCluster& lib) {
    std::vector<ulc_group> groups;
    for (const std::uint16_t rank : all_of(lib))
        groups.push_back(ulc_world(lib.endpoint(rank)));
    return known(lib, all_of(lib), groups);
}

ClusterConfig nodes(std::uint16_t count, MediumKind medium = MediumKind::kSwitch) {
    ClusterConfig config;
    config.net.ports = count;
    config.net.medium = medium;
    config.net.bits_per_second = 100'000'000;
    return config;
}

TEST(CollectiveSelection, all_members_know_one_medium_and_one_number_of_ranks_a_node) {
    LibCluster on_switch(nodes(3));
    ASSERT_TRUE(on_switch.form());
    EXPECT_EQ(known_of_world(on_switch), "switch/1");
    LibCluster on_hub(nodes(3, MediumKind::kHub), 7);
    ASSERT_TRUE(on_hub.form());
    EXPECT_EQ(known_of_world(on_hub), "hub/3") << "half duplex ports; 7 ranks on 3 nodes";
    LibCluster on_one(nodes(2), 1);
    ASSERT_TRUE(on_one.form());
    EXPECT_EQ(known_of_world(on_one), "switch/1");
}

// J-28
TEST(CollectiveSelection, rank_0s_word_counts_for_all) {
    for (const std::uint16_t speaker : {0, 1}) {
        LibCluster lib(nodes(3, MediumKind::kHub), 3, [&](std::uint16_t rank) {
            client::Limits limits;
            if (rank == speaker) limits.medium = 1 + static_cast<int>(ulc::Medium::kMachine);
            return limits;
        });
        ASSERT_TRUE(lib.form());
        EXPECT_EQ(known_of_world(lib), speaker == 0 ? "machine/1" : "hub/1");
    }
}

TEST(CollectiveSelection, a_group_counts_its_own_members_on_a_node) {
    LibCluster lib(nodes(3), 9);  // rank r on node r mod 3
    ASSERT_TRUE(lib.form());
    const std::vector<std::vector<std::uint16_t>> groups{{0, 3, 6}, {0, 1, 3}, {2, 4}};
    const char* expected[] = {"node/3", "switch/2", "switch/1"};
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto& members = groups[i];
        std::vector<ulc_request> requests(members.size());
        for (std::size_t k = 0; k < members.size(); ++k)
            ASSERT_EQ(ulc_group_create(lib.endpoint(members[k]), members.data(),
                                       static_cast<std::uint16_t>(members.size()), &requests[k]),
                      ULC_OK);
        std::vector<ulc_status> made(members.size());
        const auto all_made = [&] {
            for (std::size_t k = 0; k < members.size(); ++k)
                if (ulc_test(lib.endpoint(members[k]), &requests[k], &made[k]) != ULC_OK)
                    return false;
            return true;
        };
        ASSERT_TRUE(lib.run(kSecond, all_made, [](std::uint16_t, Nanos) { return kNever; }));
        std::vector<ulc_group> handles(made.size());
        std::ranges::transform(made, handles.begin(), &ulc_status::group);
        EXPECT_EQ(known(lib, members, handles), expected[i]);
    }
    EXPECT_EQ(known_of_world(lib), "switch/3");
    EXPECT_EQ(ulc_coll_medium(lib.endpoint(0), 12345, nullptr), nullptr);
}

TEST(CollectiveSelection, what_is_asked_for_is_what_is_chosen) {
    LibCluster lib(nodes(8, MediumKind::kHub));
    ASSERT_TRUE(lib.form());
    ulc_endpoint* ep = lib.endpoint(0);
    const coll::Rule* rule = nullptr;
    const coll::Selection ships;
    static_cast<void>(
        ships.find({.op = Op::kBarrier, .medium = ulc::Medium::kHub, .ranks = 8}, &rule));
    EXPECT_EQ(ulc_coll_algorithm(ep, ulc_world(ep), "barrier", 0), rule->choice);
    EXPECT_EQ(ulc_coll_algorithm(ep, ulc_world(ep), "sum", 0), nullptr);
    EXPECT_EQ(ulc_coll_algorithm(ep, 12345, "barrier", 0), nullptr);
}

/// Starts a barrier with that table in a separate process. Its exit status is the error, and stderr
/// has the text.
[[noreturn]] void start_with(const char* table, const char* algorithm) {
    ::setenv("ULC_COLL_TABLE", table, 1);  // NOLINT(concurrency-mt-unsafe): one thread
    LibCluster lib(nodes(2));
    ulc_coll* operation = nullptr;
    const int error = lib.form() ? ulc_barrier_start(lib.endpoint(0), ulc_world(lib.endpoint(0)),
                                                     algorithm, &operation)
                                 : int{ULC_ERR_TIMEOUT};
    std::fprintf(stderr, "%s\n", error == ULC_OK ? "started" : ulc_last_error_text());
    std::_Exit(error);
}

TEST(CollectiveSelectionDeathTest,
     a_table_with_a_mistake_is_the_error_of_every_operation_that_needs_it) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // the table is read once a process
    const char* path = "coll_selection_test.toml";
    std::ofstream(path) << "version = 1\nrule = [{operation = \"barrier\", choice = \"chian\"}]\n";
    const testing::ExitedWithCode invalid(ULC_ERR_INVALID);
    EXPECT_EXIT(
        start_with(path, nullptr), invalid,
        "coll_selection_test.toml:2: choice: barrier has no algorithm \"chian\"; there are");
    EXPECT_EXIT(start_with(path, "chain"), testing::ExitedWithCode(ULC_OK), "started");
    EXPECT_EXIT(start_with("none.toml", nullptr), invalid,
                "none.toml: cannot be read .*correct the path in ULC_COLL_TABLE");
    std::remove(path);
}

/// Returns cells of each table that the simulator made: `count` cells that are measured quickly,
/// spread over the file.
std::vector<coll::Cell> sample_of(const std::string& name, std::size_t count) {
    const std::string path = std::string(ULC_TABLES) + "/" + name;
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    coll::TableText table;
    std::string mistake;
    EXPECT_EQ(coll::parse_table(path, text.str(), table, mistake), Err::kOk) << mistake;
    std::erase_if(table.cells, [](const coll::Cell& cell) {
        return cell.at.octets * cell.at.ranks > 16384 || cell.at.ranks > 16;
    });
    std::vector<coll::Cell> sample;
    for (std::size_t i = 0; i < count && !table.cells.empty(); ++i)
        sample.push_back(table.cells[(2 * i + 1) * table.cells.size() / (2 * count)]);
    return sample;
}

/// Virtual time has no noise: a difference comes from a later change of the transport. A few times
/// may differ; the choices must hold.
TEST(CollectiveSelection, what_ships_is_what_the_simulator_measures) {
    constexpr double kDrift = 0.05;
    std::size_t measured = 0;
    std::size_t drifted = 0;
    for (const char* name : {"switch.toml", "shallow.toml", "hub.toml"}) {
        for (const coll::Cell& shipped : sample_of(name, 10)) {
            std::vector<std::string_view> choices;
            for (const auto& [choice, us] : shipped.us)
                choices.push_back(choice);
            const coll::Cell now = measure(shipped.at, choices);
            for (const auto& [choice, us] : shipped.us) {
                const double differs = std::abs(coll::time_of(now, choice) / us - 1);
                ++measured;
                if (differs <= std::max(kDrift, shipped.noise)) continue;
                ++drifted;
                std::printf("%s: %s of %llu octets, %u ranks, %.*s: %.1f us, shipped %.1f\n", name,
                            std::string(coll::name_of(shipped.at.op)).c_str(),
                            static_cast<unsigned long long>(shipped.at.octets),
                            unsigned{shipped.at.ranks}, static_cast<int>(choice.size()),
                            choice.data(), coll::time_of(now, choice), us);
            }
            const coll::Rule* rule = nullptr;
            ASSERT_NE(coll::shipped().find(shipped.at, &rule), nullptr);
            EXPECT_LE(coll::loss_of(now, rule->choice),
                      std::max(coll::kLossMax, shipped.noise) + 2 * kDrift)
                << name << ": " << coll::name_of(shipped.at.op) << ", " << shipped.at.ranks
                << " ranks, " << shipped.at.octets << " octets: " << rule->choice;
        }
    }
    EXPECT_GT(measured, 90U);
    EXPECT_LE(10 * drifted, measured) << "make coll/tables/ again (docs/benchmarks/ALGORITHMS.md)";
    std::printf("%zu times, %zu differ from those that ship\n", measured, drifted);
}

}  // namespace
}  // namespace ulc::sim
