// SPDX-License-Identifier: BSD-3-Clause
// Red/black successive over-relaxation of the Laplace equation on shared memory (Express §5): the
// rows are dealt to the processes in blocks of pages. In each half step a process updates its
// points of one colour from neighbours of the other, then all meet in a barrier.
//
// Checked against plain loops in one process, bit by bit: a point depends on the half steps alone.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "bench/apps/dsm/memory.h"
#include "bench/apps/ranks.h"

namespace {

constexpr double kOmega = 1.5;
constexpr double kPolledInPaper = 94;  ///< % of the messages, Express table 4
constexpr std::size_t kPage = 4096;

struct Options {
    std::size_t rows = 512;
    std::size_t columns = 256;
    unsigned iterations = 50;
    bool polls_only = false;
};

/// The values at the start: a hot top, a warm left side, and an inside that is uneven.
double initial(std::size_t row, std::size_t column) {
    if (row == 0) return 100;
    if (column == 0) return static_cast<double>(row % 7);
    return static_cast<double>((row * 31 + column * 17) % 11) / 11;
}

/// A separate array for each colour, row by row. So no page is written in a half step in which
/// another process reads it.
struct Grid {
    double* points;
    std::size_t rows, columns, half;  ///< half: points of a colour in a row

    Grid(double* at, const Options& options)
        : points(at),
          rows(options.rows),
          columns(options.columns),
          half((options.columns + 1) / 2) {}

    [[nodiscard]] static std::size_t size(const Options& options) {
        return 2 * options.rows * ((options.columns + 1) / 2);
    }
    /// Row of the points whose row + column + colour is even: column 2k + (row + colour) % 2 at k.
    [[nodiscard]] double* line(unsigned colour, std::size_t row) const {
        return points + (colour * rows + row) * half;
    }
    [[nodiscard]] double& at(std::size_t row, std::size_t column) const {
        return line((row + column) % 2, row)[column / 2];
    }
};

void fill(const Grid& grid, std::size_t first, std::size_t end) {
    for (std::size_t row = first; row < end; ++row)
        for (std::size_t column = 0; column < grid.columns; ++column)
            grid.at(row, column) = initial(row, column);
}

/// Updates the inner points of one colour in rows first … end − 1.
void relax(const Grid& grid, std::size_t first, std::size_t end, unsigned colour) {
    for (std::size_t row = std::max<std::size_t>(first, 1); row < std::min(end, grid.rows - 1);
         ++row) {
        const std::size_t offset = (row + colour) % 2;
        double* const own = grid.line(colour, row);
        const double* const beside = grid.line(1 - colour, row);
        const double* const above = grid.line(1 - colour, row - 1);
        const double* const below = grid.line(1 - colour, row + 1);
        for (std::size_t k = 1 - offset; 2 * k + offset + 1 < grid.columns; ++k) {
            const double around = above[k] + below[k] + beside[k + offset - 1] + beside[k + offset];
            own[k] += kOmega * (around / 4 - own[k]);
        }
    }
}

/// Runs the same loops in one process. Returns the seconds that the iterations took.
double alone(const Options& options) {
    std::vector<double> points(Grid::size(options));
    const Grid grid(points.data(), options);
    fill(grid, 0, options.rows);
    const ulc::bench::Stopwatch watch;
    for (unsigned half = 0; half < 2 * options.iterations; ++half)
        relax(grid, 0, options.rows, half % 2);
    return watch.stop().whole;
}

/// The result by rows and columns, written without colours' arrays.
std::vector<double> plain_result(const Options& options) {
    const std::size_t width = options.columns;
    std::vector<double> u(options.rows * width);
    for (std::size_t row = 0; row < options.rows; ++row)
        for (std::size_t column = 0; column < width; ++column)
            u[row * width + column] = initial(row, column);
    for (unsigned half = 0; half < 2 * options.iterations; ++half) {
        for (std::size_t row = 1; row + 1 < options.rows; ++row) {
            for (std::size_t column = 1; column + 1 < width; ++column) {
                if ((row + column) % 2 != half % 2) continue;
                double* const at = &u[row * width + column];
                const double around =
                    at[-static_cast<std::ptrdiff_t>(width)] + at[width] + at[-1] + at[1];
                *at += kOmega * (around / 4 - *at);
            }
        }
    }
    return u;
}

int report(const Grid& shared, const ulc::dsm::Report& all, const Options& options) {
    const double one = alone(options);
    const std::vector<double> expected = plain_result(options);
    std::printf("sor: %zu x %zu points, %u iterations, %u processes%s\n", options.rows,
                options.columns, options.iterations, ulc::dsm::processes(),
                options.polls_only ? ", by polling only" : "");
    std::printf("time: %.3f ms an iteration; one process: %.3f ms; speed-up %.2f\n",
                all.seconds * 1e3 / options.iterations, one * 1e3 / options.iterations,
                one / all.seconds);
    ulc::dsm::print(all.counts, "an iteration and process",
                    double{1} * options.iterations * ulc::dsm::processes(), kPolledInPaper);
    for (std::size_t row = 0; row < options.rows; ++row) {
        for (std::size_t column = 0; column < options.columns; ++column) {
            const double& wanted = expected[row * options.columns + column];
            const double& found = shared.at(row, column);
            if (std::bit_cast<std::uint64_t>(wanted) == std::bit_cast<std::uint64_t>(found))
                continue;
            std::fprintf(stderr, "WRONG: row %zu, column %zu is %.17g, not %.17g\n", row, column,
                         found, wanted);
            return 1;
        }
    }
    std::printf("check: ok, all %zu points agree bit by bit with one process\n",
                options.rows * options.columns);
    return 0;
}

int run(const Options& options) {
    const std::size_t bytes = Grid::size(options) * sizeof(double);
    const std::size_t pages = (bytes + kPage - 1) / kPage;
    void* const memory = ulc::dsm::start(pages * kPage + ulc::dsm::kReportBytes);
    if (memory == nullptr) return 1;
    if (options.polls_only) ulc::dsm::poll_only();
    const Grid grid(static_cast<double*>(memory), options);
    // Whole pages to each, if rows fit into pages.
    const std::size_t unit = std::max<std::size_t>(1, kPage / (grid.half * sizeof(double)));
    const std::size_t units = (options.rows + unit - 1) / unit;
    const auto edge = [&](unsigned n) {
        return std::min(options.rows, units * n / ulc::dsm::processes() * unit);
    };
    const std::size_t first = edge(ulc::dsm::process());
    const std::size_t end = edge(ulc::dsm::process() + 1);
    fill(grid, first, end);
    const auto all =
        ulc::dsm::measure(static_cast<char*>(memory) + pages * kPage, 2 * options.iterations,
                          [&](unsigned half) { relax(grid, first, end, half % 2); });
    if (!all) return 1;
    const int status = ulc::dsm::process() == 0 ? report(grid, *all, options) : 0;
    return ulc::dsm::stop() ? status : 1;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(
        "Red/black over-relaxation on distributed shared memory by libexpress (Express §5).\n"
        "On 4 processes: ulc run -n 4 ulc-sor");
    app.add_option("--rows", options.rows)->check(CLI::Range(3U, 100'000U))->capture_default_str();
    app.add_option("--columns", options.columns)
        ->check(CLI::Range(3U, 100'000U))
        ->capture_default_str();
    app.add_option("-i,--iterations", options.iterations)
        ->check(CLI::Range(1U, 1'000'000U))
        ->capture_default_str();
    app.add_flag("--polls-only", options.polls_only, "messages interrupt no thread (table 5)");
    CLI11_PARSE(app, argc, argv);
    return run(options);
}
