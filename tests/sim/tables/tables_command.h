// SPDX-License-Identifier: BSD-3-Clause
// `ulc-sim tables`: the papers' tables next to ours.
#pragma once

namespace ulc::tools {
class Command;
}

namespace ulc::sim {

/// Adds the sub-command; when it is called, it sets *exit_code.
void add_tables_command(tools::Command& app, int* exit_code);

}  // namespace ulc::sim
