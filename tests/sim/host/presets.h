// Hosts by name: those of the papers, and this project's own machine. The one place where their numbers stand.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/host/costs.h"

namespace ulc::sim {

/// All of them, the ideal host first. Constant.
[[nodiscard]] const std::vector<HostCosts>& host_presets();
/// Nothing if there is none of that name.
[[nodiscard]] std::optional<HostCosts> host_preset(std::string_view name);
/// For a message: "ideal, gamma-0.1, …".
[[nodiscard]] std::string host_preset_names();
/// The 8 workstations of URTP §4.1, the slowest first.
[[nodiscard]] std::vector<HostCosts> urtp_hosts();

}  // namespace ulc::sim
