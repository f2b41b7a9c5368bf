// SPDX-License-Identifier: BSD-3-Clause
#include "bench/apps/dgemm.h"

#include <algorithm>

#ifdef ULC_HAVE_OPENBLAS
#include <cblas.h>
#endif

namespace ulc::bench {

#ifdef ULC_HAVE_OPENBLAS

void dgemm(std::size_t m, std::size_t n, std::size_t k, const double* a, const double* b,
           double* c) {
    if (m == 0 || n == 0) return;
    if (k == 0) {
        std::fill_n(c, m * n, 0.0);
        return;
    }
    openblas_set_num_threads(1);  // the ranks are the parallelism that is measured
    const auto rows = static_cast<blasint>(m);
    const auto columns = static_cast<blasint>(n);
    const auto inner = static_cast<blasint>(k);
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, rows, columns, inner, 1.0, a, rows, b,
                inner, 0.0, c, rows);
}

const char* dgemm_kernel() { return "OpenBLAS, one thread"; }

#else

void dgemm(std::size_t m, std::size_t n, std::size_t k, const double* a, const double* b,
           double* c) {
    // A panel of A stays in the second-level cache while all columns of B pass it.
    constexpr std::size_t kRows = 256;
    constexpr std::size_t kInner = 64;
    std::fill_n(c, m * n, 0.0);
    for (std::size_t i0 = 0; i0 < m; i0 += kRows) {
        const std::size_t i1 = std::min(i0 + kRows, m);
        for (std::size_t l0 = 0; l0 < k; l0 += kInner) {
            const std::size_t l1 = std::min(l0 + kInner, k);
            for (std::size_t j = 0; j < n; ++j) {
                for (std::size_t l = l0; l < l1; ++l) {
                    const double factor = b[j * k + l];
                    for (std::size_t i = i0; i < i1; ++i)
                        c[j * m + i] += a[l * m + i] * factor;
                }
            }
        }
    }
}

const char* dgemm_kernel() { return "built-in loops (OpenBLAS was not there at build time)"; }

#endif

}  // namespace ulc::bench
