// SPDX-License-Identifier: BSD-3-Clause
// The reports that wait for a slot of a client's completion ring (endpoint/reports.h): their order,
// and that none is lost while the ring is full.
#include "endpoint/reports.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ulc::endpoint {
namespace {

using abi::CompletionKind;
using Stage = Reports::Stage;
using Written = Reports::Written;

constexpr std::size_t kRanks = 8;

/// Writes as long as the ring has slots, and returns the letter and the rank of each.
std::string written(Reports& reports, std::size_t slots, Stage last = Stage::kLeft,
                    Rank waits = kNoRank) {
    std::string out;
    (void)reports.write(last, [&](const Report& report) {
        if (report.rank == waits && waits != kNoRank) return Written::kWaits;
        if (slots == 0) return Written::kFull;
        --slots;
        switch (report.kind) {
            case CompletionKind::kJobFormed:
                out += 'J';
                break;
            case CompletionKind::kJobFailed:
                out += 'X';
                break;
            case CompletionKind::kLinkDone:
            case CompletionKind::kLinked:
                out += 'L';
                break;
            case CompletionKind::kFault:
                out += 'F' + std::to_string(report.tag) + ':';
                break;
            case CompletionKind::kPeerLeft:
            case CompletionKind::kPeerDied:
                out += 'E';
                break;
            default:
                out += 'Z';
                break;
        }
        if (report.rank != kNoRank) out += std::to_string(report.rank);
        return Written::kDone;
    });
    reports.check_invariants(kRanks);
    return out;
}

void add_one_of_each(Reports& reports) {
    reports.add({.kind = CompletionKind::kLeft});
    reports.add({.kind = CompletionKind::kPeerDied, .rank = 1});
    reports.add({.kind = CompletionKind::kFault, .status = Err::kLost, .rank = 1, .tag = 3});
    reports.add({.kind = CompletionKind::kLinked, .rank = 2});
    reports.add({.kind = CompletionKind::kJobFormed});
}

TEST(Reports, the_cause_comes_before_the_end) {
    Reports reports;
    add_one_of_each(reports);
    EXPECT_EQ(written(reports, 9), "JL2F3:1E1Z");
    EXPECT_TRUE(reports.empty());
}

TEST(Reports, none_is_lost_while_the_ring_is_full) {
    for (std::size_t slots = 0; slots <= 5; ++slots) {
        Reports reports;
        add_one_of_each(reports);
        const std::string first = written(reports, slots);
        EXPECT_EQ(first + written(reports, 9), "JL2F3:1E1Z") << slots << " slots";
    }
}

TEST(Reports, an_end_waits_alone) {
    Reports reports;
    reports.add({.kind = CompletionKind::kPeerDied, .rank = 1});
    reports.add({.kind = CompletionKind::kPeerLeft, .rank = 2});
    EXPECT_EQ(written(reports, 9, Stage::kLeft, 1), "E2");
    EXPECT_TRUE(reports.has_end_of(1));
    EXPECT_FALSE(reports.has_end_of(2));
    EXPECT_EQ(written(reports, 9), "E1");
}

TEST(Reports, links_go_before_messages_and_leave_the_rest) {
    Reports reports;
    reports.add({.kind = CompletionKind::kPeerLeft, .rank = 2});
    EXPECT_FALSE(reports.has(Stage::kLinks));
    reports.add({.kind = CompletionKind::kLinked, .rank = 3});
    reports.add({.kind = CompletionKind::kLinkDone, .rank = 3, .tag = 7});
    reports.add({.kind = CompletionKind::kLinkDone, .rank = 3, .tag = 7});
    EXPECT_TRUE(reports.has(Stage::kLinks));
    EXPECT_EQ(written(reports, 9, Stage::kLinks), "L3L3L3") << "each call has an answer";
    EXPECT_EQ(written(reports, 9), "E2");
}

TEST(Reports, a_fault_adds_up_and_the_newest_is_first) {
    Reports reports;
    reports.add({.kind = CompletionKind::kFault, .status = Err::kLost, .rank = 1, .tag = 3});
    reports.add({.kind = CompletionKind::kFault, .status = Err::kLost, .rank = 2, .tag = 1});
    reports.add({.kind = CompletionKind::kFault, .status = Err::kPeerSlow, .rank = 1, .tag = 9});
    reports.add({.kind = CompletionKind::kFault, .status = Err::kLost, .rank = 1, .tag = 4});
    EXPECT_EQ(written(reports, 9), "F9:1F1:2F7:1");
}

TEST(Reports, the_newest_failure_takes_the_place_of_one_that_waits) {
    Reports reports;
    reports.add_failure(Err::kLimit, "the first");
    reports.add_failure(Err::kProfile, "the second");
    EXPECT_EQ(reports.failure(), "the second");
    EXPECT_EQ(written(reports, 9), "X");
}

TEST(Reports, one_that_leaves_hears_of_failures_and_of_the_end) {
    Reports reports;
    add_one_of_each(reports);
    reports.add_failure(Err::kLimit, "why");
    reports.drop_for_leave();
    EXPECT_EQ(written(reports, 9), "XZ");
}

TEST(Reports, the_end_of_a_peer_that_is_unknown_is_dropped) {
    Reports reports;
    reports.add({.kind = CompletionKind::kPeerDied, .rank = 1});
    reports.add({.kind = CompletionKind::kPeerDied, .rank = 2});
    reports.drop_end_of(1);
    EXPECT_EQ(written(reports, 9), "E2");
}

TEST(Reports, a_rank_must_be_of_the_job) {
    Reports reports;
    reports.add({.kind = CompletionKind::kPeerDied, .rank = kRanks});
    EXPECT_FALSE(reports.is_valid(kRanks));
    EXPECT_TRUE(reports.is_valid(kRanks + 1));
    EXPECT_FALSE(reports.is_valid(0)) << "without a job no peer ends";
}

TEST(ReportsDeathTest, a_completion_that_is_written_at_once_is_none) {
    Reports reports;
    EXPECT_DEATH(reports.add({.kind = CompletionKind::kMessage}), "stage_of");
}

}  // namespace
}  // namespace ulc::endpoint
