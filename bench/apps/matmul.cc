// SPDX-License-Identifier: BSD-3-Clause
// Dense matrix product C = A · B on a job's ranks, in two forms.
//
// After URTP §5: A, B and C are cut into blocks of columns, one a rank. Rank i needs all of A for
// its block of C, so the ranks allgather A's blocks, then each multiplies alone.
//
//   rank i:   A_i ──allgather──▶ A        C_i = A · B_i
//
// --master, after GAMMA §6.3: A, B and C are rank 0's, and their ways there and back are measured
// too.
//
//   rank i:   A ◀──broadcast── 0      B_i ◀──scatter── 0
//             C_i = A · B_i ──gather with a token──▶ 0
//
// Rank 0 multiplies once more alone, by the same kernel: that is the reference of the result and of
// the speed-up. Every rank reads both files. All ranks hear of each fault that one finds before
// anything else, so none is left waiting.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "bench/apps/dgemm.h"
#include "bench/apps/matrix_market.h"
#include "bench/apps/ranks.h"
#include "tools/shared/command_line.h"

namespace {

using namespace ulc::bench;

struct Options : RunOptions {
    std::string a, b, out;
    bool master = false;
    bool check = true;
};

/// The ranks' blocks of columns of one matrix, one behind the other.
class Shares {
public:
    Shares(std::size_t rows, std::size_t columns, std::size_t ranks)
        : rows_(rows), first_(ranks + 1) {
        for (std::size_t r = 0; r <= ranks; ++r)
            first_[r] = columns * r / ranks;
        for (std::size_t r = 0; r < ranks; ++r)
            octets_.push_back(values(r) * sizeof(double));
    }
    [[nodiscard]] std::size_t columns(std::size_t rank) const {
        return first_[rank + 1] - first_[rank];
    }
    [[nodiscard]] std::size_t values(std::size_t rank) const { return columns(rank) * rows_; }
    /// Index of the block's first value.
    [[nodiscard]] std::size_t at(std::size_t rank) const { return first_[rank] * rows_; }
    [[nodiscard]] const std::size_t* octets() const { return octets_.data(); }

private:
    std::size_t rows_;
    std::vector<std::size_t> first_;
    std::vector<std::size_t> octets_;
};

/// Reads both and agrees with all ranks that they are there, alike and fit together.
bool read_inputs(Job& job, const Options& options, Matrix& a, Matrix& b) {
    MatrixError error = read_matrix_market_file(options.a, a);
    if (error.what.empty()) error = read_matrix_market_file(options.b, b);
    const double sizes[] = {static_cast<double>(a.rows), static_cast<double>(a.columns),
                            static_cast<double>(b.rows), static_cast<double>(b.columns)};
    if (!agree(job, error.what, hash_of(b.values, hash_of(a.values, hash_of(sizes))))) return false;
    if (a.columns == b.rows) return true;
    if (job.rank() == 0) {
        std::fprintf(stderr, "A has %zu columns but B has %zu rows: they cannot be multiplied\n",
                     a.columns, b.rows);
    }
    return false;
}

class Product {
public:
    Product(Job& job, const Matrix& a, const Matrix& b)
        : job_(job),
          a_(a),
          b_(b),
          shares_a_(a.rows, a.columns, job.size()),
          shares_b_(b.rows, b.columns, job.size()),
          shares_c_(a.rows, b.columns, job.size()),
          all_of_a_(a.values.size()),
          b_block_(shares_b_.values(job.rank())),
          c_block_(shares_c_.values(job.rank())),
          c_{a.rows, b.columns, std::vector<double>(a.rows * b.columns)} {}

    /// URTP §5: begins with own blocks of A and B, ends with an own block of C.
    Times run_allgather() {
        forget();
        put_block(all_of_a_, shares_a_.at(job_.rank()), a_, shares_a_);
        put_block(b_block_, 0, b_, shares_b_);
        job_.barrier();
        Stopwatch watch;
        watch.communicate([&] { job_.allgather_in_place(all_of_a_.data(), shares_a_.octets()); });
        multiply();
        return slowest(job_, watch.stop());
    }
    /// GAMMA §6.3: begins and ends with everything at rank 0.
    Times run_master() {
        forget();
        if (job_.rank() == 0) all_of_a_ = a_.values;
        job_.barrier();
        Stopwatch watch;
        watch.communicate([&] {
            job_.broadcast(all_of_a_.data(), all_of_a_.size() * sizeof(double));
            job_.scatter(b_.values.data(), shares_b_.octets(), b_block_.data());
        });
        multiply();
        watch.communicate([&] { gather(); });
        return slowest(job_, watch.stop());
    }
    /// Brings C to rank 0.
    void gather() { job_.gather(c_block_.data(), c_.values.data(), shares_c_.octets()); }
    [[nodiscard]] const Matrix& c() const { return c_; }

private:
    /// Clears the result, so that an earlier run's does not hide a part that this one lacks.
    void forget() {
        constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
        std::fill(all_of_a_.begin(), all_of_a_.end(), kNothing);
        std::fill(b_block_.begin(), b_block_.end(), kNothing);
        std::fill(c_.values.begin(), c_.values.end(), kNothing);
    }
    void put_block(std::vector<double>& to, std::size_t at, const Matrix& from,
                   const Shares& shares) const {
        const auto first =
            from.values.begin() + static_cast<std::ptrdiff_t>(shares.at(job_.rank()));
        std::copy_n(first, shares.values(job_.rank()),
                    to.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void multiply() {
        dgemm(a_.rows, shares_b_.columns(job_.rank()), a_.columns, all_of_a_.data(),
              b_block_.data(), c_block_.data());
    }

    Job& job_;
    const Matrix& a_;
    const Matrix& b_;
    Shares shares_a_, shares_b_, shares_c_;
    std::vector<double> all_of_a_, b_block_, c_block_;
    Matrix c_;  ///< whole at rank 0
};

/// Rank 0 alone, the same kernel on the whole matrices.
Matrix serial(const Options& options, const Matrix& a, const Matrix& b, Times& times) {
    Matrix c{a.rows, b.columns, std::vector<double>(a.rows * b.columns)};
    std::vector<Times> runs;
    for (unsigned i = 0; i < options.repeat; ++i) {
        const Stopwatch watch;
        dgemm(a.rows, b.columns, a.columns, a.values.data(), b.values.data(), c.values.data());
        runs.push_back(watch.stop());
    }
    times = median(std::move(runs));
    return c;
}

double largest(const Matrix& matrix) {
    double most = 0;
    for (const double value : matrix.values)
        most = std::max(most, std::abs(value));
    return most;
}

/// Sums in another order differ by rounding: at most about inner · eps · max|A| · max|B| each.
bool same(const Matrix& c, const Matrix& reference, double bound) {
    for (std::size_t i = 0; i < c.values.size(); ++i) {
        if (std::abs(c.values[i] - reference.values[i]) <= bound) continue;
        std::fprintf(stderr, "WRONG: C(%zu, %zu) is %.17g but %.17g on one process\n",
                     i % c.rows + 1, i / c.rows + 1, c.values[i], reference.values[i]);
        return false;
    }
    return true;
}

/// Returns the exit status. Called by rank 0.
int report(const Options& options, const Matrix& a, const Matrix& b, const Matrix& c,
           const Times& times) {
    if (options.check) {
        Times one;
        const Matrix reference = serial(options, a, b, one);
        std::printf("one process: %.3f ms; speed-up %.2f\n", one.whole * 1e3,
                    one.whole / times.whole);
        if (!same(c, reference,
                  1e-14 * static_cast<double>(a.columns + 1) * largest(a) * largest(b)))
            return 1;
        std::printf("check: ok, all %zu elements agree\n", c.values.size());
    }
    if (options.out.empty()) return 0;
    std::ofstream out(options.out);
    write_matrix_market(out, c);
    out.close();
    if (out) return 0;
    std::fprintf(stderr, "%s: cannot be written\n", options.out.c_str());
    return 1;
}

int run(Job& job, const Options& options) {
    Matrix a;
    Matrix b;
    if (!read_inputs(job, options, a, b)) return 1;
    job.emulate_broadcast(options.unicast);
    Product product(job, a, b);
    std::vector<Times> runs;
    for (unsigned i = 0; i < options.repeat; ++i)
        runs.push_back(options.master ? product.run_master() : product.run_allgather());
    if (!options.master) product.gather();
    return conclude(job, std::move(runs), [&](const Times& times) {
        std::printf("matmul: %zu x %zu times %zu x %zu on %u rank%s, %s, %s, kernel: %s\n", a.rows,
                    a.columns, b.rows, b.columns, unsigned{job.size()}, job.size() == 1 ? "" : "s",
                    options.master ? "master and slaves" : "allgather", options.broadcast(),
                    dgemm_kernel());
        print_times("a product", times, options.repeat);
        return report(options, a, b, product.c(), times);
    });
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    ulc::tools::CommandLine app(
        "Dense matrix product of two Matrix Market files on all ranks of a job (URTP §5, GAMMA "
        "§6.3).\n"
        "On 4 ranks: ulc run -n 4 ulc-matmul A.mtx B.mtx      (tools/mtx-gen makes samples)");
    app.add_option("A", options.a, "left matrix, a Matrix Market file that every rank can read")
        .required();
    app.add_option("B", options.b, "right matrix, likewise").required();
    app.add_option("-o,--out", options.out, "write C there as a Matrix Market array (rank 0)");
    add_options(app, options);
    app.add_flag("--master", options.master,
                 "A, B and C are rank 0's: broadcast, scatter and gather are part of the time");
    app.add_flag("--check,!--no-check", options.check,
                 "compare with one process, which also gives the speed-up (on by default)");
    if (const auto status = app.parse(argc, argv)) return *status;
    return run_in_job("ulc-matmul", [&](Job& job) { return run(job, options); });
}
