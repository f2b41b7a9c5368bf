// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tables/table_output.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace ulc::sim {
namespace {

/// Counts characters, not bytes: the columns hold µ and ·.
std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
    }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
    const std::string blank(width - std::min(width, width_of(text)), ' ');
    return right ? blank + text : text + blank;
}

/// Prints three significant digits, and no more than two behind the point.
std::string number_of(std::optional<double> value) {
    if (!value) return "–";
    const double size = std::abs(*value);
    return fmt::format("{:.{}f}", *value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

std::string paper_of(const Figure& figure) {
    const bool is_bound = figure.kind == FigureKind::kAtMost || figure.kind == FigureKind::kAtLeast;
    const char* const sign = figure.kind == FigureKind::kAtMost ? "≤ " : "≥ ";
    return (figure.paper && is_bound ? sign : "") + number_of(figure.paper);
}

std::string deviation_of(const Figure& figure) {
    if (figure.kind == FigureKind::kInput) return "input";
    if (const auto keeps = figure.keeps_bound()) return *keeps ? "kept" : "BROKEN";
    const auto deviation = figure.deviation();
    return deviation ? fmt::format("{:+.0f} %", *deviation * 100) : "";
}

const char* name_of(FigureKind kind) {
    switch (kind) {
        case FigureKind::kPrediction:
            return "prediction";
        case FigureKind::kInput:
            return "input";
        case FigureKind::kAtMost:
            return "at most";
        case FigureKind::kAtLeast:
            return "at least";
    }
    return "";
}

nlohmann::json json_number(std::optional<double> value) {
    return value && std::isfinite(*value) ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json json_of(const Table& table) {
    nlohmann::json out{{"name", table.name}, {"title", table.title}, {"method", table.method}};
    for (const Figure& figure : table.figures)
        out["figures"].push_back({{"what", figure.what},
                                  {"unit", figure.unit},
                                  {"paper", json_number(figure.paper)},
                                  {"ours", json_number(figure.ours)},
                                  {"kind", name_of(figure.kind)},
                                  {"deviation", json_number(figure.deviation())},
                                  {"note", figure.note}});
    for (const Shape& shape : table.shapes)
        out["shapes"].push_back({{"claim", shape.claim},
                                 {"ours", shape.ours},
                                 {"holds", shape.holds},
                                 {"beyond", json_number(shape.beyond)}});
    for (const Grid& grid : table.grids) {
        nlohmann::json rows = nlohmann::json::object();
        for (const Grid::Row& row : grid.rows)
            for (const double value : row.values)
                rows[row.name].push_back(json_number(value));
        out["grids"].push_back({{"title", grid.title},
                                {"unit", grid.unit},
                                {"columns", grid.columns},
                                {"rows", rows}});
    }
    for (const Picture& picture : table.pictures)
        for (const Curve& curve : picture.curves)
            out["curves"].push_back({{"picture", picture.name},
                                     {"curve", curve.name},
                                     {"paper", curve.is_papers},
                                     {"points", curve.points}});
    return out;
}

using Cells = std::vector<std::string>;

/// Returns lines of columns as wide as their longest cell; those from `right` on, before `end`, are
/// numbers.
std::string aligned(const std::vector<Cells>& rows, std::size_t right, std::size_t end) {
    std::vector<std::size_t> widths(rows.front().size());
    for (const Cells& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], width_of(row[i]));
    std::string out;
    for (const Cells& row : rows) {
        std::string line = " ";
        for (std::size_t i = 0; i < row.size(); ++i)
            line += " " + padded(row[i], widths[i], i >= right && i < end) + " ";
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

std::string text_of(const Grid& grid) {
    std::vector<Cells> rows{{fmt::format("{}", grid.unit)}};
    rows.front().insert(rows.front().end(), grid.columns.begin(), grid.columns.end());
    for (const Grid::Row& row : grid.rows) {
        Cells cells{row.name};
        for (const double value : row.values)
            cells.push_back(std::isnan(value) ? "–" : fmt::format("{:.{}f}", value, grid.digits));
        rows.push_back(std::move(cells));
    }
    return fmt::format("  {}\n", grid.title) + aligned(rows, 1, rows.front().size());
}

/// Returns false if gnuplot is missing or failed.
bool draw(const std::filesystem::path& folder, const std::string& script) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    std::string program = "gnuplot";
    std::string file = script;
    char* const arguments[] = {program.data(), file.data(), nullptr};
    pid_t child = 0;
    const int error = posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    return error == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

bool write_file(const std::filesystem::path& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.close();
    return file.good();
}

}  // namespace

std::optional<double> Figure::deviation() const {
    if (kind != FigureKind::kPrediction) return std::nullopt;
    if (!paper || !ours || *paper == 0) return std::nullopt;
    return (*ours - *paper) / *paper;
}

std::optional<bool> Figure::keeps_bound() const {
    if (!paper || !ours) return std::nullopt;
    if (kind == FigureKind::kAtMost) return *ours <= *paper;
    if (kind == FigureKind::kAtLeast) return *ours >= *paper;
    return std::nullopt;
}

std::string text_of(const Table& table) {
    std::string out = fmt::format("{}: {}\n  {}\n\n", table.name, table.title, table.method);
    if (!table.figures.empty()) {
        std::vector<Cells> rows{{"", "unit", "paper", "ours", "deviation", "note"}};
        for (const Figure& figure : table.figures)
            rows.push_back({figure.what, figure.unit, paper_of(figure), number_of(figure.ours),
                            deviation_of(figure), figure.note});
        out += aligned(rows, 2, 5) + (table.grids.empty() ? "" : "\n");
    }
    for (const Grid& grid : table.grids)
        out += text_of(grid) + "\n";
    for (const Shape& shape : table.shapes) {
        const bool is_beyond = !shape.holds && shape.beyond.has_value();
        out += fmt::format("  {} {}: {}{}\n", shape.holds ? "holds   " : "DIFFERS ", shape.claim,
                           shape.ours,
                           is_beyond ? fmt::format(" (beyond by {:.2f} ×)", *shape.beyond) : "");
    }
    return out;
}

std::string json_of(const std::vector<Table>& tables, const TableOptions& options) {
    nlohmann::json out{{"seed", options.seed}, {"quick", options.quick}};
    out["tables"] = nlohmann::json::array();
    for (const Table& table : tables)
        out["tables"].push_back(json_of(table));
    return out.dump(1) + "\n";
}

std::string gnuplot_of(const Picture& picture) {
    std::string out = fmt::format(
        "set terminal svg size 800,520 dynamic\nset output '{}.svg'\nset title \"{}\"\n"
        "set xlabel \"{}\"\nset ylabel \"{}\"\nset key left top\nset grid\n{}{}",
        picture.name, picture.title, picture.x, picture.y,
        picture.log_x ? "set logscale x 2\n" : "", picture.log_y ? "set logscale y 10\n" : "");
    std::string plots;
    for (std::size_t i = 0; i < picture.curves.size(); ++i) {
        const Curve& curve = picture.curves[i];
        out += fmt::format("$curve{} << EOD\n", i);
        for (const auto& [x, y] : curve.points)
            out += fmt::format("{} {}\n", x, y);
        out += "EOD\n";
        plots += fmt::format("{}$curve{} with {} title \"{}\"", i == 0 ? "" : ", ", i,
                             curve.is_papers ? "lines dashtype 2" : "linespoints", curve.name);
    }
    return out + "plot " + plots + "\n";
}

std::string write_tables(const std::vector<Table>& tables, const TableOptions& options,
                         const std::filesystem::path& folder, int* drawn) {
    *drawn = 0;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fmt::format("cannot make {}: {}", folder.string(), error.message());
    std::string text;
    for (const Table& table : tables)
        text += text_of(table) + "\n";
    if (!write_file(folder / "tables.txt", text) ||
        !write_file(folder / "tables.json", json_of(tables, options)))
        return fmt::format("cannot write to {}", folder.string());
    for (const Table& table : tables) {
        for (const Picture& picture : table.pictures) {
            const std::string script = picture.name + ".gnuplot";
            if (!write_file(folder / script, gnuplot_of(picture)))
                return fmt::format("cannot write {}", (folder / script).string());
            *drawn += draw(folder, script) ? 1 : 0;
        }
    }
    return {};
}

}  // namespace ulc::sim
