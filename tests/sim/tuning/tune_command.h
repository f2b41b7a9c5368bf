// SPDX-License-Identifier: BSD-3-Clause
// ulc-sim tune: makes a selection table of what the simulator measures.
#pragma once

namespace ulc::tools {
class Command;
}

namespace ulc::sim {

void add_tune_command(tools::Command& app, int* exit_code);

}  // namespace ulc::sim
