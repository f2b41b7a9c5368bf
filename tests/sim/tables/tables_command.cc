// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tables/tables_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/tables/claims/judge.h"
#include "tests/sim/tables/table_output.h"
#include "tools/shared/command_line.h"

namespace ulc::sim {
namespace {

struct Options {
    TableOptions table;
    std::vector<std::string> names;
    std::string folder;
    bool json = false;
    bool list = false;
};

int run(const Options& options) {
    if (options.list) {
        for (const TableEntry& entry : tables())
            fmt::print("{:16} {}\n", entry.name, entry.source);
        return 0;
    }
    std::vector<Table> made;
    for (const TableEntry& entry : tables()) {
        const bool wanted = options.names.empty() ||
                            std::find(options.names.begin(), options.names.end(), entry.name) !=
                                options.names.end();
        if (!wanted) continue;
        made.push_back(entry.make(options.table));
        if (const std::string fault = fault_of(made.back()); !fault.empty()) {
            fmt::print(stderr, "ulc-sim: table {}: {}\n", entry.name, fault);
            return 1;
        }
        if (!options.json) fmt::print("{}\n", text_of(made.back()));
        std::fflush(stdout);
    }
    if (options.json) fmt::print("{}", json_of(made, options.table));
    if (options.folder.empty()) return 0;
    int drawn = 0;
    const std::string problem = write_tables(made, options.table, options.folder, &drawn);
    if (!problem.empty()) {
        fmt::print(stderr, "ulc-sim: {}\n", problem);
        return 1;
    }
    fmt::print(stderr, "{}: tables.txt, tables.json, {} pictures{}\n", options.folder, drawn,
               drawn == 0 ? " (is gnuplot installed? tools/setup build)" : "");
    return 0;
}

}  // namespace

void add_tables_command(tools::Command& app, int* exit_code) {
    auto options = std::make_shared<Options>();
    auto command =
        app.add_subcommand("tables", "The papers' tables next to ours: paper, ours, deviation");
    std::vector<std::string> names;
    for (const TableEntry& entry : tables())
        names.emplace_back(entry.name);
    command.add_option("name", options->names, "Which (all)").one_of(names);
    command.add_option("--output", options->folder,
                       "A folder for tables.txt, tables.json and the pictures");
    command.add_option("--seed", options->table.seed, "Of the simulations (1)");
    command.add_flag("--quick", options->table.quick, "Fewer trials and points");
    command.add_flag("--json", options->json, "Print JSON instead");
    command.add_flag("--list", options->list, "Which there are");
    command.callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace ulc::sim
