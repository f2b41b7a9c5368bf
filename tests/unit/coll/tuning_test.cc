// SPDX-License-Identifier: BSD-3-Clause
// Tests the path from measurements to rules, to text and back.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coll/selection.h"
#include "coll/tuning/decide.h"
#include "coll/tuning/report.h"

namespace ulc::coll {
namespace {

constexpr std::uint64_t kMax = UINT64_MAX;

Cell cell(Op op, std::uint16_t ranks, std::uint64_t octets,
          std::vector<std::pair<std::string, double>> us, double noise = 0) {
    return {{.op = op, .ranks = ranks, .octets = octets}, noise, std::move(us)};
}

std::string choices_of(const std::vector<Rule>& rules) {
    std::string all;
    for (const Rule& rule : rules)
        all += (all.empty() ? "" : " ") + rule.choice;
    return all;
}

/// Returns the rules chosen for one cell.
std::string chosen(const Cell& cell, const Table* shipped = nullptr) {
    return choices_of(decide({&cell, 1}, Reach::kEverything, shipped));
}

TEST(coll_tuning, the_fastest_wins_and_of_equals_the_first) {
    EXPECT_EQ(chosen(cell(Op::kReduce, 4, 8, {{"chain", 10}, {"binomial", 9.6}})), "binomial");
    EXPECT_EQ(chosen(cell(Op::kReduce, 4, 8, {{"chain", 10}, {"binomial", 9.9}})), "chain");
    EXPECT_EQ(chosen(cell(Op::kReduce, 4, 8, {{"chain", 10}, {"binomial", 9}}, 0.2)), "chain");
}

TEST(coll_tuning, what_ships_is_kept_unless_another_one_is_faster_by_more_than_the_noise) {
    Table ships;
    ASSERT_EQ(ships.set({{.op = Op::kReduce, .choice = "chain"}}), Err::kOk);
    EXPECT_EQ(chosen(cell(Op::kReduce, 4, 8, {{"chain", 10}, {"binomial", 9}}, 0.05), &ships),
              "binomial");
    const Cell noisy = cell(Op::kReduce, 4, 8, {{"flat", 9}, {"chain", 10}, {"binomial", 9}}, 0.2);
    EXPECT_EQ(chosen(noisy, &ships), "chain");
    ASSERT_EQ(ships.set({{.op = Op::kReduce, .choice = "chain:3"}}), Err::kOk);
    EXPECT_EQ(chosen(noisy, &ships), "flat") << "not measured, so not kept";
}

TEST(coll_tuning, a_rule_is_cut_only_where_one_choice_for_both_would_lose_much) {
    // A choice that is near the best in both cells becomes one rule, although it is the best in
    // neither.
    const auto of = [](double middling) {
        const std::vector<Cell> cells{
            cell(Op::kReduce, 4, 8, {{"flat", 10}, {"chain", middling}, {"binomial", 20}}),
            cell(Op::kReduce, 16, 8, {{"flat", 20}, {"chain", middling}, {"binomial", 10}})};
        return choices_of(decide(cells, Reach::kEverything, nullptr));
    };
    EXPECT_EQ(of(10 * (1 + 0.9 * kLossMax)), "chain");
    EXPECT_EQ(of(10 * (1 + 1.1 * kLossMax)), "flat binomial");
}

TEST(coll_tuning, a_choice_that_was_given_up_at_smaller_sizes_is_not_taken_at_greater_ones) {
    const std::vector<Cell> cells{cell(Op::kReduce, 4, 8, {{"flat", 10}, {"chain", 41}}),
                                  cell(Op::kReduce, 4, 1024, {{"flat", 100}}),
                                  cell(Op::kGather, 4, 8, {{"direct", 10}, {"token", 50}}),
                                  cell(Op::kGather, 4, 1024, {{"direct", 110}, {"token:2", 100}})};
    EXPECT_EQ(choices_of(decide(cells, Reach::kEverything, nullptr)), "direct token:2 flat direct")
        << "the last is the gatherv, of any size";
}

TEST(coll_tuning, of_cuts_of_a_grid_the_one_with_the_fewest_rules_is_taken) {
    // Split by ranks and then by sizes, this takes two rules; split by sizes alone, two more in
    // each column.
    std::vector<Cell> cells;
    for (const std::uint16_t per_node : {1, 4})
        for (const std::uint16_t ranks : {8, 16})
            for (const std::uint64_t octets : {8U, 1024U}) {
                const bool chain = ranks == 16;
                Cell one = cell(Op::kReduce, ranks, octets,
                                {{"flat", chain ? 20.0 : 10.0}, {"chain", chain ? 10.0 : 20.0}});
                one.at.per_node = per_node;
                cells.push_back(std::move(one));
            }
    const auto rules = decide(cells, Reach::kEverything, nullptr);
    EXPECT_EQ(choices_of(rules), "flat chain");
    EXPECT_EQ(rules[0].per_node, Span{});
    EXPECT_EQ(rules[0].ranks, (Span{0, 11}));
    EXPECT_EQ(rules[1].octets, Span{});
    // The neighbours of a hole in the grid cover it.
    cells.erase(cells.begin() + 4, cells.begin() + 6);  // 4 a node, 8 ranks
    EXPECT_EQ(choices_of(decide(cells, Reach::kEverything, nullptr)), "flat chain");
}

TEST(coll_tuning, borders_are_geometric_means_and_neighbours_of_one_choice_are_one_rule) {
    std::vector<Cell> cells;
    for (const std::uint16_t ranks : {4, 16})
        for (const std::uint64_t octets : {16U, 64U, 256U}) {
            const bool chain = ranks == 16 && octets > 16;
            cells.push_back(
                cell(Op::kReduce, ranks, octets, {{"flat", 10}, {"chain", chain ? 5.0 : 20.0}}));
        }
    const auto rules = decide(cells, Reach::kEverything, nullptr);
    ASSERT_EQ(rules.size(), 3U);
    EXPECT_EQ(rules[0].choice, "flat");
    EXPECT_EQ(rules[0].ranks, (Span{0, 8}));
    EXPECT_EQ(rules[0].octets, Span{});
    EXPECT_EQ(rules[1].ranks, (Span{9, kMax}));
    EXPECT_EQ(rules[1].octets, (Span{0, 32}));
    EXPECT_EQ(rules[2].choice, "chain");
    EXPECT_EQ(rules[2].octets, (Span{33, kMax}));
    EXPECT_EQ(rules[2].per_node, Span{});
}

TEST(coll_tuning, a_clusters_own_rules_reach_no_further_than_what_was_measured) {
    std::vector<Cell> cells{cell(Op::kBarrier, 2, 0, {{"chain", 5}}),
                            cell(Op::kBarrier, 4, 0, {{"chain:2", 5}})};
    cells[1].at.per_node = 2;
    const auto rules = decide(cells, Reach::kMeasured, nullptr);
    ASSERT_EQ(rules.size(), 2U);
    EXPECT_EQ(rules[0].ranks, (Span{2, 2}));
    EXPECT_EQ(rules[0].per_node, (Span{1, 1}));
    EXPECT_EQ(rules[1].ranks, (Span{4, 4}));
    EXPECT_EQ(rules[1].per_node, (Span{2, 2}));
}

TEST(coll_tuning, operations_that_are_not_measured_take_what_others_took) {
    const std::vector<Cell> cells{
        cell(Op::kGather, 4, 8, {{"binomial", 10}, {"direct", 40}, {"token", 41}}),
        cell(Op::kGather, 4, 1024, {{"binomial", 90}, {"direct", 80}, {"token", 70}}),
        cell(Op::kScan, 4, 8, {{"doubling", 1}, {"chain", 2}})};
    std::string all;
    for (const Rule& rule : decide(cells, Reach::kEverything, nullptr))
        all += std::string(name_of(rule.op)) + " " + rule.choice + "\n";
    // A gatherv has no binomial algorithm, and one choice for all sizes.
    EXPECT_EQ(all,
              "gather binomial\ngather token\nscan doubling\ngatherv token\nexscan doubling\n");
}

TEST(coll_tuning, a_table_that_is_written_is_read_as_it_was) {
    TableText table;
    table.source = "a test";
    table.cells = {cell(Op::kScan, 4, 8, {{"doubling", 1.5}, {"chain@4096", 2}}, 0.125),
                   cell(Op::kScan, 4, 256, {{"doubling", 3}, {"chain@4096", 2}})};
    table.rules = decide(table.cells, Reach::kMeasured, nullptr);
    TableText read;
    std::string mistake;
    ASSERT_EQ(parse_table("t", write_table(table, "two\nlines"), read, mistake), Err::kOk)
        << mistake;
    EXPECT_EQ(read.source, "a test");
    ASSERT_EQ(read.rules.size(), table.rules.size());
    for (std::size_t i = 0; i < read.rules.size(); ++i) {
        EXPECT_EQ(read.rules[i].op, table.rules[i].op);
        EXPECT_EQ(read.rules[i].octets, table.rules[i].octets);
        EXPECT_EQ(read.rules[i].ranks, table.rules[i].ranks);
        EXPECT_EQ(read.rules[i].choice, table.rules[i].choice);
    }
    ASSERT_EQ(read.cells.size(), 2U);
    EXPECT_EQ(read.cells[0].us, table.cells[0].us);
    EXPECT_EQ(read.cells[0].noise, 0.125);
    EXPECT_EQ(read.cells[1].at.octets, 256U);
}

TEST(coll_tuning, what_is_rounded_is_read_as_it_was) {
    TableText table;
    table.cells = {cell(Op::kReduce, 4, 8, {{"flat", 10.04}, {"chain", 10.26}}, 0.0004),
                   cell(Op::kReduce, 4, 64, {{"flat", 1.0 / 3}, {"chain", 2.0 / 3}}, 0.0126)};
    round_as_written(table.cells);
    TableText read;
    std::string mistake;
    ASSERT_EQ(parse_table("t", write_table(table, ""), read, mistake), Err::kOk) << mistake;
    ASSERT_EQ(read.cells.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(read.cells[i].us, table.cells[i].us);
        EXPECT_EQ(read.cells[i].noise, table.cells[i].noise);
    }
}

TEST(coll_tuning, an_explanation_shows_of_several_measurements_the_least_gain_and_the_greatest) {
    TableText table;
    table.cells = {cell(Op::kReduce, 4, 8, {{"flat", 11}, {"chain", 10}}),
                   cell(Op::kReduce, 4, 64, {{"flat", 40}, {"chain", 20}, {"binomial", 50}}),
                   cell(Op::kReduce, 4, 256, {{"flat", 45}, {"chain", 30}})};
    table.rules = decide(table.cells, Reach::kMeasured, nullptr);
    const std::string text = explain(table);
    EXPECT_NE(text.find("| 4 ranks, 8 B (of 3) | 10.0 | flat +10 % | 4 ranks, 64 B: flat +100 % |"),
              std::string::npos)
        << text;
}

TEST(coll_tuning, an_explanation_names_the_winner_its_time_and_what_the_others_take_more) {
    TableText table;
    table.cells = {
        cell(Op::kReduce, 4, 1024, {{"flat", 20}, {"chain", 10}, {"binomial", 15}}, 0.03)};
    table.rules = decide(table.cells, Reach::kMeasured, nullptr);
    const std::string text = explain(table);
    EXPECT_NE(text.find("| reduce | 4 | 1 | any | **chain** | 4 ranks, 1 KiB | 10.0 | noise 3 %; "
                        "binomial +50 %, flat +100 % | |"),
              std::string::npos)
        << text;
}

TEST(coll_tuning, of_several_measurements_of_a_situation_the_mean_counts) {
    const std::vector<Cell> cells{
        cell(Op::kReduce, 4, 8, {{"flat", 10}, {"chain", 30}, {"binomial", 5}}, 0.1),
        cell(Op::kReduce, 8, 8, {{"flat", 7}}, 0.2),
        cell(Op::kReduce, 4, 8, {{"chain", 120}, {"flat", 90}}, 0.3)};
    const std::vector<Cell> means = one_of_each(cells);
    ASSERT_EQ(means.size(), 2U);
    EXPECT_NEAR(time_of(means[0], "flat"), 30, 1e-9);
    EXPECT_NEAR(time_of(means[0], "chain"), 60, 1e-9);
    EXPECT_EQ(time_of(means[0], "binomial"), 0) << "not all measured it";
    EXPECT_EQ(means[0].noise, 0.3);
    EXPECT_NEAR(time_of(means[1], "flat"), 7, 1e-9);
    EXPECT_EQ(means[1].at.ranks, 8);
}

}  // namespace
}  // namespace ulc::coll
