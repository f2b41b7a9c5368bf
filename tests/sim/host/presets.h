// SPDX-License-Identifier: BSD-3-Clause
// Hosts by name: those of the papers, and this project's own machine. The only place that states
// their figures.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/host/costs.h"

namespace ulc::sim {

/// Returns all of them, the ideal host first. Constant.
[[nodiscard]] const std::vector<HostCosts>& host_presets();
/// Returns nothing if no host has that name.
[[nodiscard]] std::optional<HostCosts> host_preset(std::string_view name);
/// Returns the names for a message: "ideal, gamma-0.1, …".
[[nodiscard]] std::string host_preset_names();
/// Returns the 8 workstations of URTP §4.1, the slowest first.
[[nodiscard]] std::vector<HostCosts> urtp_hosts();

}  // namespace ulc::sim
