// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of `ulc`. Each adds itself to the parser; the one that is named runs and sets
// *exit_code.
#pragma once

namespace ulc::tools {

class Command;

/// Stands for "--" in the words of `ulc run` (words_of() in ulc.cc). No program has this name.
inline constexpr const char* kProgramFollows = "\x1e--";

void add_run_command(Command& app, int* exit_code);
void add_cluster_command(Command& app, int* exit_code);
void add_switch_command(Command& app, int* exit_code);
void add_stat_command(Command& app, int* exit_code);
void add_top_command(Command& app, int* exit_code);
void add_exporter_command(Command& app, int* exit_code);
void add_ping_command(Command& app, int* exit_code);
void add_tune_command(Command& app, int* exit_code);
void add_env_command(Command& app, int* exit_code);
void add_upgrade_command(Command& app, int* exit_code);
/// Adds `ulc trace` and `ulc dump`.
void add_trace_commands(Command& app, int* exit_code);
void add_doctor_command(Command& app, int* exit_code);

}  // namespace ulc::tools
