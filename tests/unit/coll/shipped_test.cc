// SPDX-License-Identifier: BSD-3-Clause
// The shipped tables follow from the measurements that they contain (coll/tables/).
// tests/sim/coll/selection_test.cc tests that the simulator reproduces these measurements. No
// choice loses more in any cell than it may, and `ulc tune --explain` explains each by its
// measurement.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "coll/selection.h"
#include "coll/tuning/candidates.h"
#include "coll/tuning/decide.h"
#include "coll/tuning/report.h"

namespace ulc::coll {
namespace {

std::string text_of(const Rule& rule) {
    std::ostringstream text;
    text << name_of(rule.op) << ' ' << name_of(rule.medium);
    for (const Span& span : {rule.per_node, rule.ranks, rule.octets})
        text << ' ' << span.from << '-' << span.to;
    text << ' ' << rule.choice;
    return text.str();
}

std::vector<std::string> texts_of(const std::vector<Rule>& rules) {
    std::vector<std::string> all;
    all.reserve(rules.size());
    for (const Rule& rule : rules)
        all.push_back(text_of(rule));
    return all;
}

std::string name_of(const Cell& cell) {
    std::ostringstream text;
    text << name_of(cell.at.op) << " on " << name_of(cell.at.medium) << ", " << cell.at.ranks
         << " ranks, " << cell.at.per_node << " a node, " << cell.at.octets << " octets";
    return text.str();
}

class CollShipped : public testing::Test {
protected:
    void SetUp() override {
        for (const auto& entry : std::filesystem::directory_iterator(ULC_TABLES)) {
            std::stringstream text;
            text << std::ifstream(entry.path()).rdbuf();
            TableText table;
            std::string mistake;
            ASSERT_EQ(parse_table(entry.path().string(), text.str(), table, mistake), Err::kOk)
                << mistake;
            tables_.push_back(std::move(table));
        }
        ASSERT_GE(tables_.size(), 4U);
    }

    std::vector<TableText> tables_;
};

TEST_F(CollShipped, the_rules_are_what_follows_from_the_cells) {
    for (const TableText& table : tables_) {
        // A measurement on a job is valid for such jobs only.
        const bool simulated = table.source.starts_with("ulc-sim tune");
        const Reach reach = simulated ? Reach::kEverything : Reach::kMeasured;
        EXPECT_EQ(texts_of(decide(table.cells, reach, nullptr)), texts_of(table.rules))
            << table.source << ": make the file again, do not write into it";
    }
}

/// Uses the table that is compiled in, whatever its origin.
TEST_F(CollShipped, no_choice_loses_more_in_any_cell_than_it_may) {
    std::size_t cells = 0;
    for (const TableText& table : tables_) {
        for (const Cell& cell : table.cells) {
            const Rule* rule = nullptr;
            ASSERT_NE(shipped().find(cell.at, &rule), nullptr) << name_of(cell);
            EXPECT_LE(loss_of(cell, rule->choice), std::max(kLossMax, cell.noise))
                << name_of(cell) << ": " << rule->choice;
            ++cells;
        }
    }
    EXPECT_GT(cells, 500U);
}

/// Returns the rows of a table in Markdown, without those of its head.
std::vector<std::string> rows_of(const std::string& page) {
    std::vector<std::string> rows;
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("| ") && !line.starts_with("| operation") &&
            !line.starts_with("| ---"))
            rows.push_back(line);
    return rows;
}

TEST_F(CollShipped, each_choice_is_explained_by_its_measurement) {
    for (const TableText& table : tables_) {
        const std::vector<std::string> rows = rows_of(explain(table));
        ASSERT_EQ(rows.size(), table.rules.size()) << table.source;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Rule& rule = table.rules[i];
            EXPECT_TRUE(rows[i].starts_with("| " + std::string(name_of(rule.op)) + " | "))
                << rows[i];
            EXPECT_NE(rows[i].find(" | **" + rule.choice + "** | "), std::string::npos) << rows[i];
            EXPECT_EQ(rows[i].find("not measured"), std::string::npos) << rows[i];
            EXPECT_EQ(std::ranges::count(rows[i], '|'), 10) << rows[i];
        }
    }
}

TEST_F(CollShipped, every_rule_but_a_followers_stands_on_cells) {
    for (const TableText& table : tables_) {
        EXPECT_NE(table.source.find("tune"), std::string::npos)
            << "the command that measured it: " << table.source;
        for (const Rule& rule : table.rules) {
            const bool follows =
                std::ranges::find(followers(), rule.op, &Follower::op) != followers().end();
            const auto cells = std::ranges::count_if(table.cells, [&](const Cell& cell) {
                return cell.at.op == rule.op && cell.at.medium == rule.medium &&
                       rule.per_node.has(cell.at.per_node) && rule.ranks.has(cell.at.ranks) &&
                       rule.octets.has(cell.at.octets);
            });
            EXPECT_EQ(cells == 0, follows) << text_of(rule);
        }
    }
}

}  // namespace
}  // namespace ulc::coll
