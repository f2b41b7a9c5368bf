// SPDX-License-Identifier: BSD-3-Clause
// ulc tune: measures the algorithms of collectives on a job and writes a selection table;
// --explain prints the choices of one with their measurements. It is a rank of a job, as `ulc
// ping` is; with -n it starts the job by `ulc run`.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

#include "coll/selection.h"
#include "coll/tuning/decide.h"
#include "coll/tuning/report.h"
#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/programs.h"
#include "tools/ulc/run/job_link.h"
#include "tools/ulc/tune/files.h"
#include "tools/ulc/tune/measure.h"

namespace ulc::tools {
namespace {

struct TuneOptions {
    JobOptions job;
    TuneLimits limits;
    std::vector<std::string> ops;
    std::string output = "ulc-selection.toml";
    std::string explain;
    std::vector<std::string> merge;
    bool explains = false;
    bool afresh = false;
    unsigned ranks = 0;
    unsigned nodes = 0;
    bool embedded = false;
};

int explain(const std::string& path) {
    coll::TableText table;
    if (path.empty()) {
        table = shipped_table();
    } else if (const std::string mistake = read_table(path, table); !mistake.empty()) {
        fmt::print(stderr, "ulc tune: {}\n", mistake);
        return 2;
    }
    fmt::print(
        "Source: {}. Each rule is shown with the measurement in which it gains least, and with the "
        "time that the other algorithms take more there.\n\n{}",
        table.source.empty() ? "not said" : table.source, coll::explain(table));
    return 0;
}

/// Set for ranks that `ulc tune -n` starts from a terminal: their stderr is a pipe.
constexpr const char* kOnTerminal = "ULC_TUNE_ON_TERMINAL";

struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

/// Becomes `ulc run` with this command as its program.
int start_job(const TuneOptions& options) {
    const std::string self = own_folder() + "/ulc";
    std::vector<std::string> words{self, "run", "-n", std::to_string(options.ranks)};
    if (options.nodes > 0) words.insert(words.end(), {"--nodes", std::to_string(options.nodes)});
    if (options.embedded) words.emplace_back("--embedded");
    words.insert(words.end(), {self, "tune", "--output", options.output, "--seconds",
                               fmt::format("{}", options.limits.seconds), "--bytes-max",
                               std::to_string(options.limits.octets_max)});
    words.insert(words.end(), options.ops.begin(), options.ops.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    if (::isatty(STDERR_FILENO) != 0)
        ::setenv(kOnTerminal, "1", 1);  // NOLINT(concurrency-mt-unsafe): one thread
    ::execv(self.c_str(), argv.data());
    fmt::print(stderr, "ulc tune: cannot start {}; run instead: ulc run -n {} ulc tune\n", self,
               options.ranks);
    return 1;
}

int write(const TuneOptions& options, coll::TableText& table, unsigned left_out) {
    std::ofstream file(options.output);
    file << coll::write_table(table,
                              "Selection table, measured on a job by ulc tune: medians of batches "
                              "in turns, the time of the last rank.\n"
                              "A choice that ships is kept if no other is faster by more than the "
                              "noise. Set ULC_COLL_TABLE to this\n"
                              "file at every rank. Print its choices: ulc tune --explain FILE.");
    file.close();
    if (!file.good()) {
        fmt::print(stderr, "ulc tune: cannot write {}; free space there, or name another file\n",
                   options.output);
        return 1;
    }
    fmt::print("{}", coll::explain(table));
    if (left_out > 0) {
        fmt::print(
            "\n{} columns were not measured, since the time ran out; raise --seconds, or name "
            "operations.\n",
            left_out);
    }
    fmt::print("\n{} rules of {} measurements in {}. To use them: export ULC_COLL_TABLE={}\n",
               table.rules.size(), table.cells.size(), options.output, options.output);
    return 0;
}

int tune(TuneOptions& options) {
    for (const std::string& name : options.ops)
        for (const coll::Candidates& one : coll::candidates())
            if (coll::name_of(one.op) == name) options.limits.ops.push_back(one.op);
    JobLink link("ulc tune", options.job);
    if (!link.join()) return 1;
    std::unique_ptr<std::FILE, CloseFile> terminal;
    if (!environment_of(kOnTerminal).empty()) terminal.reset(std::fopen("/dev/tty", "we"));
    options.limits.progress = terminal.get();
    if (::isatty(STDERR_FILENO) != 0) options.limits.progress = stderr;
    TuneMeasure measure(link.endpoint(), options.limits);
    if (link.failed("cannot make groups", measure.make_groups())) return 1;
    coll::TableText table;
    table.source = fmt::format("ulc tune, {} ranks", link.size());
    const int error = link.rank() == 0 ? measure.lead(table.cells) : measure.follow();
    if (link.failed("a collective failed", error) || !link.leave()) return 1;
    if (link.rank() != 0) return 0;
    if (table.cells.empty()) {
        fmt::print(stderr, "ulc tune: no time for a single measurement; give more --seconds\n");
        return 1;
    }
    coll::round_as_written(table.cells);
    table.rules = coll::decide(table.cells, coll::Reach::kMeasured, &coll::shipped());
    return write(options, table, measure.left_out());
}

/// One table of the measurements of several.
int merge(const TuneOptions& options) {
    coll::TableText all;
    for (const std::string& path : options.merge) {
        coll::TableText one;
        if (const std::string mistake = read_table(path, one); !mistake.empty()) {
            fmt::print(stderr, "ulc tune: {}\n", mistake);
            return 2;
        }
        all.source += (all.source.empty() ? "" : "; ") + one.source;
        std::ranges::move(one.cells, std::back_inserter(all.cells));
    }
    all.cells = coll::one_of_each(all.cells);
    coll::round_as_written(all.cells);
    all.rules = coll::decide(all.cells, coll::Reach::kMeasured,
                             options.afresh ? nullptr : &coll::shipped());
    return write(options, all, 0);
}

}  // namespace

void add_tune_command(Command& app, int* exit_code) {
    auto options = std::make_shared<TuneOptions>();
    auto command = app.add_subcommand(
        "tune", "Measure the algorithms of collectives, and write or explain a selection table");
    std::vector<std::string> ops;
    for (const coll::Candidates& one : coll::candidates())
        ops.emplace_back(coll::name_of(one.op));
    command.add_option("operation", options->ops, "Only these; all if none is given").one_of(ops);
    command
        .add_option_function(
            "--explain",
            [options](const std::string& path) {
                options->explains = true;
                options->explain = path;
            },
            "Print each choice of a table with its measurements; without FILE, of the tables that "
            "ship")
        .expected(0, 1)
        .type_name("[FILE]")
        .trigger_on_parse();
    command.add_option(
        "--merge", options->merge,
        "Make one table of several; several measurements of one case count by their mean");
    command.add_flag("--afresh", options->afresh,
                     "With --merge: choose without regard to the tables that ship");
    command.add_option("-o,--output", options->output, "The table (ulc-selection.toml)");
    command
        .add_option("--seconds", options->limits.seconds,
                    "Time for all measurements, as 90 or 5min (60s)")
        .time(kSecond, 100 * kMillisecond, 24 * 3600 * kSecond);
    command
        .add_option("--bytes-max,--octets-max", options->limits.octets_max,
                    "Length of the largest vector or block to measure (65536)")
        .range(std::uint64_t{8}, std::uint64_t{1} << 20);
    const std::string here = "A cluster on this machine";
    command.add_option("-n,--ranks", options->ranks, "Start this number of ranks by ulc run")
        .range(2U, 512U)
        .group(here);
    command.add_option("--nodes", options->nodes, "On this number of nodes, as of ulc run")
        .group(here);
    command.add_flag("--embedded", options->embedded, "Each with its engine inside").group(here);
    add_job_options(command, options->job);
    command.footer(
        "On this machine:       ulc tune -n 4 --nodes 4\n"
        "On a cluster, as each rank of a job:  ulc tune --job tune --rank R --size N\n"
        "Then:                  export ULC_COLL_TABLE=ulc-selection.toml");
    command.callback([options, exit_code] {
        if (options->explains)
            *exit_code = explain(options->explain);
        else if (!options->merge.empty())
            *exit_code = merge(*options);
        else
            *exit_code = options->ranks > 0 ? start_job(*options) : tune(*options);
    });
}

}  // namespace ulc::tools
