// SPDX-License-Identifier: BSD-3-Clause
// Tests that no job of an MPI's patience ends because machines are busy, and that a node without
// power is noticed as before. More seeds: ulc-sim check --busy.
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/check/busy_run.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kSeeds = 24;

BusyScenario four_nodes(std::uint16_t prompt) {
    BusyScenario s;
    s.seed = 1;
    s.nodes = 4;
    s.prompt = prompt;
    s.cut_at = 5 * kSecond;
    s.think = 50 * kMillisecond;
    s.talkative = 1;
    return s;
}

// N-10, N-50, N-61
TEST(Busy, no_patient_job_ends_for_nodes_that_lose_the_processor_for_8_s) {
    unsigned cuts = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const BusyScenario scenario = busy_scenario(seed);
        const CheckResult result = run_busy(scenario);
        EXPECT_EQ(result.error, "") << "seed " << seed << "\n" << scenario.describe();
        EXPECT_GT(result.turns, 1000U);
        cuts += scenario.prompt > 0 ? 1 : 0;
    }
    EXPECT_GT(cuts, kSeeds / 4);
    EXPECT_LT(cuts, kSeeds) << "scenarios in which all nodes are busy";
}

// N-50: a node that returns has timers of streams that are due. It hears nothing of its peer, which
// is away then.
TEST(Busy, absences_that_follow_each_other_are_not_added) {
    BusyScenario s = four_nodes(0);
    s.absences = {{0, kSecond, 8 * kSecond},
                  {1, 8900 * kMillisecond, 8 * kSecond},
                  {0, 16 * kSecond, 8 * kSecond},
                  {1, 23 * kSecond, 8 * kSecond}};
    EXPECT_EQ(run_busy(s).error, "");
}

// S-55: what the pauses left in the mean round trip does not pace the repairs after them, which
// give no sample of it. Else the last send takes over a minute.
TEST(Busy, streams_catch_up_within_seconds_of_the_last_absence) {
    // In 30 s each of five nodes is away for 15 to 20 times, and the dead one for good.
    const BusyScenario s = busy_scenario(135);
    ASSERT_TRUE(s.prompt > 0 && s.loss > 0) << s.describe();
    EXPECT_EQ(run_busy(s).error, "");
}

TEST(Busy, the_judge_sees_a_node_that_is_away_for_longer_than_the_patience) {
    BusyScenario s = four_nodes(0);
    s.absences = {{2, kSecond, 20 * kSecond}};
    EXPECT_NE(run_busy(s).error.find("a false death after 1"), std::string::npos);
}

TEST(Busy, the_judge_sees_a_node_without_power_that_is_noticed_late) {
    BusyScenario s = four_nodes(2);
    EXPECT_EQ(run_busy(s).error, "");
    // Its neighbour is not prompt.
    s.absences = {{1, 6 * kSecond, 2 * kSecond}};
    EXPECT_NE(run_busy(s).error.find("heard of the dead node after"), std::string::npos);
}

}  // namespace
}  // namespace ulc::sim
