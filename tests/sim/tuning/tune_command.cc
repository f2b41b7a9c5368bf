// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tuning/tune_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "coll/tuning/candidates.h"
#include "coll/tuning/decide.h"
#include "coll/tuning/report.h"
#include "tests/sim/tuning/sim_tuning.h"

namespace ulc::sim {
namespace {

struct TuneOptions {
    TuningGrid grid;
    std::vector<std::string> ops;
    std::vector<std::string> media;
    std::string output;
    unsigned jobs = 1;
};

constexpr const char* kComment =
    "Selection table, measured in the simulator at 100 Mb/s. Switch: stores and forwards, 5 us; "
    "the\n"
    "slower of as much buffer as it takes and of 64 KiB a port; shallow: 32 KiB a port; ideal "
    "hosts.\n"
    "Hub: hosts of GAMMA 0.4. All ranks begin at once, the root goes round, the time is that of "
    "the\n"
    "last rank; medians. What takes 16 times the best of a size is left out of greater ones. "
    "Rules:\n"
    "the fewest that lose no more than 8 % in any cell, or its noise. Made, not written, by:\n";

/// Measures all columns on `jobs` threads; cells come in the order of columns, independent of the
/// threads' order.
std::vector<coll::Cell> measure_all(const std::vector<TuningColumn>& columns, unsigned jobs) {
    std::vector<std::vector<coll::Cell>> found(columns.size());
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> done{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < columns.size(); i = next++) {
            found[i] = measure(columns[i]);
            const coll::Situation& at = columns[i].at;
            fmt::print(stderr, "{}/{} {} {} {} ranks, {} a node\n", ++done, columns.size(),
                       coll::name_of(at.op), name_of(at.medium), at.ranks, at.per_node);
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < jobs; ++i)
        threads.emplace_back(work);
    work();
    for (std::thread& thread : threads)
        thread.join();
    std::vector<coll::Cell> cells;
    for (const auto& column : found)
        cells.insert(cells.end(), column.begin(), column.end());
    return cells;
}

std::string command_of(const TuningGrid& grid) {
    std::string command = "ulc-sim tune";
    for (const coll::Op op : grid.ops)
        command += " " + std::string(coll::name_of(op));
    command += " --medium";
    for (const ulc::Medium medium : grid.media)
        command += " " + std::string(name_of(medium));
    return command + fmt::format(" --ranks {} --per-node {}", fmt::join(grid.ranks, " "),
                                 fmt::join(grid.per_node, " "));
}

int tune(TuneOptions& options) {
    for (const std::string& name : options.ops)
        for (const coll::Candidates& one : coll::candidates())
            if (coll::name_of(one.op) == name) options.grid.ops.push_back(one.op);
    if (!options.media.empty()) options.grid.media.clear();
    for (const std::string& name : options.media) {
        ulc::Medium medium{};
        if (medium_of(name, medium)) options.grid.media.push_back(medium);
    }
    coll::TableText table;
    table.source = command_of(options.grid);
    table.cells = measure_all(columns_of(options.grid), options.jobs);
    coll::round_as_written(table.cells);
    table.rules = coll::decide(table.cells, coll::Reach::kEverything, nullptr);
    if (options.output.empty()) {
        fmt::print("{}", coll::explain(table));
        return 0;
    }
    std::ofstream file(options.output);
    file << coll::write_table(table, std::string(kComment) + table.source);
    if (file.close(); file.good()) return 0;
    fmt::print(stderr, "ulc-sim: cannot write {}; is there space, and may you write there?\n",
               options.output);
    return 1;
}

}  // namespace

void add_tune_command(CLI::App& app, int* exit_code) {
    auto options = std::make_shared<TuneOptions>();
    auto* command = app.add_subcommand(
        "tune", "measures the algorithms of collectives and makes a selection table");
    std::vector<std::string> ops;
    for (const coll::Candidates& one : coll::candidates())
        ops.emplace_back(coll::name_of(one.op));
    command->add_option("operation", options->ops, "only these; all if none is given")
        ->check(CLI::IsMember(ops));
    command->add_option("--medium", options->media, "switch, shallow, hub; all three if not given")
        ->check(CLI::IsMember({"switch", "shallow", "hub"}));
    command->add_option("--ranks", options->grid.ranks, "numbers of ranks")
        ->check(CLI::Range(2, 256))
        ->capture_default_str();
    command->add_option("--per-node", options->grid.per_node, "ranks a node")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    command->add_option("--jobs", options->jobs, "threads")
        ->check(CLI::Range(1U, 256U))
        ->capture_default_str();
    command->add_option("--output", options->output,
                        "write a table here; else print each choice with its measurement");
    command->callback([options, exit_code] { *exit_code = tune(*options); });
}

}  // namespace ulc::sim
