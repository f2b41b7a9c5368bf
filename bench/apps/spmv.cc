// SPDX-License-Identifier: BSD-3-Clause
// Iterated product of a vector with a sparse matrix, x ← A·x, after URTP §5 (the solver of
// PolyFEM). Each rank has a block of rows with about as many entries as the others', and after each
// product the ranks allgather their parts of x:
//
//   rank i:   x_i = A_i · x        x_i ──allgather──▶ x
//
// So that x neither grows nor fades away, A is divided by its norm (the largest sum of a row) and x
// now and then multiplied by a power of two. Both leave the digits as they are: the result is the
// same, bit by bit, on any number of ranks, and rank 0 computes it once more alone as the reference
// of result and speed-up.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/apps/matrix_market.h"
#include "bench/apps/ranks.h"
#include "tools/shared/command_line.h"

namespace {

using namespace ulc::bench;

struct Options : RunOptions {
    std::string file;
    unsigned iterations = 100;
};

constexpr unsigned kRescaleEvery = 32;

double norm_of(const SparseMatrix& a) {
    double most = 0;
    for (std::size_t i = 0; i < a.rows; ++i) {
        double sum = 0;
        for (std::size_t n = a.first[i]; n < a.first[i + 1]; ++n)
            sum += std::abs(a.value[n]);
        most = std::max(most, sum);
    }
    return most;
}

/// First rows of the ranks' blocks, and the number of rows: block r is [result[r], result[r + 1]).
std::vector<std::size_t> share_rows(const SparseMatrix& a, std::size_t ranks) {
    std::vector<std::size_t> first(ranks + 1, 0);
    for (std::size_t r = 1; r <= ranks; ++r) {
        const std::size_t entries = a.value.size() * r / ranks;
        const auto at = std::lower_bound(a.first.begin(), a.first.end(), entries);
        first[r] =
            r == ranks ? a.rows : std::min(static_cast<std::size_t>(at - a.first.begin()), a.rows);
    }
    return first;
}

/// y[i] = (A · x)[i] / norm for the rows [from, to).
void multiply(const SparseMatrix& a, std::size_t from, std::size_t to, double norm, const double* x,
              double* y) {
    for (std::size_t i = from; i < to; ++i) {
        double sum = 0;
        for (std::size_t n = a.first[i]; n < a.first[i + 1]; ++n)
            sum += a.value[n] * x[a.column[n]];
        y[i] = sum / norm;
    }
}

void rescale(std::vector<double>& x) {
    double most = 0;
    for (const double value : x)
        most = std::max(most, std::abs(value));
    if (most == 0) return;
    const int exponent = std::ilogb(most);
    for (double& value : x)
        value = std::scalbn(value, -exponent);
}

class Iteration {
public:
    Iteration(const SparseMatrix& a, std::size_t rank, std::size_t ranks)
        : a_(a), rank_(rank), first_(share_rows(a, ranks)), norm_(norm_of(a)), y_(a.rows) {
        for (std::size_t r = 0; r < ranks; ++r)
            octets_.push_back((first_[r + 1] - first_[r]) * sizeof(double));
        if (norm_ == 0) norm_ = 1;
    }

    /// `exchange` brings the other ranks' parts of a vector.
    template <typename Exchange>
    std::vector<double> run(unsigned iterations, Exchange&& exchange) {
        std::vector<double> x(a_.rows);
        for (std::size_t i = 0; i < x.size(); ++i)
            x[i] = 1.0 / static_cast<double>(i + 1);
        for (unsigned n = 1; n <= iterations; ++n) {
            multiply(a_, first_[rank_], first_[rank_ + 1], norm_, x.data(), y_.data());
            exchange(y_.data(), octets_.data());
            x.swap(y_);
            if (n % kRescaleEvery == 0) rescale(x);
        }
        return x;
    }

private:
    const SparseMatrix& a_;
    std::size_t rank_;
    std::vector<std::size_t> first_;
    std::vector<std::size_t> octets_;  ///< length of each rank's part of a vector
    double norm_;
    std::vector<double> y_;
};

Times timed_run(Job& job, const Options& options, Iteration& iteration, std::vector<double>& x) {
    job.barrier();
    Stopwatch watch;
    x = iteration.run(options.iterations, [&](double* vector, const std::size_t* octets) {
        watch.communicate([&] { job.allgather_in_place(vector, octets); });
    });
    Times times = watch.stop();
    times.whole /= options.iterations;
    times.communicate /= options.iterations;
    return slowest(job, times);
}

/// Compares with the same computed alone. Called by rank 0.
int check(const Options& options, const SparseMatrix& a, const Times& ours,
          const std::vector<double>& x) {
    Iteration alone(a, 0, 1);
    std::vector<double> reference;
    std::vector<Times> runs;
    for (unsigned i = 0; i < options.repeat; ++i) {
        Stopwatch watch;
        reference = alone.run(options.iterations, [](double*, const std::size_t*) {});
        runs.push_back(watch.stop());
    }
    const double one = median(std::move(runs)).whole / options.iterations;
    std::printf("one process: %.3f ms an iteration; speed-up %.2f\n", one * 1e3, one / ours.whole);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] == reference[i]) continue;
        std::fprintf(stderr, "WRONG: x(%zu) is %.17g but %.17g on one process\n", i + 1, x[i],
                     reference[i]);
        return 1;
    }
    std::printf("check: ok, all %zu elements agree bit by bit\n", x.size());
    return 0;
}

int run(Job& job, const Options& options) {
    SparseMatrix a;
    MatrixError error = read_matrix_market_file(options.file, a);
    if (error.what.empty() && a.rows != a.columns)
        error.what = options.file + ": x ← A·x needs a square matrix, not " +
                     std::to_string(a.rows) + " x " + std::to_string(a.columns);
    const double sizes[] = {static_cast<double>(a.rows), static_cast<double>(a.value.size())};
    if (!agree(job, error.what, hash_of(a.value, hash_of(sizes)))) return 1;

    job.emulate_broadcast(options.unicast);
    Iteration iteration(a, job.rank(), job.size());
    std::vector<double> x;
    std::vector<Times> runs;
    for (unsigned i = 0; i < options.repeat; ++i)
        runs.push_back(timed_run(job, options, iteration, x));
    return conclude(job, std::move(runs), [&](const Times& times) {
        std::printf("spmv: %zu unknowns, %zu entries, %u rank%s, %s\n", a.rows, a.value.size(),
                    unsigned{job.size()}, job.size() == 1 ? "" : "s", options.broadcast());
        print_times("an iteration", times, options.repeat);
        return check(options, a, times, x);
    });
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    ulc::tools::CommandLine app(
        "Iterated product of a vector with a sparse Matrix Market file on all ranks of a job (URTP "
        "§5).\n"
        "On 4 ranks: ulc run -n 4 ulc-spmv A.mtx      (tools/mtx-gen --density makes samples)");
    app.add_option("A", options.file,
                   "square matrix, a Matrix Market file that every rank can read")
        .required();
    app.add_option("-i,--iterations", options.iterations, "products in a row")
        .range(1U, 1'000'000U)
        .capture_default_str();
    add_options(app, options);
    if (const auto status = app.parse(argc, argv)) return *status;
    return run_in_job("ulc-spmv", [&](Job& job) { return run(job, options); });
}
