// SPDX-License-Identifier: BSD-3-Clause
// An upgrade of an engine changes nothing that can be seen: runs of one seed, without and with
// upgrades, show the same frames at the same times, the same completions and the same counters.
// After each upgrade the new engine exports what it imported (SimCluster::upgrade_node()).
// ULC_UPGRADE_SEEDS: number of random scenarios.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/sim/check/check_run.h"
#include "tests/sim/trace/recorder.h"

namespace ulc::sim {
namespace {

/// Runs a random scenario without clients in their engine's process, which refuse an upgrade.
CheckResult run(std::uint64_t seed, Recorder& recorder, std::uint64_t upgrade_every = 0) {
    RandomScenario scenario = random_scenario(seed);
    scenario.cluster.embedded = Embedded::kNone;
    scenario.cluster.recorder = &recorder;
    scenario.cluster.upgrade_every = upgrade_every;
    return run_check(scenario);
}

/// Seeds of a test; ULC_UPGRADE_SEEDS gives another number.
std::uint64_t seeds() {
    const char* given = std::getenv("ULC_UPGRADE_SEEDS");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : 4;
}

TEST(Upgrade, a_run_repeats) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
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

TEST(Upgrade, nothing_is_seen_of_it) {
    std::uint64_t upgrades = 0;
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        Recorder without;
        Recorder with;
        const CheckResult one = run(seed, without);
        const CheckResult other = run(seed, with, 1 + seed % 5);
        EXPECT_EQ(one.error, "") << "seed " << seed;
        EXPECT_EQ(other.error, "") << "seed " << seed;
        EXPECT_EQ(one.deliveries, other.deliveries) << "seed " << seed;
        EXPECT_EQ(without.difference(with), "") << "seed " << seed;
        upgrades += other.upgrades;
    }
    EXPECT_GT(upgrades, 100U);
}

}  // namespace
}  // namespace ulc::sim
