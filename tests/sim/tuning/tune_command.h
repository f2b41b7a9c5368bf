// SPDX-License-Identifier: BSD-3-Clause
// ulc-sim tune: makes a selection table of what the simulator measures.
#pragma once

#include <CLI/CLI.hpp>

namespace ulc::sim {

void add_tune_command(CLI::App& app, int* exit_code);

}  // namespace ulc::sim
