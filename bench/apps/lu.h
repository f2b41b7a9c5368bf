// SPDX-License-Identifier: BSD-3-Clause
// LU factorisation with partial pivoting in blocks of columns, the local part: what one rank does
// with a panel and with the columns behind it (GAMMA §6.2; the right-looking algorithm of LAPACK's
// dgetrf). On BLAS, one thread, column-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ulc::bench {

inline constexpr std::size_t kPanelColumns = 64;  ///< GAMMA §6.2

/// Columns [first, first + columns) of the matrix from row `first` on: L below the diagonal (ones
/// on it), U above.
struct Panel {
    std::size_t first = 0;
    std::size_t rows = 0;  ///< order - first
    std::size_t columns = 0;
    /// `columns` rows that were swapped with rows first, first + 1, …, as doubles (they cross the
    /// wire with the values), then rows × columns values.
    std::vector<double> data;

    void resize(std::size_t first_column, std::size_t order);
    [[nodiscard]] double* pivots() { return data.data(); }
    [[nodiscard]] const double* pivots() const { return data.data(); }
    [[nodiscard]] double* values() { return data.data() + columns; }
    [[nodiscard]] const double* values() const { return data.data() + columns; }
    [[nodiscard]] std::size_t octets() const { return data.size() * sizeof(double); }
};

/// Factors the panel in place and fills its pivots. A column without a pivot has pivot -1: the
/// matrix is singular.
void factor(Panel& panel);
[[nodiscard]] bool singular(const Panel& panel);

/// Applies a factored panel to `count` columns of `order` rows behind it (or to a right-hand side):
/// swaps their rows, solves with L, and subtracts L times that from the rows below.
void apply(const Panel& panel, std::size_t order, std::size_t count, double* columns);

/// Solves with the upper triangle of a factored block column, given as its `order` rows from row 0
/// on: x_block = U⁻¹ v of its rows, and v of the rows above it loses U times that. v: `order`
/// values.
void back_substitute(std::size_t first, std::size_t columns, std::size_t order, const double* block,
                     double* v);

}  // namespace ulc::bench
