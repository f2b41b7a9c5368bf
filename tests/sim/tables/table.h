// SPDX-License-Identifier: BSD-3-Clause
// A paper's table with ours next to it: figures with the deviation, shapes that hold or do not,
// curves to plot. Data only: judge.h makes claims about figures, table_output.h prints a table,
// writes it as JSON and draws it, and each table is made in a separate file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ulc::sim {

/// Role of a paper's figure in a table.
enum class FigureKind : std::uint8_t {
    kPrediction,  ///< nothing of ours was set from it
    kInput,       ///< a cost or a charge was set from it: it has no deviation and takes no claim
    kAtMost,      ///< the paper gives an upper bound
    kAtLeast,     ///< the paper gives a lower bound
};

/// One figure of a paper and the simulator's figure for it.
struct Figure {
    std::string what;
    std::string unit;
    std::optional<double> paper;  ///< nothing: the paper does not say
    std::optional<double> ours;   ///< nothing: ours has no counterpart
    std::string note;             ///< why they differ, or where the paper states it
    FigureKind kind = FigureKind::kPrediction;

    /// Returns (ours − paper) / paper of a prediction, if both exist.
    [[nodiscard]] std::optional<double> deviation() const;
    /// Returns true if ours is within the paper's bound; nothing if there is no bound, or no figure
    /// of ours.
    [[nodiscard]] std::optional<bool> keeps_bound() const;
};

/// The paper's claim about a curve (order, slope, crossing), and the behaviour of ours.
struct Shape {
    std::string claim;
    std::string ours;
    bool holds = false;
    /// Factor by which ours is beyond what the claim allows; 1 if it holds; nothing: not measured.
    std::optional<double> beyond = {};
    std::string figure = {};  ///< Figure::what, if the claim is about one figure
};

struct Curve {
    std::string name;
    std::vector<std::pair<double, double>> points;
    bool is_papers = false;  ///< drawn as a line without points
};

struct Picture {
    std::string name;  ///< name of its files
    std::string title;
    std::string x;
    std::string y;
    bool log_x = false;
    bool log_y = false;
    std::vector<Curve> curves;
};

/// Figures without counterpart in a paper: rows of one unit under named columns.
struct Grid {
    struct Row {
        std::string name;
        std::vector<double> values;  ///< one for each column; not a number: there is none
    };
    std::string title;
    std::string unit;
    std::vector<std::string> columns;
    std::vector<Row> rows;
    int digits = 1;  ///< digits behind the point
};

struct Table {
    std::string name;
    std::string title;
    std::string method;  ///< host, medium, loop: the conditions of the figures
    std::vector<Figure> figures;
    std::vector<Shape> shapes;
    std::vector<Picture> pictures;
    std::vector<Grid> grids;
};

struct TableOptions {
    std::uint64_t seed = 1;
    bool quick = false;  ///< fewer trials and points, for tests
};

struct TableEntry {
    std::string_view name;
    std::string_view source;  ///< paper and section
    Table (*make)(const TableOptions& options);
};

/// Returns every table, in the order in which they are printed.
[[nodiscard]] std::span<const TableEntry> tables() noexcept;

}  // namespace ulc::sim
