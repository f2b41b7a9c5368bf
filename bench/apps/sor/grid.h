// SPDX-License-Identifier: BSD-3-Clause
// Red/black successive over-relaxation of the Laplace equation (Express §5.2): the grid, its rows
// by process, and a half step. A point depends on the half steps alone, so the result is the same
// bit by bit however the rows are dealt. Pure. Used by ulc-sor, and by its run in the simulator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ulc::sor {

inline constexpr double kOmega = 1.5;
inline constexpr std::size_t kPage = 4096;

struct Size {
    std::size_t rows = 512;
    std::size_t columns = 256;

    /// Points of one colour in a row.
    [[nodiscard]] std::size_t half() const { return (columns + 1) / 2; }
    [[nodiscard]] std::size_t points() const { return 2 * rows * half(); }
};

/// The values at the start: a hot top, a warm left side, and an inside that is uneven.
[[nodiscard]] inline double initial(std::size_t row, std::size_t column) {
    if (row == 0) return 100;
    if (column == 0) return static_cast<double>(row % 7);
    return static_cast<double>((row * 31 + column * 17) % 11) / 11;
}

/// A separate array for each colour, row by row. So no page is written in a half step in which
/// another process reads it.
struct Grid {
    double* points;  ///< Size::points()
    Size size;

    /// Row of the points whose row + column + colour is even: column 2k + (row + colour) % 2 at k.
    [[nodiscard]] double* line(unsigned colour, std::size_t row) const {
        return points + (colour * size.rows + row) * size.half();
    }
    [[nodiscard]] double& at(std::size_t row, std::size_t column) const {
        return line((row + column) % 2, row)[column / 2];
    }
};

/// Rows first … end − 1 of a process. They fill whole pages, if rows fit into pages.
struct Block {
    std::size_t first, end;
};
[[nodiscard]] Block block_of(const Size& size, unsigned process, unsigned processes);

void fill(const Grid& grid, const Block& block);
/// Updates the inner points of one colour in a row that has a row on each side.
void relax_row(const Grid& grid, std::size_t row, unsigned colour);
/// Updates the inner points of one colour in a block.
void relax(const Grid& grid, const Block& block, unsigned colour);

/// Calls visit(line, writes) for a line of each page that a half step of the block reads of others,
/// or writes and others may have read.
template <typename Visit>
void each_shared_line(const Grid& grid, const Block& block, unsigned colour, Visit&& visit) {
    if (block.first >= block.end) return;
    const std::size_t last = block.end - 1;
    if (block.first > 0) visit(grid.line(1 - colour, block.first - 1), false);
    if (block.end < grid.size.rows) visit(grid.line(1 - colour, block.end), false);
    visit(grid.line(colour, block.first), true);
    visit(grid.line(colour, last), true);
}

/// Returns the result by rows and columns, of loops without the colours' arrays.
[[nodiscard]] std::vector<double> plain_result(const Size& size, unsigned iterations);

}  // namespace ulc::sor
