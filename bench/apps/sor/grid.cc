// SPDX-License-Identifier: BSD-3-Clause
#include "bench/apps/sor/grid.h"

namespace ulc::sor {

Block block_of(const Size& size, unsigned process, unsigned processes) {
    const std::size_t unit = std::max<std::size_t>(1, kPage / (size.half() * sizeof(double)));
    const std::size_t units = (size.rows + unit - 1) / unit;
    const auto edge = [&](unsigned n) { return std::min(size.rows, units * n / processes * unit); };
    return {edge(process), edge(process + 1)};
}

void fill(const Grid& grid, const Block& block) {
    for (std::size_t row = block.first; row < block.end; ++row)
        for (std::size_t column = 0; column < grid.size.columns; ++column)
            grid.at(row, column) = initial(row, column);
}

void relax_row(const Grid& grid, std::size_t row, unsigned colour) {
    const std::size_t offset = (row + colour) % 2;
    double* const own = grid.line(colour, row);
    const double* const beside = grid.line(1 - colour, row);
    const double* const above = grid.line(1 - colour, row - 1);
    const double* const below = grid.line(1 - colour, row + 1);
    for (std::size_t k = 1 - offset; 2 * k + offset + 1 < grid.size.columns; ++k) {
        const double around = above[k] + below[k] + beside[k + offset - 1] + beside[k + offset];
        own[k] += kOmega * (around / 4 - own[k]);
    }
}

void relax(const Grid& grid, const Block& block, unsigned colour) {
    const std::size_t end = std::min(block.end, grid.size.rows - 1);
    for (std::size_t row = std::max<std::size_t>(block.first, 1); row < end; ++row)
        relax_row(grid, row, colour);
}

std::vector<double> plain_result(const Size& size, unsigned iterations) {
    const std::size_t width = size.columns;
    std::vector<double> u(size.rows * width);
    for (std::size_t row = 0; row < size.rows; ++row)
        for (std::size_t column = 0; column < width; ++column)
            u[row * width + column] = initial(row, column);
    for (unsigned half = 0; half < 2 * iterations; ++half) {
        for (std::size_t row = 1; row + 1 < size.rows; ++row) {
            for (std::size_t column = 1; column + 1 < width; ++column) {
                if ((row + column) % 2 != half % 2) continue;
                double* const at = &u[row * width + column];
                const double around =
                    at[-static_cast<std::ptrdiff_t>(width)] + at[width] + at[-1] + at[1];
                *at += kOmega * (around / 4 - *at);
            }
        }
    }
    return u;
}

}  // namespace ulc::sor
