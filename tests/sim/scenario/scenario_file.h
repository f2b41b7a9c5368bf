// SPDX-License-Identifier: BSD-3-Clause
// Converts a scenario file (TOML) to an experiment. docs/man/ulc-sim.1 has the keys;
// tests/sim/scenarios/ has examples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/sim/cluster/experiment.h"

namespace ulc::sim {

struct Scenario {
    std::string name;
    std::uint64_t seed = 1;
    Experiment experiment;
};

/// Reads the file. Returns an empty string if `out` is filled; else the fault as "file:line: key:
/// …", one sentence with the correction. Every key is checked; an unknown key is an error. `seed`:
/// replaces the file's unless 0.
[[nodiscard]] std::string read_scenario(const std::string& path, std::uint64_t seed, Scenario& out);
/// Reads a text in the same way. `name`: the file's name in messages.
[[nodiscard]] std::string read_scenario_text(const std::string& name, std::string_view text,
                                             std::uint64_t seed, Scenario& out);

}  // namespace ulc::sim
