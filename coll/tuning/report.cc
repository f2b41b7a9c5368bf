// SPDX-License-Identifier: BSD-3-Clause
#include "coll/tuning/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "coll/tuning/candidates.h"
#include "coll/tuning/decide.h"

namespace ulc::coll {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kOthersShown = 4;

template <typename... Values>
[[nodiscard]] std::string format(const char* how, Values... values) {
    std::string text(static_cast<std::size_t>(std::snprintf(nullptr, 0, how, values...)), '\0');
    std::snprintf(text.data(), text.size() + 1, how, values...);
    return text;
}

[[nodiscard]] std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

[[nodiscard]] std::string head_of(Op op, Medium medium) {
    return "  {operation = " + in_quotes(name_of(op)) + ", medium = " + in_quotes(name_of(medium));
}

void put_span(std::string& out, const char* name, const Span& span) {
    if (span.from > 0) out += std::string(", ") + name + "_from = " + std::to_string(span.from);
    if (span.to < kMax) out += std::string(", ") + name + "_to = " + std::to_string(span.to);
}

[[nodiscard]] std::string octets_text(std::uint64_t octets) {
    if (octets > 0 && octets % 1024 == 0) return std::to_string(octets / 1024) + " KiB";
    return std::to_string(octets) + " B";
}

/// "9 to 32", "33 on", "any".
template <typename Text>
[[nodiscard]] std::string range_text(const Span& span, Text text) {
    if (span.from == 0 && span.to == kMax) return "any";
    if (span.to == kMax) return text(span.from) + " on";
    if (span.from == span.to) return text(span.to);
    return span.from == 0 ? "to " + text(span.to) : text(span.from) + " to " + text(span.to);
}

/// The operation that was measured for this one.
[[nodiscard]] Op measured_for(Op op) {
    for (const Follower& one : followers())
        if (one.op == op) return one.measured;
    return op;
}

[[nodiscard]] bool speaks_for(const Rule& rule, const Cell& cell) {
    const bool node = rule.medium == Medium::kNode || rule.per_node.has(cell.at.per_node);
    return cell.at.op == measured_for(rule.op) && cell.at.medium == rule.medium && node &&
           rule.ranks.has(cell.at.ranks) && rule.octets.has(cell.at.octets) &&
           time_of(cell, rule.choice) > 0;
}

/// A scatterv has not all that was measured of a scatter.
[[nodiscard]] bool takes(Op op, std::string_view choice) {
    Choice parsed;
    return parse_choice(op, choice, parsed) == Err::kOk;
}

/// The fastest time of the others over that of the choice; 0: there are no others.
[[nodiscard]] double gain_of(const Cell& cell, Op op, std::string_view choice) {
    double others = 0;
    for (const auto& [name, us] : cell.us)
        if (name != choice && takes(op, name) && (others == 0 || us < others)) others = us;
    return others / time_of(cell, choice);
}

/// Returns the fastest `shown` of the others, each with its additional time.
[[nodiscard]] std::string others_text(const Cell& cell, Op op, std::string_view choice,
                                      std::size_t shown) {
    auto others = cell.us;
    std::erase_if(others,
                  [&](const auto& one) { return one.first == choice || !takes(op, one.first); });
    std::ranges::stable_sort(others, {}, [](const auto& one) { return one.second; });
    std::string text;
    for (std::size_t i = 0; i < std::min(others.size(), shown); ++i) {
        const double more = 100 * (others[i].second / time_of(cell, choice) - 1);
        text += (text.empty() ? "" : ", ") + others[i].first + format(" %+.0f %%", more);
    }
    return text;
}

[[nodiscard]] std::string place_text(const Cell& cell, Medium medium) {
    std::string text = std::to_string(cell.at.ranks) + " ranks";
    if (cell.at.per_node > 1 && medium != Medium::kNode)
        text += ", " + std::to_string(cell.at.per_node) + " a node";
    if (cell.at.op != Op::kBarrier) text += ", " + octets_text(cell.at.octets);
    return text;
}

[[nodiscard]] std::string line_of(const Rule& rule, const std::vector<const Cell*>& cells) {
    const auto number = [](std::uint64_t value) { return std::to_string(value); };
    std::string line = "| " + std::string(name_of(rule.op)) + " | " +
                       range_text(rule.ranks, number) + " | " + range_text(rule.per_node, number) +
                       " | " + range_text(rule.octets, octets_text) + " | **" + rule.choice +
                       "** | ";
    if (cells.empty()) return line + "not measured | | | |\n";
    const auto gain = [&](const Cell* one) { return gain_of(*one, rule.op, rule.choice); };
    const Cell* least = nullptr;
    const Cell* most = nullptr;
    for (const Cell* one : cells) {
        if (gain(one) == 0) continue;  // nothing else came so far
        if (least == nullptr || gain(one) < gain(least)) least = one;
        if (most == nullptr || gain(one) > gain(most)) most = one;
    }
    const Cell& cell = least == nullptr ? *cells.front() : *least;
    line += place_text(cell, rule.medium);
    if (cells.size() > 1) line += " (of " + std::to_string(cells.size()) + ")";
    line += " | " + format("%.1f", time_of(cell, rule.choice)) + " | ";
    if (cell.noise >= 0.005) line += format("noise %.0f %%; ", 100 * cell.noise);
    line += others_text(cell, rule.op, rule.choice, kOthersShown) + " |";
    if (most != least)
        line += " " + place_text(*most, rule.medium) + ": " +
                others_text(*most, rule.op, rule.choice, 1);
    return line + " |\n";
}

}  // namespace

void round_as_written(std::vector<Cell>& cells) {
    for (Cell& cell : cells) {
        cell.noise = std::round(cell.noise * 1000) / 1000;
        for (auto& [choice, us] : cell.us)
            us = std::round(us * 10) / 10;
    }
}

std::string write_table(const TableText& table, std::string_view comment) {
    std::string out;
    for (std::size_t at = 0; at < comment.size();) {
        const std::size_t end = std::min(comment.find('\n', at), comment.size());
        out += "# " + std::string(comment.substr(at, end - at)) + "\n";
        at = end + 1;
    }
    out += "version = " + std::to_string(kTableVersion) + "\nsource = " + in_quotes(table.source) +
           "\n\nrule = [\n";
    for (const Rule& rule : table.rules) {
        out += head_of(rule.op, rule.medium);
        put_span(out, "per_node", rule.per_node);
        put_span(out, "ranks", rule.ranks);
        put_span(out, "octets", rule.octets);
        out += ", choice = " + in_quotes(rule.choice) + "},\n";
    }
    out += "]\n\ncell = [\n";
    for (const Cell& cell : table.cells) {
        out += head_of(cell.at.op, cell.at.medium);
        out += ", per_node = " + std::to_string(cell.at.per_node) +
               ", ranks = " + std::to_string(cell.at.ranks) +
               ", octets = " + std::to_string(cell.at.octets);
        if (cell.noise > 0) out += format(", noise = %.3f", cell.noise);
        out += ", us = {";
        for (std::size_t i = 0; i < cell.us.size(); ++i)
            out += (i > 0 ? ", " : "") + in_quotes(cell.us[i].first) +
                   format(" = %.1f", cell.us[i].second);
        out += "}},\n";
    }
    return out + "]\n";
}

std::string explain(const TableText& table) {
    std::string out;
    for (std::uint8_t m = 0; m < kMedia; ++m) {
        const auto medium = static_cast<Medium>(m);
        bool begun = false;
        for (const Rule& rule : table.rules) {
            if (rule.medium != medium) continue;
            if (!begun) {
                out += (out.empty() ? "**" : "\n**") + std::string(name_of(medium)) +
                       "**\n\n| operation | ranks | a node | size | choice | gains least at | µs | "
                       "the "
                       "others | gains most at |\n| --- | --- | --- | --- | --- | --- | --- | --- "
                       "| --- |\n";
                begun = true;
            }
            std::vector<const Cell*> cells;
            for (const Cell& cell : table.cells)
                if (speaks_for(rule, cell)) cells.push_back(&cell);
            out += line_of(rule, cells);
        }
    }
    return out;
}

}  // namespace ulc::coll
