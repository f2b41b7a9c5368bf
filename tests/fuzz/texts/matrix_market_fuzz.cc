// SPDX-License-Identifier: BSD-3-Clause
// Any text as a Matrix Market file, read as a dense and as a sparse matrix. Both are refused, or
// one for its size, or both hold the same elements, which survive being written and read again.
#include <cmath>
#include <sstream>
#include <string>

#include "../input.h"
#include "base/check.h"
#include "bench/apps/matrix_market.h"

namespace {

using namespace ulc::bench;

constexpr std::uint64_t kOctetsMax = 1 << 16;

void check_sparse(const SparseMatrix& sparse) {
    ULC_CHECK(sparse.first.size() == sparse.rows + 1 && sparse.first.front() == 0);
    ULC_CHECK(sparse.first.back() == sparse.column.size());
    ULC_CHECK(sparse.column.size() == sparse.value.size());
    for (std::size_t i = 0; i < sparse.rows; ++i) {
        ULC_CHECK(sparse.first[i] <= sparse.first[i + 1]);
        for (std::size_t k = sparse.first[i]; k < sparse.first[i + 1]; ++k) {
            ULC_CHECK(sparse.column[k] < sparse.columns);
            ULC_CHECK(k == sparse.first[i] || sparse.column[k - 1] < sparse.column[k]);
        }
    }
}

/// Sums of many entries may overflow to infinities, and then to no number.
bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void check_equal(const Matrix& dense, const SparseMatrix& sparse) {
    ULC_CHECK(dense.rows == sparse.rows && dense.columns == sparse.columns);
    for (std::size_t i = 0; i < sparse.rows; ++i) {
        std::size_t k = sparse.first[i];
        for (std::size_t j = 0; j < sparse.columns; ++j) {
            const bool there = k < sparse.first[i + 1] && sparse.column[k] == j;
            ULC_CHECK(same(dense.at(i, j), there ? sparse.value[k] : 0.0));
            k += there ? 1 : 0;
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ulc::fuzz::Input in(data, size);
    const std::string text(in.text());
    std::istringstream first(text);
    std::istringstream second(text);
    Matrix dense;
    SparseMatrix sparse;
    const MatrixError refused = read_matrix_market(first, dense, kOctetsMax);
    const MatrixError refused_sparse = read_matrix_market(second, sparse, kOctetsMax);
    const bool good = refused.what.empty();
    if (refused_sparse.what.empty()) check_sparse(sparse);
    if (!good) {
        ULC_CHECK(refused.line <= size + 1);
        return 0;
    }
    ULC_CHECK(dense.values.size() == dense.rows * dense.columns);
    if (refused_sparse.what.empty()) check_equal(dense, sparse);
    for (const double value : dense.values)
        if (!std::isfinite(value)) return 0;
    std::stringstream written;
    write_matrix_market(written, dense);
    Matrix again;
    ULC_CHECK(read_matrix_market(written, again, kOctetsMax).what.empty());
    ULC_CHECK(again.rows == dense.rows && again.values == dense.values);
    return 0;
}
