// A paper's table, ours beside it: figures with the deviation, shapes that hold or do not, curves to plot. Data only; how a table
// is printed, written as JSON and drawn is in table_output.h, and each table is made in a file of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ulc::sim {

/// One figure of a paper and what the simulator gives for it.
struct Figure {
    std::string what;
    std::string unit;
    std::optional<double> paper;  ///< nothing: the paper does not say
    std::optional<double> ours;   ///< nothing: we have no such thing
    std::string note;             ///< why they differ, or where the paper's stands

    /// (ours − paper) / paper, where both are there.
    [[nodiscard]] std::optional<double> deviation() const;
};

/// What the paper says of a curve (order, slope, crossing), and what ours does.
struct Shape {
    std::string claim;
    std::string ours;
    bool holds = false;
};

struct Curve {
    std::string name;
    std::vector<std::pair<double, double>> points;
    bool is_papers = false;  ///< drawn as a line without points
};

struct Picture {
    std::string name;  ///< of its files
    std::string title;
    std::string x;
    std::string y;
    bool log_x = false;
    bool log_y = false;
    std::vector<Curve> curves;
};

/// Figures of ours alone, that many: rows of one unit under named columns.
struct Grid {
    struct Row {
        std::string name;
        std::vector<double> values;  ///< as many as columns; not a number: there is none
    };
    std::string title;
    std::string unit;
    std::vector<std::string> columns;
    std::vector<Row> rows;
    int digits = 1;  ///< behind the point
};

struct Table {
    std::string name;
    std::string title;
    std::string method;  ///< host, medium, loop: what the figures depend on
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

/// Every table there is, in the order in which they are printed.
[[nodiscard]] std::span<const TableEntry> tables() noexcept;

}  // namespace ulc::sim
