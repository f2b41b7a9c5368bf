// SPDX-License-Identifier: BSD-3-Clause
// Linpack: A·x = b by LU factorisation with partial pivoting, on columns dealt to the ranks in
// blocks of 64, cyclically (GAMMA §6.2). Only the owner of the next panel ever sends, so the
// traffic is a sequence of broadcasts:
//
//   for each panel k:   its owner factors it ──broadcast──▶ all
//                       all apply it to their columns behind it, and to b
//   for each panel k, from the last:   its owner solves for its part of x and passes b to the
//                                      owner before it
//
// The right-hand side is at every rank and takes part in the factorisation, so no forward
// substitution is left. Checked by the usual residual: |A·x - b| / (eps · (|A|·|x| + |b|) · order)
// in the maximum norm, at most 16.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "bench/apps/lu.h"
#include "bench/apps/matrix_market.h"
#include "bench/apps/ranks.h"
#include "tools/shared/command_line.h"

namespace {

using namespace ulc::bench;

constexpr double kResidualMax = 16;

struct Options : RunOptions {
    std::string file;
    std::size_t order = 1000;
    std::uint64_t seed = 1;
};

/// The system: A from a file, or of numbers that depend on their place and the seed alone; b is
/// such numbers.
class System {
public:
    System(const Options& options, Matrix from_file)
        : seed_(options.seed),
          matrix_(std::move(from_file)),
          order_(options.file.empty() ? options.order : matrix_.rows) {}
    [[nodiscard]] std::size_t order() const { return order_; }
    [[nodiscard]] double a(std::size_t i, std::size_t j) const {
        return matrix_.values.empty() ? number(j * order_ + i) : matrix_.at(i, j);
    }
    [[nodiscard]] double b(std::size_t i) const { return number(order_ * order_ + i); }

private:
    /// Uniform in [-0.5, 0.5): the finaliser of splitmix64 on the n-th step of its counter (Steele,
    /// Lea, Flood 2014).
    [[nodiscard]] double number(std::uint64_t n) const {
        std::uint64_t z = (seed_ << 40) + (n + 1) * 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        z ^= z >> 31;
        return static_cast<double>(z >> 11) * 0x1p-53 - 0.5;
    }
    std::uint64_t seed_;
    Matrix matrix_;
    std::size_t order_;
};

/// One rank's columns: block k of the matrix is its block k / ranks if k mod ranks is the rank.
class Solver {
public:
    /// job nullptr: alone.
    Solver(const System& system, Job* job)
        : system_(system),
          job_(job),
          rank_(job != nullptr ? job->rank() : 0U),
          ranks_(job != nullptr ? job->size() : 1U),
          order_(system.order()),
          blocks_((order_ + kPanelColumns - 1) / kPanelColumns) {}

    /// False: singular, at all ranks alike. Else x is the solution, at all ranks.
    bool run(Stopwatch& watch, std::vector<double>& x) {
        for (std::size_t k = 0; k < blocks_; ++k) {
            panel_.resize(k * kPanelColumns, order_);
            if (owner(k) == rank_) factor_own(k);
            exchange(watch,
                     [&] { job_->broadcast(panel_.data.data(), panel_.octets(), owner(k)); });
            if (singular(panel_)) return false;
            const std::size_t done = blocks_before(k + 1);
            apply(panel_, order_, local_columns() - std::min(done * kPanelColumns, local_columns()),
                  block(done));
            apply(panel_, order_, 1, b_.data());
        }
        for (std::size_t k = blocks_; k-- > 0;)
            solve_block(watch, k);
        exchange(watch, [&] { job_->broadcast(b_.data(), order_ * sizeof(double)); });
        x = b_;
        return true;
    }

    /// Puts the system's numbers into the own columns, before each run().
    void load() {
        local_.resize(order_ * local_columns());
        for (std::size_t k = rank_; k < blocks_; k += ranks_) {
            double* column = block(k / ranks_);
            for (std::size_t j = k * kPanelColumns; j < std::min((k + 1) * kPanelColumns, order_);
                 ++j)
                for (std::size_t i = 0; i < order_; ++i)
                    *column++ = system_.a(i, j);
        }
        b_.resize(order_);
        for (std::size_t i = 0; i < order_; ++i)
            b_[i] = system_.b(i);
    }

private:
    [[nodiscard]] std::uint16_t owner(std::size_t k) const {
        return static_cast<std::uint16_t>(k % ranks_);
    }
    /// Own blocks among the first k of the matrix.
    [[nodiscard]] std::size_t blocks_before(std::size_t k) const {
        return k / ranks_ + (rank_ < k % ranks_ ? 1 : 0);
    }
    [[nodiscard]] std::size_t local_columns() const {
        const bool has_last = owner(blocks_ - 1) == rank_;
        return blocks_before(blocks_) * kPanelColumns -
               (has_last ? blocks_ * kPanelColumns - order_ : 0);
    }
    [[nodiscard]] double* block(std::size_t own) {
        return local_.data() + own * kPanelColumns * order_;
    }

    void factor_own(std::size_t k) {
        double* const from = block(k / ranks_);
        for (std::size_t j = 0; j < panel_.columns; ++j)
            std::copy_n(from + j * order_ + panel_.first, panel_.rows,
                        panel_.values() + j * panel_.rows);
        factor(panel_);
        for (std::size_t j = 0; j < panel_.columns; ++j)  // U, for the end
            std::copy_n(panel_.values() + j * panel_.rows, panel_.rows,
                        from + j * order_ + panel_.first);
    }
    void solve_block(Stopwatch& watch, std::size_t k) {
        const std::size_t first = k * kPanelColumns;
        if (owner(k) == rank_)
            back_substitute(first, std::min(kPanelColumns, order_ - first), order_,
                            block(k / ranks_), b_.data());
        if (k == 0 || ranks_ == 1) return;
        const std::size_t octets = order_ * sizeof(double);
        if (owner(k) == rank_)
            exchange(watch, [&] { job_->send(owner(k - 1), b_.data(), octets); });
        else if (owner(k - 1) == rank_)
            exchange(watch, [&] { job_->receive(owner(k), b_.data(), octets); });
    }
    template <typename Exchange>
    void exchange(Stopwatch& watch, Exchange&& what) {
        if (job_ != nullptr) watch.communicate(what);
    }

    const System& system_;
    Job* job_;
    std::size_t rank_, ranks_, order_, blocks_;
    std::vector<double> local_;  ///< order × local_columns()
    std::vector<double> b_;      ///< from the last panel on, x
    Panel panel_;
};

double residual(const System& system, const std::vector<double>& x) {
    double difference = 0;
    double norm_a = 0;
    double norm_x = 0;
    double norm_b = 0;
    for (std::size_t i = 0; i < system.order(); ++i) {
        double sum = 0;
        double row = 0;
        for (std::size_t j = 0; j < system.order(); ++j) {
            const double a = system.a(i, j);
            sum += a * x[j];
            row += std::abs(a);
        }
        difference = std::max(difference, std::abs(sum - system.b(i)));
        norm_a = std::max(norm_a, row);
        norm_x = std::max(norm_x, std::abs(x[i]));
        norm_b = std::max(norm_b, std::abs(system.b(i)));
    }
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon() / 2;
    return difference /
           (kEpsilon * (norm_a * norm_x + norm_b) * static_cast<double>(system.order()));
}

double mflops(std::size_t order, double seconds) {
    const auto n = static_cast<double>(order);
    return (2.0 / 3.0 * n * n * n + 2 * n * n) / seconds / 1e6;
}

/// Returns the exit status. Called by rank 0.
int report(const Options& options, const System& system, const Times& times,
           const std::vector<double>& x) {
    std::vector<Times> runs;
    std::vector<double> alone;
    Solver solver(system, nullptr);
    for (unsigned i = 0; i < options.repeat; ++i) {
        solver.load();
        Stopwatch watch;
        static_cast<void>(solver.run(watch, alone));
        runs.push_back(watch.stop());
    }
    const Times one = median(std::move(runs));
    std::printf("speed: %.1f MFLOPS\n", mflops(system.order(), times.whole));
    std::printf("one process: %.3f ms, %.1f MFLOPS; speed-up %.2f\n", one.whole * 1e3,
                mflops(system.order(), one.whole), one.whole / times.whole);
    const double found = residual(system, x);
    if (!(found <= kResidualMax)) {
        std::fprintf(stderr, "WRONG: the scaled residual is %g, at most %g is right\n", found,
                     kResidualMax);
        return 1;
    }
    std::printf("check: ok, scaled residual %.3g (at most %g)\n", found, kResidualMax);
    return 0;
}

int run(Job& job, const Options& options) {
    Matrix matrix;
    MatrixError error;
    if (!options.file.empty()) error = read_matrix_market_file(options.file, matrix);
    if (error.what.empty() && !options.file.empty() &&
        (matrix.rows != matrix.columns || matrix.rows == 0))
        error.what = options.file + ": a system of equations needs a square matrix, not " +
                     std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns);
    const double what[] = {static_cast<double>(options.order), static_cast<double>(options.seed)};
    if (!agree(job, error.what, hash_of(matrix.values, hash_of(what)))) return 1;
    const System system(options, std::move(matrix));

    job.emulate_broadcast(options.unicast);
    Solver solver(system, job.alone() ? nullptr : &job);
    std::vector<Times> runs;
    std::vector<double> x;
    bool solved = true;
    for (unsigned i = 0; i < options.repeat && solved; ++i) {
        solver.load();
        job.barrier();
        Stopwatch watch;
        solved = solver.run(watch, x);
        runs.push_back(slowest(job, watch.stop()));
    }
    if (!solved) {
        if (job.rank() == 0)
            std::fprintf(
                stderr,
                "the matrix is singular: there is no solution; give another matrix or --seed\n");
        return 1;
    }
    return conclude(job, std::move(runs), [&](const Times& times) {
        std::printf("linpack: order %zu, blocks of %zu columns, %u rank%s, %s\n", system.order(),
                    kPanelColumns, unsigned{job.size()}, job.size() == 1 ? "" : "s",
                    options.broadcast());
        print_times("a solution", times, options.repeat);
        return report(options, system, times, x);
    });
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    ulc::tools::CommandLine app(
        "Linpack on all ranks of a job: LU with partial pivoting, columns dealt in blocks of 64 "
        "(GAMMA §6.2).\n"
        "On 4 ranks: ulc run -n 4 ulc-linpack --order 2000");
    app.add_option(
        "A", options.file,
        "square matrix, a Matrix Market file that every rank can read; without it a random one");
    app.add_option("-n,--order", options.order, "unknowns, without a file")
        .range(std::size_t{1}, std::size_t{50'000})
        .capture_default_str();
    app.add_option("-s,--seed", options.seed, "of the random numbers").capture_default_str();
    add_options(app, options);
    if (const auto status = app.parse(argc, argv)) return *status;
    openblas_set_num_threads(1);  // the ranks are the parallelism that is measured
    return run_in_job("ulc-linpack", [&](Job& job) { return run(job, options); });
}
