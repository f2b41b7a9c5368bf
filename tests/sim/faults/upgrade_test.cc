// SPDX-License-Identifier: BSD-3-Clause
// An upgrade of an engine changes nothing that can be seen: runs of one seed, without and with
// upgrades, show the same frames at the same times, the same completions and the same counters.
// After each upgrade the new engine exports what it imported (SimCluster::upgrade_node()).
// ULC_UPGRADE_SEEDS: number of random scenarios.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

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
        EXPECT_EQ(first.digest(), second.digest()) << "seed " << seed;
    }
}

TEST(Upgrade, a_digest_tells_frames_times_and_ends_apart) {
    const std::vector<std::byte> one(64, std::byte{1});
    const std::vector<std::byte> other(64, std::byte{2});
    const auto digest = [](const auto& frame, Nanos at, std::uint16_t port, std::uint64_t end) {
        Recorder recorder;
        recorder.on_frame(port, true, frame, at);
        recorder.note_end("completions", end);
        return recorder.digest();
    };
    const std::uint64_t first = digest(one, 5, 0, 3);
    EXPECT_EQ(first, digest(one, 5, 0, 3));
    EXPECT_NE(first, digest(other, 5, 0, 3));
    EXPECT_NE(first, digest(one, 6, 0, 3));
    EXPECT_NE(first, digest(one, 5, 1, 3));
    EXPECT_NE(first, digest(one, 5, 0, 4));
    std::vector<std::byte> padded = one;  // its type is that of data
    padded.back() = std::byte{9};
    EXPECT_EQ(first, digest(padded, 5, 0, 3)) << "payloads are the oracle's";
    padded.push_back(std::byte{1});
    EXPECT_NE(first, digest(padded, 5, 0, 3));
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
