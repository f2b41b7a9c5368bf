// SPDX-License-Identifier: BSD-3-Clause
#include "bench/apps/lu.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ulc::bench {
namespace {

blasint blas(std::size_t n) { return static_cast<blasint>(n); }

}  // namespace

void Panel::resize(std::size_t first_column, std::size_t order) {
    first = first_column;
    rows = order - first;
    columns = std::min(kPanelColumns, rows);
    data.resize(columns + rows * columns);
}

void factor(Panel& panel) {
    const std::size_t rows = panel.rows;
    double* const a = panel.values();
    for (std::size_t j = 0; j < panel.columns; ++j) {
        double* const column = a + j * rows;
        const std::size_t pivot = j + cblas_idamax(blas(rows - j), column + j, 1);
        if (column[pivot] == 0 || !std::isfinite(column[pivot])) {
            panel.pivots()[j] = -1;
            continue;
        }
        panel.pivots()[j] = static_cast<double>(panel.first + pivot);
        if (pivot != j) cblas_dswap(blas(panel.columns), a + j, blas(rows), a + pivot, blas(rows));
        cblas_dscal(blas(rows - j - 1), 1 / column[j], column + j + 1, 1);
        cblas_dger(CblasColMajor, blas(rows - j - 1), blas(panel.columns - j - 1), -1.0,
                   column + j + 1, 1, column + rows + j, blas(rows), column + rows + j + 1,
                   blas(rows));
    }
}

bool singular(const Panel& panel) {
    return std::any_of(panel.pivots(), panel.pivots() + panel.columns,
                       [](double pivot) { return pivot < 0; });
}

void apply(const Panel& panel, std::size_t order, std::size_t count, double* columns) {
    if (count == 0) return;
    double* const top = columns + panel.first;
    for (std::size_t j = 0; j < panel.columns; ++j) {
        const auto pivot = static_cast<std::size_t>(panel.pivots()[j]);
        if (pivot != panel.first + j)
            cblas_dswap(blas(count), top + j, blas(order), columns + pivot, blas(order));
    }
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, blas(panel.columns),
                blas(count), 1.0, panel.values(), blas(panel.rows), top, blas(order));
    const std::size_t below = panel.rows - panel.columns;
    if (below == 0) return;
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, blas(below), blas(count),
                blas(panel.columns), -1.0, panel.values() + panel.columns, blas(panel.rows), top,
                blas(order), 1.0, top + panel.columns, blas(order));
}

void back_substitute(std::size_t first, std::size_t columns, std::size_t order, const double* block,
                     double* v) {
    cblas_dtrsv(CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, blas(columns), block + first,
                blas(order), v + first, 1);
    if (first == 0) return;
    cblas_dgemv(CblasColMajor, CblasNoTrans, blas(first), blas(columns), -1.0, block, blas(order),
                v + first, 1, 1.0, v, 1);
}

}  // namespace ulc::bench
