// SPDX-License-Identifier: BSD-3-Clause
// Red/black successive over-relaxation of the Laplace equation on shared memory (Express §5): the
// rows are dealt to the processes in blocks of pages. In each half step a process updates its
// points of one colour from neighbours of the other, then all meet in a barrier.
//
// Checked against plain loops in one process, bit by bit: a point depends on the half steps alone.

#include <bit>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "bench/apps/dsm/memory.h"
#include "bench/apps/ranks.h"
#include "bench/apps/sor/grid.h"
#include "tools/shared/command_line.h"

namespace {

using namespace ulc::sor;

constexpr double kPolledInPaper = 94;  ///< % of the messages, Express table 4

struct Options {
    Size size;
    unsigned iterations = 50;
    bool polls_only = false;
    bool pages_first = false;
};

/// Runs the same loops in one process. Returns the seconds that the iterations took.
double alone(const Options& options) {
    std::vector<double> points(options.size.points());
    const Grid grid{points.data(), options.size};
    const Block all{0, options.size.rows};
    fill(grid, all);
    const ulc::bench::Stopwatch watch;
    for (unsigned half = 0; half < 2 * options.iterations; ++half)
        relax(grid, all, half % 2);
    return watch.stop().whole;
}

int report(const Grid& shared, const ulc::dsm::Report& all, const Options& options) {
    const double one = alone(options);
    const std::vector<double> expected = plain_result(options.size, options.iterations);
    std::printf("sor: %zu x %zu points, %u iterations, %u processes%s\n", options.size.rows,
                options.size.columns, options.iterations, ulc::dsm::processes(),
                options.polls_only ? ", by polling only" : "");
    std::printf("time: %.3f ms an iteration; one process: %.3f ms; speed-up %.2f\n",
                all.seconds * 1e3 / options.iterations, one * 1e3 / options.iterations,
                one / all.seconds);
    ulc::dsm::print(all.counts, "an iteration and process",
                    double{1} * options.iterations * ulc::dsm::processes(), kPolledInPaper);
    for (std::size_t row = 0; row < options.size.rows; ++row) {
        for (std::size_t column = 0; column < options.size.columns; ++column) {
            const double& wanted = expected[row * options.size.columns + column];
            const double& found = shared.at(row, column);
            if (std::bit_cast<std::uint64_t>(wanted) == std::bit_cast<std::uint64_t>(found))
                continue;
            std::fprintf(stderr, "WRONG: row %zu, column %zu is %.17g, not %.17g\n", row, column,
                         found, wanted);
            return 1;
        }
    }
    std::printf("check: ok, all %zu points agree bit by bit with one process\n",
                options.size.rows * options.size.columns);
    return 0;
}

/// Fetches the pages of a half step, then meets the others: so all communicate, or all compute.
void fetch_pages(const Grid& grid, const Block& block, unsigned colour) {
    each_shared_line(grid, block, colour, [](volatile double* line, bool writes) {
        const double value = line[0];
        if (writes) line[0] = value;
    });
    if (!ulc::dsm::barrier()) std::fprintf(stderr, "sor: a process is gone\n");
}

int run(const Options& options) {
    const std::size_t bytes = options.size.points() * sizeof(double);
    const std::size_t pages = (bytes + kPage - 1) / kPage;
    void* const memory = ulc::dsm::start(pages * kPage + ulc::dsm::kReportBytes);
    if (memory == nullptr) return 1;
    if (options.polls_only) ulc::dsm::poll_only();
    const Grid grid{static_cast<double*>(memory), options.size};
    const Block block = block_of(options.size, ulc::dsm::process(), ulc::dsm::processes());
    fill(grid, block);
    const auto all = ulc::dsm::measure(static_cast<char*>(memory) + pages * kPage,
                                       2 * options.iterations, [&](unsigned half) {
                                           if (options.pages_first)
                                               fetch_pages(grid, block, half % 2);
                                           relax(grid, block, half % 2);
                                       });
    if (!all) return 1;
    const int status = ulc::dsm::process() == 0 ? report(grid, *all, options) : 0;
    return ulc::dsm::stop() ? status : 1;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    ulc::tools::CommandLine app(
        "Red/black over-relaxation on distributed shared memory by libexpress (Express §5).\n"
        "On 4 processes: ulc run -n 4 ulc-sor");
    app.add_option("--rows", options.size.rows).range(3U, 100'000U).capture_default_str();
    app.add_option("--columns", options.size.columns).range(3U, 100'000U).capture_default_str();
    app.add_option("-i,--iterations", options.iterations)
        .range(1U, 1'000'000U)
        .capture_default_str();
    app.add_flag("--polls-only", options.polls_only, "messages interrupt no thread (table 5)");
    app.add_flag("--pages-first", options.pages_first,
                 "a half step fetches its pages, then meets in a barrier, then computes");
    if (const auto status = app.parse(argc, argv)) return *status;
    return run(options);
}
