// Runs one random scenario and says what was wrong with it.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/check/random_scenario.h"

namespace ulc::sim {

struct CheckResult {
    std::string error;  ///< empty: nothing was wrong
    Nanos virtual_time = 0;
    std::uint64_t turns = 0;
    std::uint64_t deliveries = 0;
};

/// The oracle: each message exactly once, in order, whole (or: each collective right at every rank); nobody told of a death
/// that was none; when all is healed, the rest gets done in time, and so does one more message from each to all; then no
/// segment is held by anybody while nothing is under way; and none after the end. Deterministic: errors name virtual times.
[[nodiscard]] CheckResult run_check(const RandomScenario& scenario);

}  // namespace ulc::sim
