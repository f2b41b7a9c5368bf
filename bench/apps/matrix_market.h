// SPDX-License-Identifier: BSD-3-Clause
// Reader and writer of Matrix Market files (NIST exchange format,
// math.nist.gov/MatrixMarket/formats.html), into dense matrices and into sparse ones.
//
//   %%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric
//   % comments
//   rows columns [entries]
//   …one entry a line: "row column [value]" or, for array, the value alone, column by column
//
// Words of the header are read in any case; blank lines and comment lines may stand anywhere after
// it. Entries of a coordinate file that name the same place add up. Symmetric files hold the lower
// triangle only, skew-symmetric ones the strictly lower one. Complex and hermitian files are
// refused. Every error names its line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iosfwd>
#include <string>
#include <vector>

namespace ulc::bench {

/// Column-major: element (i, j) is values[j * rows + i].
struct Matrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<double> values;

    [[nodiscard]] double at(std::size_t i, std::size_t j) const { return values[j * rows + i]; }
};

/// Compressed rows: of row i, entries first[i] to first[i + 1], columns ascending, each place at
/// most once.
struct SparseMatrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<std::size_t> first;  ///< rows + 1 of them
    std::vector<std::uint32_t> column;
    std::vector<double> value;
};

struct MatrixError {
    std::size_t line = 0;  ///< from 1; 0: none, or not about a line
    std::string what;      ///< empty: none
};

inline constexpr std::uint64_t kMatrixOctetsMax = std::uint64_t{4} << 30;

/// Reads a whole file. octets_max: refuses what would be larger in memory, before taking it.
[[nodiscard]] MatrixError read_matrix_market(std::istream& in, Matrix& out,
                                             std::uint64_t octets_max = kMatrixOctetsMax);
[[nodiscard]] MatrixError read_matrix_market(std::istream& in, SparseMatrix& out,
                                             std::uint64_t octets_max = kMatrixOctetsMax);
/// The same from a path into either; `what` names it.
template <typename AnyMatrix>
[[nodiscard]] MatrixError read_matrix_market_file(const std::string& path, AnyMatrix& out) {
    std::ifstream in(path);
    if (!in) return {0, path + ": cannot be opened"};
    MatrixError error = read_matrix_market(in, out);
    if (!error.what.empty())
        error.what = path + ":" + std::to_string(error.line) + ": " + error.what;
    return error;
}

/// Writes it as "array real general", with digits enough to read the same numbers back.
void write_matrix_market(std::ostream& out, const Matrix& matrix);

}  // namespace ulc::bench
