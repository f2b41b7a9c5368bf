// SPDX-License-Identifier: BSD-3-Clause
// ulc-sim: whole clusters of real engine objects in virtual time. docs/man/ulc-sim.1,
// tests/sim/README.md.

#include "tests/sim/cli/commands.h"
#include "tests/sim/schedule/check_schedule_command.h"
#include "tests/sim/tables/tables_command.h"
#include "tests/sim/tuning/tune_command.h"
#include "tools/shared/command_line.h"

int main(int argc, char** argv) {
    using ulc::sim::CheckOptions;
    using ulc::sim::RunOptions;
    ulc::tools::CommandLine app(
        "Simulates clusters of real engines, clients and collectives in virtual time.");
    app.require_subcommand();

    CheckOptions check;
    ulc::tools::Command check_app =
        app.add_subcommand("check", "runs random scenarios and judges them by an oracle");
    check_app.add_option("--seeds", check.seeds, "how many scenarios")
        .range(std::uint64_t{1}, std::uint64_t{1'000'000'000})
        .capture_default_str();
    check_app.add_option("--first", check.first, "the first seed").capture_default_str();
    check_app.add_option("--jobs", check.jobs, "worker processes")
        .range(1U, 256U)
        .capture_default_str();
    check_app.add_flag("--verbose", check.verbose,
                       "a line for each seed, with a digest of its frames");
    check_app.add_flag("--liveness", check.liveness,
                       "stopped nodes and wires that are never healed: both ends must agree");
    check_app.add_flag("--busy", check.busy,
                       "nodes that lose their processor: no job may end for it");

    RunOptions run;
    ulc::tools::Command run_app =
        app.add_subcommand("run", "runs one scenario and prints its figures");
    run_app.add_option("scenario", run.scenario, "a TOML file").required();
    run_app.add_option("--seed", run.seed, "instead of the scenario's; 0: the scenario's");
    run_app.add_option("--trace", run.trace, "write every frame at every node as pcapng");

    int exit_code = 2;
    ulc::sim::add_tables_command(app, &exit_code);
    ulc::sim::add_tune_command(app, &exit_code);
    ulc::sim::add_check_schedule_command(app, &exit_code);

    if (const auto status = app.parse(argc, argv)) return *status;
    if (run_app.is_parsed()) return run_command(run);
    if (check_app.is_parsed()) return check_command(check);
    return exit_code;
}
