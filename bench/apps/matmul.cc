// Dense matrix product C = A · B on a job's ranks, after URTP §5: A, B and C are cut into blocks of columns, one a
// rank. Rank i needs all of A for its block of C, so the ranks allgather A's blocks, then each multiplies alone.
//
//   rank i:   A_i ──allgather──▶ A        C_i = A · B_i
//
// Blocks of A are padded to one width with columns of zeros, and the matching rows of B_i are zeros as well, so any
// number of columns works on any number of ranks. Rank 0 multiplies once more alone, by the same kernel: that is
// the reference of the result and of the speed-up.
//
// Every rank reads both files. What a rank finds wrong is told to all before anything else, so none is left waiting.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "bench/apps/dgemm.h"
#include "bench/apps/matrix_market.h"
#include "bench/common/job.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

struct Options {
    std::string a, b, out;
    unsigned repeat = 5;
    bool check = true;
};

struct Times {
    double communicate = 0;
    double compute = 0;
    double whole = 0;
};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What every rank tells all others about its input.
struct Report {
    std::uint64_t failed;
    std::uint64_t rows_a, columns_a, rows_b, columns_b;
    std::uint64_t hash;  ///< of the values: ranks that read different files are found
};

std::uint64_t hash_of(const Matrix& matrix, std::uint64_t hash) {
    for (const double value : matrix.values) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 29;
    }
    return hash;
}

/// Reads both and agrees with all ranks that they are there, alike and fit together.
bool read_inputs(Job& job, const Options& options, Matrix& a, Matrix& b) {
    MatrixError error = read_matrix_market_file(options.a, a);
    if (error.what.empty()) error = read_matrix_market_file(options.b, b);
    if (!error.what.empty()) {
        std::fprintf(stderr, "rank %u: %s\n", unsigned{job.rank()}, error.what.c_str());
    }
    const Report own{!error.what.empty(),      a.rows, a.columns, b.rows, b.columns,
                     hash_of(b, hash_of(a, 1))};
    std::vector<Report> all(job.size());
    job.allgather(&own, all.data(), sizeof own);
    for (const Report& report : all) {
        if (report.failed != 0) return false;  // that rank has said why
    }
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        if (std::memcmp(&all[rank], all.data(), sizeof own) == 0) continue;
        if (job.rank() == 0) {
            std::fprintf(stderr,
                         "rank %zu read other matrices than rank 0: give all the same files\n",
                         rank);
        }
        return false;
    }
    if (a.columns == b.rows) return true;
    if (job.rank() == 0) {
        std::fprintf(stderr, "A has %zu columns but B has %zu rows: they cannot be multiplied\n",
                     a.columns, b.rows);
    }
    return false;
}

/// Columns [rank · width, …) of a matrix, padded with zeros to `width` columns.
std::vector<double> block_of(const Matrix& matrix, std::size_t rank, std::size_t width) {
    std::vector<double> block(width * matrix.rows, 0.0);
    const std::size_t first = std::min(rank * width, matrix.columns);
    const std::size_t last = std::min(first + width, matrix.columns);
    std::copy(matrix.values.begin() + static_cast<std::ptrdiff_t>(first * matrix.rows),
              matrix.values.begin() + static_cast<std::ptrdiff_t>(last * matrix.rows),
              block.begin());
    return block;
}

class Product {
public:
    Product(Job& job, const Matrix& a, const Matrix& b)
        : job_(job),
          rows_(a.rows),
          columns_(b.columns),
          width_a_((a.columns + job.size() - 1) / job.size()),
          width_c_((b.columns + job.size() - 1) / job.size()),
          inner_(width_a_ * job.size()),
          a_block_(block_of(a, job.rank(), width_a_)),
          a_(rows_ * inner_),
          c_block_(rows_ * width_c_) {
        // B_i with rows of zeros where A is padded.
        const std::vector<double> block = block_of(b, job.rank(), width_c_);
        b_block_.assign(inner_ * width_c_, 0.0);
        for (std::size_t j = 0; j < width_c_; ++j) {
            std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(j * b.rows), b.rows,
                        b_block_.begin() + static_cast<std::ptrdiff_t>(j * inner_));
        }
    }

    Times run() {
        Times times;
        job_.barrier();
        const auto start = Clock::now();
        job_.allgather(a_block_.data(), a_.data(), a_block_.size() * sizeof(double));
        times.communicate = seconds_since(start);
        dgemm(rows_, width_c_, inner_, a_.data(), b_block_.data(), c_block_.data());
        times.whole = seconds_since(start);
        times.compute = times.whole - times.communicate;
        return slowest(times);
    }

    /// All of C, at every rank.
    Matrix gather() {
        std::vector<double> padded(c_block_.size() * job_.size());
        job_.allgather(c_block_.data(), padded.data(), c_block_.size() * sizeof(double));
        padded.resize(rows_ * columns_);
        return {rows_, columns_, std::move(padded)};
    }

private:
    /// Of the rank that took longest: the product is there when the last one has its block.
    Times slowest(const Times& own) {
        std::vector<Times> all(job_.size());
        job_.allgather(&own, all.data(), sizeof own);
        return *std::max_element(all.begin(), all.end(),
                                 [](const Times& x, const Times& y) { return x.whole < y.whole; });
    }

    Job& job_;
    std::size_t rows_, columns_, width_a_, width_c_, inner_;
    std::vector<double> a_block_, a_, b_block_, c_block_;
};

/// Rank 0 alone, the same kernel on the whole matrices; the others wait. The median.
double serial(Job& job, unsigned repeat, const Matrix& a, const Matrix& b, Matrix& c) {
    std::vector<double> times;
    if (job.rank() == 0) {
        c = {a.rows, b.columns, std::vector<double>(a.rows * b.columns)};
        for (unsigned i = 0; i < repeat; ++i) {
            const auto start = Clock::now();
            dgemm(a.rows, b.columns, a.columns, a.values.data(), b.values.data(), c.values.data());
            times.push_back(seconds_since(start));
        }
    }
    job.barrier();
    if (times.empty()) return 0;
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
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

int run(Job& job, const Options& options) {
    Matrix a;
    Matrix b;
    if (!read_inputs(job, options, a, b)) return 1;
    Product product(job, a, b);
    std::vector<Times> runs;
    for (unsigned i = 0; i < options.repeat; ++i)
        runs.push_back(product.run());
    std::sort(runs.begin(), runs.end(),
              [](const Times& x, const Times& y) { return x.whole < y.whole; });
    const Times median = runs[runs.size() / 2];

    if (job.rank() == 0) {
        std::printf("matmul: %zu x %zu times %zu x %zu on %u rank%s, kernel: %s\n", a.rows,
                    a.columns, b.rows, b.columns, unsigned{job.size()}, job.size() == 1 ? "" : "s",
                    dgemm_kernel());
        std::printf("time: %.3f ms (median of %u), of which communication %.3f ms = %.1f %%\n",
                    median.whole * 1e3, options.repeat, median.communicate * 1e3,
                    100 * median.communicate / median.whole);
    }
    const bool wants_result = options.check || !options.out.empty();
    const Matrix c = wants_result ? product.gather() : Matrix{};
    int failed = 0;
    if (options.check) {
        Matrix reference;
        const double one = serial(job, options.repeat, a, b, reference);
        if (job.rank() == 0) {
            std::printf("one process: %.3f ms; speed-up %.2f\n", one * 1e3, one / median.whole);
            const double bound =
                1e-14 * static_cast<double>(a.columns + 1) * largest(a) * largest(b);
            failed = same(c, reference, bound) ? 0 : 1;
            if (failed == 0) std::printf("check: ok, all %zu elements agree\n", c.values.size());
        }
    }
    if (job.rank() == 0 && !options.out.empty()) {
        std::ofstream out(options.out);
        write_matrix_market(out, c);
        out.close();
        if (!out) {
            std::fprintf(stderr, "%s: cannot be written\n", options.out.c_str());
            failed = 1;
        }
    }
    std::uint32_t verdict = static_cast<std::uint32_t>(failed);
    job.broadcast(&verdict, sizeof verdict);
    return static_cast<int>(verdict);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(
        "Dense matrix product of two Matrix Market files on all ranks of a job (URTP §5).\n"
        "On 4 ranks: ulc run -n 4 ulc-matmul A.mtx B.mtx      (tools/mtx-gen makes samples)");
    app.add_option("A", options.a, "left matrix, a Matrix Market file that every rank can read")
        ->required();
    app.add_option("B", options.b, "right matrix, likewise")->required();
    app.add_option("-o,--out", options.out, "write C there as a Matrix Market array (rank 0)");
    app.add_option("-r,--repeat", options.repeat, "products to take the median of")
        ->check(CLI::Range(1U, 1000U))
        ->capture_default_str();
    app.add_flag("--check,!--no-check", options.check,
                 "compare with one process, which also gives the speed-up (on by default)");
    CLI11_PARSE(app, argc, argv);

    std::string why;
    const std::unique_ptr<Job> job = Job::join(why);
    if (job == nullptr) {
        std::fprintf(stderr, "ulc-matmul: cannot join the job: %s\n", why.c_str());
        return 1;
    }
    try {
        return run(*job, options);
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "ulc-matmul: rank %u is out of memory\n", unsigned{job->rank()});
        return 1;
    }
}
