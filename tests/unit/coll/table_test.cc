// SPDX-License-Identifier: BSD-3-Clause
// Selection tables: their text with every mistake that it may have, their rules, and what ships.
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "coll/selection.h"
#include "coll/table_text.h"

namespace ulc::coll {
namespace {

std::string mistake_of(const std::string& text) {
    TableText table;
    std::string mistake;
    const Err error = parse_table("my.toml", text, table, mistake);
    EXPECT_EQ(error == Err::kOk, mistake.empty());
    return mistake;
}

/// A file of these lines behind "version = 1" and "rule = [".
std::string rules(const std::string& lines) { return "version = 1\nrule = [\n" + lines + "\n]\n"; }

TEST(coll_table, a_rule_and_a_cell_are_read_as_they_stand) {
    TableText table;
    std::string mistake;
    const std::string text =
        "# made by hand\nversion = 1  # the first\nsource = \"me\"\n\n"
        "rule = [ # none\n  {operation = \"scan\", medium = \"hub\", per_node_from = 2, "
        "per_node_to = "
        "3, ranks_from = 4,\tranks_to = 5, octets_from = 6, octets_to = 7, choice = "
        "\"chain@4096\"},\n\n  {choice=\"dissemination:3\",operation=\"barrier\"}\n]\n"
        "cell = [{operation = \"barrier\", medium = \"node\", per_node = 4, ranks = 4, octets = 0, "
        "noise = 0.5, us = {\"chain:2\" = 1.5, chain = 2}}]";
    ASSERT_EQ(parse_table("my.toml", text, table, mistake), Err::kOk) << mistake;
    EXPECT_EQ(table.source, "me");
    ASSERT_EQ(table.rules.size(), 2U);
    const Rule& rule = table.rules[0];
    EXPECT_EQ(rule.op, Op::kScan);
    EXPECT_EQ(rule.medium, Medium::kHub);
    EXPECT_EQ(rule.per_node, (Span{2, 3}));
    EXPECT_EQ(rule.ranks, (Span{4, 5}));
    EXPECT_EQ(rule.octets, (Span{6, 7}));
    EXPECT_EQ(rule.choice, "chain@4096");
    EXPECT_EQ(rule.line, 6U);
    EXPECT_EQ(table.rules[1].medium, Medium::kSwitch);
    EXPECT_EQ(table.rules[1].octets, Span{});
    EXPECT_EQ(table.rules[1].line, 8U);
    ASSERT_EQ(table.cells.size(), 1U);
    EXPECT_EQ(table.cells[0].at.medium, Medium::kNode);
    EXPECT_EQ(table.cells[0].at.ranks, 4);
    EXPECT_EQ(table.cells[0].noise, 0.5);
    ASSERT_EQ(table.cells[0].us.size(), 2U);
    EXPECT_EQ(table.cells[0].us[0].first, "chain:2");
    EXPECT_EQ(table.cells[0].us[1].second, 2);
}

TEST(coll_table, every_mistake_is_told_with_file_line_and_key) {
    const struct {
        std::string text;
        const char* mistake;
    } all[] = {
        {"", "my.toml:1: version: must stand first: version = 1"},
        {"\nrule = []", "my.toml:2: version: must stand first: version = 1"},
        {"version = 2\nnew = {}",
         "my.toml:1: version: is 2, and this library reads 1; make the table again with its own "
         "ulc "
         "tune"},
        {"version = one", "my.toml:1: version: must be a whole number from 0 on"},
        {"version = 1\nrules = []",
         "my.toml:2: rules: is not a key here; there are version, source, rule and cell"},
        {"version = 1\nrule = []\nrule = []",
         "my.toml:3: rule: is there already; a key may be there once"},
        {"version = 1\nrule = [", "my.toml:2: rule: '{' is missing here"},
        {"version = 1\nsource = \"a\nb\"",
         "my.toml:2: source: must be a text in quotes, on one line and without \\"},
        {rules("{choice = \"chain\"}"), "my.toml:3: operation: is missing in this rule"},
        {rules("{operation = \"barrier\"}"), "my.toml:3: choice: is missing in this rule"},
        {rules("{operation = \"scan\", operation = \"scan\"}"),
         "my.toml:3: operation: is there already; a key may be there once"},
        {rules("{operation = \"scan\" choice = \"chain\"}"),
         "my.toml:3: choice: is missing in this rule"},
        {rules("{operation = \"scan\", choice = \"chain\"} {}"),
         "my.toml:3: rule: ']' is missing here"},
        {rules("{operation = \"scan\", choice = \"chain\", size = 3}"),
         "my.toml:3: size: is not a key of a rule; there are operation, medium, choice, and "
         "per_node, "
         "ranks and octets, each with _from and _to"},
        {rules("{operation = \"scan\", choice = \"chain\", ranks_to = -3}"),
         "my.toml:3: ranks_to: must be a whole number from 0 on"},
        {rules("{operation = \"scan\", choice = \"chain\", ranks_to = 3.5}"),
         "my.toml:3: ranks_to: must be a whole number from 0 on"},
        {rules("{operation = \"scan\", choice = \"chain\", ranks_from = 9, ranks_to = 8}"),
         "my.toml:3: ranks_to: ranks begins at 9 and ends before, at 8"},
        {rules("\n{operation = \"sum\", choice = \"chain\"}"),
         "my.toml:4: operation: must be barrier, broadcast, gather, gatherv, scatter, scatterv, "
         "allgather, alltoall, alltoallv, reduce, allreduce, reduce_scatter, scan or exscan, and "
         "is "
         "\"sum\""},
        {rules("{operation = \"scan\", medium = \"wire\", choice = \"chain\"}"),
         "my.toml:3: medium: must be switch, hub, shallow, machine, crowded or node, and is "
         "\"wire\""},
        {rules("{operation = \"scan\", choice = \"ring\"}"),
         "my.toml:3: choice: scan has no algorithm \"ring\"; there are multicast, chain or "
         "doubling"},
        {rules("{operation = \"barrier\", choice = \"chain:two\"}"),
         "my.toml:3: choice: must be as name:k@octets, and is \"chain:two\""},
        {rules("{operation = \"barrier\", choice = \"chain:0\"}"),
         "my.toml:3: choice: must be as name:k@octets, and is \"chain:0\""},
        {rules("{operation = \"barrier\", choice = \"chain:1025\"}"),
         "my.toml:3: choice: \":k\" must be from 1 to 1024, and is 1025"},
        {rules("{operation = \"broadcast\", choice = \"multicast:2\"}"),
         "my.toml:3: choice: multicast has no \":k\""},
        {rules("{operation = \"broadcast\", choice = \"multicast@8\"}"),
         "my.toml:3: choice: \"@octets\" must be from 64 to 1073741824, and is 8"},
        {rules("{operation = \"barrier\", ranks_to = 4, choice = \"chain\"},\n{operation = "
               "\"barrier\", ranks_from = 4, choice = \"chain\"}"),
         "my.toml:4: rule: overlaps the rule of line 3; no call may match two"},
        {"version = 1\ncell = [{operation = \"scan\"}]", "my.toml:2: us: is missing in this cell"},
        {"version = 1\ncell = [{ranks = 0}]", "my.toml:2: ranks: must be from 1 to 65534"},
        {"version = 1\ncell = [{us = {chain = fast}}]", "my.toml:2: chain: must be a number"},
    };
    for (const auto& one : all)
        EXPECT_EQ(mistake_of(one.text), one.mistake) << one.text;
}

TEST(coll_table, a_text_that_is_cut_anywhere_is_refused_or_read_but_never_overrun) {
    const std::string text =
        rules("{operation = \"scan\", medium = \"hub\", choice = \"chain:1@64\"},") +
        "cell = [{operation = \"scan\", us = {chain = 1.5}}]";
    for (std::size_t octets = 0; octets < text.size(); ++octets) {
        TableText table;
        std::string mistake;
        // A copy of that length, so that a sanitizer sees a step too far.
        const std::vector<char> cut(text.begin(),
                                    text.begin() + static_cast<std::ptrdiff_t>(octets));
        if (parse_table("f", {cut.data(), cut.size()}, table, mistake) != Err::kOk) {
            EXPECT_EQ(mistake.find("f:"), 0U) << octets;
        }
    }
}

TEST(coll_table, rules_of_a_file_stand_before_those_that_ship) {
    const char* path = "coll_table_test.toml";
    std::ofstream(path) << rules(
        "{operation = \"barrier\", ranks_to = 8, choice = \"chain:7\"},\n{operation = \"barrier\", "
        "medium = \"node\", choice = \"chain:3\"}");
    Selection selection;
    ASSERT_EQ(selection.read(path), Err::kOk) << selection.mistake();
    const auto chosen = [&](Situation at) {
        const Rule* rule = nullptr;
        static_cast<void>(selection.find(at, &rule));
        return rule->choice;
    };
    EXPECT_EQ(chosen({.op = Op::kBarrier, .ranks = 8}), "chain:7");
    EXPECT_NE(chosen({.op = Op::kBarrier, .ranks = 9}), "chain:7");
    EXPECT_NE(chosen({.op = Op::kBarrier, .medium = Medium::kHub, .ranks = 8}), "chain:7");
    EXPECT_EQ(chosen({.op = Op::kBarrier, .per_node = 8, .ranks = 8}), "chain:3");
    std::remove(path);
    EXPECT_EQ(selection.read(path), Err::kInvalid);
    EXPECT_NE(selection.mistake().find("cannot be read"), std::string::npos);
}

// ------------------------------------------------------------------------------ what ships

TEST(coll_table, every_call_has_a_choice) {
    const Selection selection;
    for (std::uint8_t op = 0; op < kOps; ++op)
        for (std::uint8_t medium = 0; medium < kMedia; ++medium)
            for (const std::uint16_t ranks : {1, 2, 3, 5, 16, 1000, 65534})
                for (const std::uint16_t per_node : {1, 2, 5, 1000})
                    for (const std::uint64_t octets : {0UL, 1UL, 5000UL, UINT64_MAX})
                        static_cast<void>(selection.find(  // or ULC_CHECK ends the test
                            {static_cast<Op>(op), static_cast<Medium>(medium), per_node, ranks,
                             octets}));
}

/// The rules of a file by a TOML library, as text.
std::vector<std::string> rules_by_library(const std::string& path) {
    std::vector<std::string> all;
    const toml::table file = toml::parse_file(path);
    for (const auto& node : *file["rule"].as_array()) {
        const toml::table& rule = *node.as_table();
        std::ostringstream text;
        text << rule["operation"].value_or("") << ' ' << rule["medium"].value_or("switch");
        for (const char* of : {"per_node", "ranks", "octets"})
            text << ' ' << rule[std::string(of) + "_from"].value_or(std::int64_t{0}) << '-'
                 << rule[std::string(of) + "_to"].value_or(std::int64_t{-1});
        text << ' ' << rule["choice"].value_or("");
        all.push_back(text.str());
    }
    return all;
}

template <typename AnyRule>
std::string text_of(const AnyRule& rule) {
    std::ostringstream text;
    text << name_of(rule.op) << ' ' << name_of(rule.medium);
    for (const Span& span : {rule.per_node, rule.ranks, rule.octets})
        text << ' ' << span.from << '-' << static_cast<std::int64_t>(span.to);
    text << ' ' << rule.choice;
    return text.str();
}

TEST(coll_table, the_library_selects_by_the_files_that_ship) {
    std::vector<std::string> in_files;
    std::vector<std::string> by_reader;
    std::vector<Rule> all;
    for (const char* name :
         {"switch.toml", "shallow.toml", "hub.toml", "crowded.toml", "machine.toml", "node.toml"}) {
        const std::string path = std::string(ULC_TABLES) + "/" + name;
        for (const std::string& rule : rules_by_library(path))
            in_files.push_back(rule);
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        TableText table;
        std::string mistake;
        ASSERT_EQ(parse_table(path, text.str(), table, mistake), Err::kOk) << mistake;
        EXPECT_FALSE(table.source.empty()) << path;
        for (const Rule& rule : table.rules) {
            by_reader.push_back(text_of(rule));
            for (const Rule& other : all)
                EXPECT_FALSE(rule.meets(other)) << text_of(rule) << " and " << text_of(other);
            all.push_back(rule);
        }
    }
    std::vector<std::string> built_in;
    for (const ShippedRule& rule : shipped_rules())
        built_in.push_back(text_of(rule));
    EXPECT_EQ(in_files, by_reader);
    EXPECT_EQ(in_files, built_in);
    EXPECT_GT(built_in.size(), 14U);
}

}  // namespace
}  // namespace ulc::coll
