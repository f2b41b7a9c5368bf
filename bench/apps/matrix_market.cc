// SPDX-License-Identifier: BSD-3-Clause
#include "bench/apps/matrix_market.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <istream>
#include <ostream>
#include <string_view>
#include <vector>

namespace ulc::bench {
namespace {

/// Longest line; the format's description says 1,024.
constexpr std::size_t kLineOctetsMax = 1024;

enum class Format : std::uint8_t { kCoordinate, kArray };
enum class Field : std::uint8_t { kReal, kInteger, kPattern };
enum class Symmetry : std::uint8_t { kGeneral, kSymmetric, kSkew };

/// The next word of a line; empty at its end.
std::string_view next_word(std::string_view& rest) {
    const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!rest.empty() && is_space(rest.front()))
        rest.remove_prefix(1);
    std::size_t n = 0;
    while (n < rest.size() && !is_space(rest[n]))
        ++n;
    const std::string_view word = rest.substr(0, n);
    rest.remove_prefix(n);
    return word;
}

std::string lower(std::string_view word) {
    std::string result(word);
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

/// All of the word is one number. A leading '+' is allowed, as C's scanf does.
template <typename T>
bool parse_number(std::string_view word, T& out) {
    if (word.size() > 1 && word.front() == '+' && word[1] != '-') word.remove_prefix(1);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
    return error == std::errc{} && end == word.data() + word.size() && !word.empty();
}

std::string quoted(std::string_view word) {
    constexpr std::size_t kShown = 40;
    return '"' + std::string(word.substr(0, kShown)) + (word.size() > kShown ? "…\"" : "\"");
}

/// Takes the elements of a file.
class Sink {
public:
    virtual ~Sink() = default;
    /// Called before the first put(), of which there are at most `entries`; "" or why the matrix is
    /// refused.
    virtual std::string begin(std::size_t rows, std::size_t columns, std::uint64_t entries) = 0;
    virtual void put(std::size_t i, std::size_t j, double value) = 0;
};

std::string too_large(const char* form, std::size_t rows, std::size_t columns,
                      std::uint64_t octets_max) {
    return std::string("too large as a ") + form + " matrix: " + std::to_string(rows) + " x " +
           std::to_string(columns) + " exceeds the limit of " + std::to_string(octets_max) +
           " octets";
}

class DenseSink final : public Sink {
public:
    DenseSink(Matrix& out, std::uint64_t octets_max) : matrix_(out), octets_max_(octets_max) {}
    std::string begin(std::size_t rows, std::size_t columns, std::uint64_t) override {
        std::uint64_t octets = 0;
        if (__builtin_mul_overflow(std::uint64_t{rows}, std::uint64_t{columns}, &octets) ||
            __builtin_mul_overflow(octets, sizeof(double), &octets) || octets > octets_max_) {
            return too_large("dense", rows, columns, octets_max_);
        }
        matrix_.rows = rows;
        matrix_.columns = columns;
        matrix_.values.assign(rows * columns, 0.0);
        return {};
    }
    void put(std::size_t i, std::size_t j, double value) override {
        matrix_.values[j * matrix_.rows + i] += value;
    }

private:
    Matrix& matrix_;
    std::uint64_t octets_max_;
};

/// Collects the entries as they come; rows_of() puts them in order.
class SparseSink final : public Sink {
public:
    SparseSink(SparseMatrix& out, std::uint64_t octets_max)
        : matrix_(out), octets_max_(octets_max) {}
    std::string begin(std::size_t rows, std::size_t columns, std::uint64_t entries) override {
        // Entries are held twice while they are sorted. Their number is believed as they come, not
        // as it is announced.
        std::uint64_t octets = 0;
        if (columns > UINT32_MAX || __builtin_mul_overflow(entries, 2 * sizeof(Entry), &octets) ||
            __builtin_add_overflow(octets, std::uint64_t{rows} * sizeof(std::size_t), &octets) ||
            rows > octets_max_ / sizeof(std::size_t) || octets > octets_max_) {
            return too_large("sparse", rows, columns, octets_max_);
        }
        matrix_.rows = rows;
        matrix_.columns = columns;
        return {};
    }
    void put(std::size_t i, std::size_t j, double value) override {
        entries_.push_back({i, static_cast<std::uint32_t>(j), value});
    }
    void finish() {
        std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& x, const Entry& y) {
            return x.row != y.row ? x.row < y.row : x.column < y.column;
        });
        matrix_.first.assign(matrix_.rows + 1, 0);
        std::size_t last_row = SIZE_MAX;
        for (const Entry& entry : entries_) {
            if (entry.row == last_row && matrix_.column.back() == entry.column) {
                matrix_.value.back() += entry.value;
                continue;
            }
            last_row = entry.row;
            matrix_.column.push_back(entry.column);
            matrix_.value.push_back(entry.value);
            ++matrix_.first[entry.row + 1];
        }
        for (std::size_t i = 0; i < matrix_.rows; ++i)
            matrix_.first[i + 1] += matrix_.first[i];
    }

private:
    struct Entry {
        std::size_t row;
        std::uint32_t column;
        double value;
    };
    SparseMatrix& matrix_;
    std::uint64_t octets_max_;
    std::vector<Entry> entries_;
};

class Reader {
public:
    Reader(std::istream& in, Sink& sink) : in_(in), sink_(sink) {}

    MatrixError read() {
        if (header() && sizes() && (format_ == Format::kArray ? array() : coordinates()))
            nothing_more();
        if (too_long_)
            fail("the line has more than " + std::to_string(kLineOctetsMax) + " characters");
        else if (error_.what.empty() && in_.bad())
            fail("the file cannot be read to its end");
        return error_;
    }

private:
    bool fail(std::string what) {
        error_ = {line_number_, std::move(what)};
        return false;
    }
    bool raw_line() {
        std::array<char, kLineOctetsMax + 1> text{};
        in_.getline(text.data(), text.size());
        const auto got = static_cast<std::size_t>(in_.gcount());
        if (got == 0) return false;
        ++line_number_;
        too_long_ = in_.fail();
        line_.assign(text.data(), in_.eof() || too_long_ ? got : got - 1);
        return !too_long_;
    }
    /// The next line with content, or false at the end of the file.
    bool content_line() {
        while (raw_line()) {
            rest_ = line_;
            std::string_view look = line_;
            const std::string_view first = next_word(look);
            if (!first.empty() && first.front() != '%') return true;
        }
        return false;
    }

    bool header() {
        if (!raw_line()) return fail("the file is empty");
        rest_ = line_;
        if (lower(next_word(rest_)) != "%%matrixmarket") {
            return fail("a Matrix Market file begins with \"%%MatrixMarket\"");
        }
        const std::string object = lower(next_word(rest_));
        if (object != "matrix")
            return fail("only objects of kind \"matrix\" are read, not " + quoted(object));
        const std::string format = lower(next_word(rest_));
        const std::string field = lower(next_word(rest_));
        const std::string symmetry = lower(next_word(rest_));
        if (format == "coordinate") {
            format_ = Format::kCoordinate;
        } else if (format == "array") {
            format_ = Format::kArray;
        } else {
            return fail("the format must be coordinate or array, not " + quoted(format));
        }
        if (field == "real" || field == "double") {
            field_ = Field::kReal;
        } else if (field == "integer") {
            field_ = Field::kInteger;
        } else if (field == "pattern") {
            field_ = Field::kPattern;
        } else if (field == "complex") {
            return fail("complex matrices are not supported");
        } else {
            return fail("the field must be real, integer or pattern, not " + quoted(field));
        }
        if (symmetry == "general") {
            symmetry_ = Symmetry::kGeneral;
        } else if (symmetry == "symmetric") {
            symmetry_ = Symmetry::kSymmetric;
        } else if (symmetry == "skew-symmetric") {
            symmetry_ = Symmetry::kSkew;
        } else if (symmetry == "hermitian") {
            return fail("hermitian matrices are not supported");
        } else {
            return fail("the symmetry must be general, symmetric or skew-symmetric, not " +
                        quoted(symmetry));
        }
        if (!next_word(rest_).empty()) return fail("the header has more than five words");
        if (field_ == Field::kPattern && format_ == Format::kArray) {
            return fail("a pattern has no values, so it cannot be an array");
        }
        if (field_ == Field::kPattern && symmetry_ == Symmetry::kSkew) {
            return fail("a pattern has no signs, so it cannot be skew-symmetric");
        }
        return true;
    }

    bool sizes() {
        if (!content_line()) return fail("the file ends before the line with the sizes");
        const bool counted = format_ == Format::kCoordinate;
        if (!parse_number(next_word(rest_), rows_) || !parse_number(next_word(rest_), columns_) ||
            (counted && !parse_number(next_word(rest_), entries_)) || !next_word(rest_).empty()) {
            return fail(counted ? "expected three sizes: rows columns entries"
                                : "expected two sizes: rows columns");
        }
        if (symmetry_ != Symmetry::kGeneral && rows_ != columns_) {
            return fail("a symmetric matrix must be square");
        }
        std::uint64_t entries = entries_;
        if (!counted &&
            __builtin_mul_overflow(std::uint64_t{rows_}, std::uint64_t{columns_}, &entries))
            entries = UINT64_MAX;
        if (symmetry_ != Symmetry::kGeneral &&
            __builtin_mul_overflow(entries, std::uint64_t{2}, &entries))
            entries = UINT64_MAX;  // each but the diagonal is put twice
        std::string why = sink_.begin(rows_, columns_, entries);
        return why.empty() || fail(std::move(why));
    }

    /// Adds a stored element and its mirror image.
    void put(std::size_t i, std::size_t j, double value) {
        sink_.put(i, j, value);
        if (symmetry_ == Symmetry::kGeneral || i == j) return;
        sink_.put(j, i, symmetry_ == Symmetry::kSkew ? -value : value);
    }

    /// The next word as a value of the field.
    bool value(double& out) {
        const std::string_view word = next_word(rest_);
        if (field_ == Field::kInteger) {
            std::int64_t integer = 0;
            if (!parse_number(word, integer))
                return fail("expected an integer, not " + quoted(word));
            out = static_cast<double>(integer);
            return true;
        }
        if (!parse_number(word, out)) return fail("expected a number, not " + quoted(word));
        if (!std::isfinite(out)) return fail("the value is not finite");
        return true;
    }

    bool line_ends() {
        return next_word(rest_).empty() || fail("the line has more words than an entry");
    }

    bool array() {
        if (rows_ == 0) return true;  // then the number of columns is bounded by nothing
        const bool lower_only = symmetry_ != Symmetry::kGeneral;
        for (std::size_t j = 0; j < columns_; ++j) {
            const std::size_t first = !lower_only ? 0 : symmetry_ == Symmetry::kSkew ? j + 1 : j;
            for (std::size_t i = first; i < rows_; ++i) {
                double element = 0;
                if (!content_line()) {
                    return fail("the file ends before element (" + std::to_string(i + 1) + ", " +
                                std::to_string(j + 1) + ")");
                }
                if (!value(element) || !line_ends()) return false;
                put(i, j, element);
            }
        }
        return true;
    }

    bool coordinates() {
        for (std::uint64_t n = 0; n < entries_; ++n) {
            if (!content_line()) {
                return fail("the file ends after " + std::to_string(n) + " of " +
                            std::to_string(entries_) + " entries");
            }
            std::size_t i = 0;
            std::size_t j = 0;
            double element = 1;
            if (!parse_number(next_word(rest_), i) || !parse_number(next_word(rest_), j)) {
                return fail("expected an entry: row column" +
                            std::string(field_ == Field::kPattern ? "" : " value"));
            }
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
            if (i < 1 || i > rows_ || j < 1 || j > columns_) {
#else
            if (i < 1 || i > rows_ || j < 1) {
#endif
                return fail("entry (" + std::to_string(i) + ", " + std::to_string(j) +
                            ") is outside the matrix");
            }
            if (symmetry_ != Symmetry::kGeneral && j > i) {
                return fail("a symmetric file holds no entries above the diagonal");
            }
            if (symmetry_ == Symmetry::kSkew && i == j) {
                return fail("a skew-symmetric file holds no entries on the diagonal");
            }
            if (field_ != Field::kPattern && !value(element)) return false;
            if (!line_ends()) return false;
            put(i - 1, j - 1, element);
        }
        return true;
    }

    bool nothing_more() { return !content_line() || fail("more entries than the sizes say"); }

    std::istream& in_;
    Sink& sink_;
    MatrixError error_;
    std::size_t rows_ = 0;
    std::size_t columns_ = 0;
    std::string line_;
    std::string_view rest_;  ///< rest of line_, not read yet
    std::size_t line_number_ = 0;
    bool too_long_ = false;
    Format format_ = Format::kCoordinate;
    Field field_ = Field::kReal;
    Symmetry symmetry_ = Symmetry::kGeneral;
    std::uint64_t entries_ = 0;
};

}  // namespace

MatrixError read_matrix_market(std::istream& in, Matrix& out, std::uint64_t octets_max) {
    out = {};
    DenseSink sink(out, octets_max);
    return Reader(in, sink).read();
}

MatrixError read_matrix_market(std::istream& in, SparseMatrix& out, std::uint64_t octets_max) {
    out = {};
    SparseSink sink(out, octets_max);
    MatrixError error = Reader(in, sink).read();
    if (error.what.empty()) sink.finish();
    return error;
}

void write_matrix_market(std::ostream& out, const Matrix& matrix) {
    out << "%%MatrixMarket matrix array real general\n"
        << matrix.rows << ' ' << matrix.columns << '\n';
    std::array<char, 32> digits{};
    for (const double value : matrix.values) {
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
        out.write(digits.data(), end - digits.data());
        out.put('\n');
    }
}

}  // namespace ulc::bench
