// The subcommands of `ulc`: each adds itself to the parser; the one that was asked for runs and sets *exit_code.
#pragma once

#include <CLI/CLI.hpp>

namespace ulc::tools {

void add_run_command(CLI::App& app, int* exit_code);
void add_switch_command(CLI::App& app, int* exit_code);
void add_stat_command(CLI::App& app, int* exit_code);
void add_ping_command(CLI::App& app, int* exit_code);
void add_tune_command(CLI::App& app, int* exit_code);
void add_doctor_command(CLI::App& app, int* exit_code);

}  // namespace ulc::tools
