// SPDX-License-Identifier: BSD-3-Clause
// Runs one random scenario and reports the invariant that it broke.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/check/random_scenario.h"

namespace ulc::sim {

struct CheckResult {
    std::string error;  ///< empty: no invariant was broken
    Nanos virtual_time = 0;
    std::uint64_t turns = 0;
    std::uint64_t deliveries = 0;
    std::uint64_t upgrades = 0;
};

/// Runs one scenario against the oracle. Each message arrives exactly once, in order and whole (or:
/// each collective is right at every rank); no death is reported that did not occur. Once all is
/// healed, the remaining traffic completes in time, and so does one more message from each rank to
/// all. Then no segment is held while nothing is in flight, and none after the end. Deterministic:
/// errors name virtual times.
[[nodiscard]] CheckResult run_check(const RandomScenario& scenario);

}  // namespace ulc::sim
