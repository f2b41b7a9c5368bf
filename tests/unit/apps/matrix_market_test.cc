// SPDX-License-Identifier: BSD-3-Clause
// Tests of the Matrix Market reader: every kind of file that it accepts, every kind that it
// refuses, and the position of the fault that it reports.
#include "bench/apps/matrix_market.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/prng.h"

namespace ulc::bench {
namespace {

using Values = std::vector<double>;

Matrix read(const std::string& text) {
    std::istringstream in(text);
    Matrix matrix;
    const MatrixError error = read_matrix_market(in, matrix);
    EXPECT_EQ(error.what, "") << "line " << error.line;
    return matrix;
}

void expect_refused(const std::string& text, std::size_t line, const std::string& what) {
    std::istringstream in(text);
    Matrix matrix;
    const MatrixError error = read_matrix_market(in, matrix);
    EXPECT_EQ(error.line, line) << text;
    EXPECT_NE(error.what.find(what), std::string::npos) << '"' << error.what << "\" for\n" << text;
}

TEST(matrix_market, reads_an_array_column_by_column) {
    const Matrix matrix =
        read("%%MatrixMarket matrix array real general\n% comment\n2 3\n1\n2\n3.5\n-4\n+5e1\n6\n");
    EXPECT_EQ(matrix.rows, 2U);
    EXPECT_EQ(matrix.columns, 3U);
    EXPECT_EQ(matrix.values, (Values{1, 2, 3.5, -4, 50, 6}));
    EXPECT_EQ(matrix.at(1, 0), 2);
}

TEST(matrix_market, reads_coordinates_with_comments_blank_lines_and_any_case) {
    const Matrix matrix = read(
        "%%matrixmarket MATRIX Coordinate Integer General\r\n%\n\n2 2 2\r\n\n2 1 7\r\n% late\n1  "
        "2\t-3 "
        "\n\n");
    EXPECT_EQ(matrix.values, (Values{0, 7, -3, 0}));
}

TEST(matrix_market, adds_up_entries_of_one_place) {
    EXPECT_EQ(read("%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 2\n1 1 0.5\n").values,
              Values{2.5});
}

TEST(matrix_market, reads_patterns_as_ones) {
    EXPECT_EQ(read("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2\n").values,
              (Values{1, 0, 0, 1}));
}

TEST(matrix_market, mirrors_symmetric_and_skew_symmetric_files) {
    EXPECT_EQ(read("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 3\n2 1 4\n").values,
              (Values{3, 4, 4, 0}));
    EXPECT_EQ(read("%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n").values,
              (Values{1, 2, 2, 3}));
    EXPECT_EQ(read("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 4\n").values,
              (Values{0, 4, -4, 0}));
    EXPECT_EQ(read("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n").values,
              (Values{0, 1, 2, -1, 0, 3, -2, -3, 0}));
}

TEST(matrix_market, reads_empty_matrices) {
    EXPECT_TRUE(read("%%MatrixMarket matrix array real general\n0 5\n").values.empty());
    EXPECT_EQ(read("%%MatrixMarket matrix coordinate real general\n2 1 0\n").values,
              (Values{0, 0}));
}

TEST(matrix_market, refuses_wrong_headers_on_line_1) {
    expect_refused("", 0, "empty");
    expect_refused("1 2 3\n", 1, "%%MatrixMarket");
    expect_refused("%%MatrixMarket vector array real general\n", 1, "\"vector\"");
    expect_refused("%%MatrixMarket matrix dense real general\n", 1, "\"dense\"");
    expect_refused("%%MatrixMarket matrix array complex general\n", 1, "complex");
    expect_refused("%%MatrixMarket matrix array text general\n", 1, "\"text\"");
    expect_refused("%%MatrixMarket matrix array real hermitian\n", 1, "hermitian");
    expect_refused("%%MatrixMarket matrix array real\n", 1, "\"\"");
    expect_refused("%%MatrixMarket matrix array real general more\n", 1, "five words");
    expect_refused("%%MatrixMarket matrix array pattern general\n", 1, "pattern");
    expect_refused("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", 1, "signs");
}

TEST(matrix_market, refuses_wrong_sizes_before_taking_memory) {
    const std::string array = "%%MatrixMarket matrix array real general\n";
    const std::string coordinate = "%%MatrixMarket matrix coordinate real general\n";
    expect_refused(array, 1, "ends before the line with the sizes");
    expect_refused(array + "2\n", 2, "two sizes");
    expect_refused(array + "2 2 4\n", 2, "two sizes");
    expect_refused(array + "-2 2\n", 2, "two sizes");
    expect_refused(array + "2.0 2\n", 2, "two sizes");
    expect_refused(coordinate + "%\n2 2\n", 3, "three sizes");
    expect_refused(coordinate + "99999999999999999999 1 1\n", 2, "three sizes");
    expect_refused(coordinate + "4000000000 4000000000 1\n", 2, "too large");
    expect_refused(array + "100000 100000\n", 2, "too large");
    expect_refused("%%MatrixMarket matrix array real symmetric\n2 3\n", 2, "square");
}

TEST(matrix_market, refuses_wrong_entries_and_names_the_line) {
    const std::string head = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n";
    expect_refused(head, 3, "after 1 of 2 entries");
    expect_refused(head + "3 1 1\n", 4, "(3, 1) is outside");
    expect_refused(head + "1 0 1\n", 4, "(1, 0) is outside");
    expect_refused(head + "1 1\n", 4, "expected a number, not \"\"");
    expect_refused(head + "1 1 x\n", 4, "\"x\"");
    expect_refused(head + "1 1 1.5.2\n", 4, "\"1.5.2\"");
    expect_refused(head + "1 1 1 1\n", 4, "more words");
    expect_refused(head + "a b 1\n", 4, "expected an entry");
    expect_refused(head + "1 2 nan\n", 4, "not finite");
    expect_refused(head + "1 2 1e999\n", 4, "expected a number");
    expect_refused(head + "1 2 2\n\n2 2 2\n", 6, "more entries");
    expect_refused("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 2.5\n", 3,
                   "integer, not \"2.5\"");
    expect_refused("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1 1\n", 3,
                   "more words");
}

TEST(matrix_market, refuses_entries_that_symmetry_forbids) {
    expect_refused("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n", 3, "above");
    expect_refused("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", 3,
                   "on the diagonal");
}

TEST(matrix_market, refuses_arrays_that_are_too_short_or_too_long) {
    const std::string head = "%%MatrixMarket matrix array real general\n2 1\n1\n";
    expect_refused(head, 3, "before element (2, 1)");
    expect_refused(head + "2\n3\n", 5, "more entries");
    expect_refused(head + "2 3\n", 4, "more words");
}

SparseMatrix read_sparse(const std::string& text) {
    std::istringstream in(text);
    SparseMatrix matrix;
    const MatrixError error = read_matrix_market(in, matrix);
    EXPECT_EQ(error.what, "") << "line " << error.line;
    return matrix;
}

TEST(matrix_market, sparse_rows_are_in_order_and_places_unique) {
    const SparseMatrix matrix = read_sparse(
        "%%MatrixMarket matrix coordinate real general\n4 3 5\n4 3 1\n1 2 2\n4 1 3\n1 2 0.5\n2 2 "
        "-1\n");
    EXPECT_EQ(matrix.first, (std::vector<std::size_t>{0, 1, 2, 2, 4}));
    EXPECT_EQ(matrix.column, (std::vector<std::uint32_t>{1, 1, 0, 2}));
    EXPECT_EQ(matrix.value, (Values{2.5, -1, 3, 1}));
}

TEST(matrix_market, sparse_matrices_hold_what_dense_ones_do) {
    const char* const files[] = {
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 3\n2 1 4\n3 2 5\n",
        "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 4\n",
        "%%MatrixMarket matrix array real general\n2 2\n1\n0\n-3\n4\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 5 2\n1 5\n2 1\n",
    };
    for (const char* const text : files) {
        const Matrix dense = read(text);
        const SparseMatrix sparse = read_sparse(text);
        ASSERT_EQ(sparse.first.size(), dense.rows + 1);
        Values values(dense.values.size(), 0);
        for (std::size_t i = 0; i < sparse.rows; ++i)
            for (std::size_t n = sparse.first[i]; n < sparse.first[i + 1]; ++n)
                values[sparse.column[n] * sparse.rows + i] = sparse.value[n];
        EXPECT_EQ(values, dense.values) << text;
    }
}

TEST(matrix_market, sparse_sizes_are_bounded_by_entries_not_by_places) {
    EXPECT_EQ(
        read_sparse("%%MatrixMarket matrix coordinate real general\n1000000 1000000 1\n1 1 1\n")
            .value.size(),
        1U);
    for (const char* const sizes : {"1 1 99999999999999", "99999999999999 1 0", "1 4294967296 0"}) {
        std::istringstream in(std::string("%%MatrixMarket matrix coordinate real general\n") +
                              sizes + "\n");
        SparseMatrix matrix;
        const MatrixError error = read_matrix_market(in, matrix);
        EXPECT_NE(error.what.find("too large as a sparse"), std::string::npos) << error.what;
        EXPECT_EQ(error.line, 2U);
    }
}

TEST(matrix_market, a_mirrored_sparse_matrix_is_bounded_with_its_mirror_image) {
    const std::string sizes = "\n2 2 2\n1 1 1\n2 1 1\n";
    SparseMatrix matrix;
    const auto fits = [&](const char* symmetry, std::uint64_t octets_max) {
        std::istringstream in("%%MatrixMarket matrix coordinate real " + (symmetry + sizes));
        return read_matrix_market(in, matrix, octets_max).what.empty();
    };
    EXPECT_TRUE(fits("general", 150));
    EXPECT_FALSE(fits("symmetric", 150));
    EXPECT_TRUE(fits("symmetric", 300));
}

TEST(matrix_market, huge_counts_of_empty_matrices_take_no_time) {
    const char* const sizes[] = {"0 18446744073709551615", "0 4294967295"};
    for (const char* size : sizes) {
        std::istringstream dense(std::string("%%MatrixMarket matrix array real general\n") + size);
        Matrix matrix;
        EXPECT_EQ(read_matrix_market(dense, matrix).what, "") << size;
    }
    std::istringstream sparse("%%MatrixMarket matrix array real general\n0 4294967295\n");
    SparseMatrix matrix;
    EXPECT_EQ(read_matrix_market(sparse, matrix).what, "");
}

TEST(matrix_market, refuses_a_line_without_end) {
    const auto error_of = [](const std::string& text) {
        std::istringstream in(text);
        Matrix matrix;
        return read_matrix_market(in, matrix);
    };
    const std::string head = "%%MatrixMarket matrix array real general\n";
    EXPECT_EQ(error_of(head + "%" + std::string(1023, 'x') + "\n0 0\n").what, "");
    EXPECT_EQ(error_of(head + "0 0\n%" + std::string(1023, 'x')).what, "");
    const MatrixError long_line = error_of(head + "%" + std::string(1024, 'x') + "\n0 0\n");
    EXPECT_EQ(long_line.line, 2U);
    EXPECT_NE(long_line.what.find("more than 1024 characters"), std::string::npos);
}

TEST(matrix_market, names_a_file_that_is_not_there) {
    Matrix matrix;
    const MatrixError error = read_matrix_market_file("no/such/file.mtx", matrix);
    EXPECT_EQ(error.what, "no/such/file.mtx: cannot be opened");
}

TEST(matrix_market, writes_what_it_reads_back_bit_for_bit) {
    Matrix matrix{3, 2, {1.0 / 3, -0.0, 1e-300, 12345678901234567.0, 0.1, -2}};
    std::ostringstream out;
    write_matrix_market(out, matrix);
    EXPECT_EQ(read(out.str()).values, matrix.values);
}

/// Each prefix of a good file, and each copy with one spoilt byte, is read or refused without
/// undefined behaviour.
TEST(matrix_market, survives_every_cut_and_every_spoilt_octet) {
    const std::string good =
        "%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 3\n1 1 1.5\n2 1 -2\n3 2 4e2\n";
    for (std::size_t n = 0; n < good.size(); ++n) {
        std::istringstream in(good.substr(0, n));
        Matrix matrix;
        const MatrixError error = read_matrix_market(in, matrix, 1 << 20);
        if (n + 4 < good.size()) {
            EXPECT_NE(error.what, "") << n;
        }
    }
    Prng prng(1);
    for (int i = 0; i < 20000; ++i) {
        std::string spoilt = good;
        spoilt[prng.below(spoilt.size())] = static_cast<char>(prng.next());
        std::istringstream in(spoilt);
        Matrix matrix;
        const MatrixError error = read_matrix_market(in, matrix, 1 << 20);
        if (error.what.empty()) {
            EXPECT_EQ(matrix.values.size(), matrix.rows * matrix.columns);
        }
    }
}

}  // namespace
}  // namespace ulc::bench
