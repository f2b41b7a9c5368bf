// An upgrade of an engine changes nothing that can be seen: runs of one seed, without and with
// upgrades, show the same frames at the same times, the same completions and the same counters.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/sim/check/check_run.h"
#include "tests/sim/check/liveness_run.h"
#include "tests/sim/trace/recorder.h"

namespace ulc::sim {
namespace {

/// Runs a random scenario without clients in their engine's process, which hold up an upgrade.
CheckResult run(std::uint64_t seed, Recorder& recorder) {
    RandomScenario scenario = random_scenario(seed);
    scenario.cluster.embedded = Embedded::kNone;
    scenario.cluster.recorder = &recorder;
    return run_check(scenario);
}

TEST(Upgrade, a_run_repeats) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        Recorder first;
        Recorder second;
        const CheckResult one = run(seed, first);
        const CheckResult other = run(seed, second);
        EXPECT_EQ(one.error, "") << "seed " << seed;
        EXPECT_EQ(one.deliveries, other.deliveries) << "seed " << seed;
        EXPECT_GT(first.frames(), 100U);
        EXPECT_EQ(first.difference(second), "") << "seed " << seed;
    }
}

}  // namespace
}  // namespace ulc::sim
