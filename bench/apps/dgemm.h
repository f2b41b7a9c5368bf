// SPDX-License-Identifier: BSD-3-Clause
// The local kernel: C = A · B in double precision, column-major, one thread.
#pragma once

#include <cstddef>

namespace ulc::bench {

/// a: m × k, b: k × n, c: m × n, each without gaps between columns. c is overwritten.
void dgemm(std::size_t m, std::size_t n, std::size_t k, const double* a, const double* b,
           double* c);

/// Returns the name of the library that dgemm() uses, for the report.
[[nodiscard]] const char* dgemm_kernel();

}  // namespace ulc::bench
