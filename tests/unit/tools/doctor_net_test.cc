// SPDX-License-Identifier: BSD-3-Clause
// The verdicts of `ulc doctor --net`: requests for repairs decide, times do not.
#include <gtest/gtest.h>

#include <array>

#include "tools/ulc/doctor/net_counts.h"

namespace ulc::tools {
namespace {

NetReport report(double unicast_us, double multicast_us, std::uint32_t unicast_asked,
                 std::uint32_t multicast_asked) {
    return {.unicast_us = unicast_us,
            .multicast_us = multicast_us,
            .counted = 1,
            .unicast_asked = unicast_asked,
            .multicast_asked = multicast_asked};
}

Findings judged(const NetReport& of_rank_1) {
    Findings found;
    judge_net(0, std::array{NetReport{}, of_rank_1}, found);
    return found;
}

TEST(DoctorNet, late_multicasts_of_a_crowded_machine_are_no_fault) {
    const Findings found = judged(report(20, 9000, 0, 0));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].level, Level::kOk) << found[0].text;
    EXPECT_NE(found[0].text.find("9000.0 µs"), std::string::npos) << found[0].text;
}

TEST(DoctorNet, multicasts_that_are_asked_for_again_are_filtered_however_fast_they_come) {
    const Findings found = judged(report(20, 25, 1, kNetRounds));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].level, Level::kWarn);
    EXPECT_EQ(found[0].topic, "multicast 0 → 1");
    EXPECT_NE(found[0].text.find("asked for again 50 times in 50 multicasts, 1 in as many"),
              std::string::npos)
        << found[0].text;
    EXPECT_NE(found[0].fix.find("multicast_snooping"), std::string::npos);
}

TEST(DoctorNet, a_link_that_loses_both_kinds_filters_nothing) {
    EXPECT_EQ(judged(report(20, 25, 30, 35))[0].level, Level::kOk);
    EXPECT_EQ(judged(report(20, 25, 0, 3))[0].level, Level::kOk);
}

TEST(DoctorNet, without_counts_it_says_so) {
    NetReport uncounted;
    uncounted.unicast_us = 20;
    uncounted.multicast_us = 9000;
    const Findings found = judged(uncounted);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].level, Level::kOk);
    EXPECT_NE(found[0].text.find("was not counted"), std::string::npos) << found[0].text;
}

TEST(DoctorNet, counts_are_those_of_the_own_endpoint) {
    const auto row = [](std::uint32_t pid, std::uint32_t rank, std::uint32_t peer,
                        std::uint32_t requests) {
        abi::StreamRow out{};
        out.pid = pid;
        out.rank = rank;
        out.peer = peer;
        out.requests_received = requests;
        return out;
    };
    const std::array rows{row(7, 1, 0, 5), row(7, 1, 2, 6), row(8, 1, 0, 100), row(7, 0, 0, 100),
                          row(7, 1, 9, 100)};
    EXPECT_EQ(requests_by_rank(rows, 7, 1, 3), (std::vector<std::uint32_t>{5, 0, 6}));
    EXPECT_TRUE(requests_by_rank(rows, 9, 1, 3).empty());
}

}  // namespace
}  // namespace ulc::tools
