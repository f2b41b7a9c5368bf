// SPDX-License-Identifier: BSD-3-Clause
// Groups that are made, used and freed by the thousand, as MPI programs do with communicators, take
// no memory that stays: bytes of heap, at engine and libulc.
#include <coll.h>
#include <gtest/gtest.h>
#include <ulc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/sim/cluster/libulc_cluster.h"
#include "tests/unit/base/heap_watch.h"

namespace ulc::sim {
namespace {

constexpr std::uint16_t kRanks = 3;
constexpr Nanos kLimit = 50 * kMillisecond;  ///< time limit of a step; an event keeps it
constexpr unsigned kWarm = 300;
constexpr unsigned kGroups = 1000;
/// Tables that double may do so once more. A timer for each group takes eight times as much.
constexpr std::size_t kGrowthMax = kGroups;

/// Ranks that make one group after the other, each on a node.
class Splits {
public:
    explicit Splits(const ClusterConfig& config) : cluster_(config, kRanks) {}

    [[nodiscard]] bool formed() const { return cluster_.formed(); }
    /// Makes a group, broadcasts from each member, and frees the group.
    void split() {
        constexpr std::uint16_t kMembers[] = {0, 1, 2};
        std::vector<ulc_request> requests(kRanks);
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            ASSERT_EQ(
                ulc_group_create_keyed(cluster_.ep(rank), kMembers, kRanks, 7, &requests[rank]),
                ULC_OK);
        ulc_status made{};
        std::vector<bool> ready(kRanks);
        ASSERT_TRUE(cluster_.run(
            [&] {
                for (std::uint16_t rank = 0; rank < kRanks; ++rank)
                    if (!ready[rank])
                        ready[rank] = ulc_test(cluster_.ep(rank), &requests[rank], &made) == ULC_OK;
                return std::ranges::count(ready, false) == 0;
            },
            kLimit));
        ASSERT_EQ(made.error, ULC_OK);
        for (std::uint16_t root = 0; root < kRanks; ++root)
            broadcast(made.group, root);
        // An engine that has removed a group acknowledges nothing in it.
        ASSERT_FALSE(cluster_.run([] { return false; }, 5 * kMillisecond));
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            ASSERT_EQ(ulc_group_free(cluster_.ep(rank), made.group), ULC_OK);
    }

    /// Returns the bytes of heap in use once nothing is under way.
    [[nodiscard]] std::size_t heap_at_rest() {
        EXPECT_FALSE(cluster_.run([] { return false; }, 2 * kLimit));
        return test::heap_octets();
    }

private:
    void broadcast(ulc_group group, std::uint16_t root) {
        std::array<int, kRanks> values{};
        std::array<ulc_coll*, kRanks> running{};
        values[root] = 1 + root;
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            ASSERT_EQ(ulc_broadcast_start(cluster_.ep(rank), group, root, &values[rank],
                                          sizeof values[rank], nullptr, &running[rank]),
                      ULC_OK);
        const auto test = [&](std::uint16_t rank) {
            if (running[rank] == nullptr) return;
            const int state = ulc_coll_test(cluster_.ep(rank), running[rank]);
            if (state == ULC_ERR_AGAIN) return;
            EXPECT_EQ(state, ULC_OK);
            running[rank] = nullptr;
        };
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            test(rank);  // nothing has to come for a root's
        ASSERT_TRUE(cluster_.run([&] { return std::ranges::count(running, nullptr) == kRanks; },
                                 kLimit, test));
        EXPECT_EQ(std::ranges::count(values, 1 + root), kRanks);
    }

    LibulcCluster cluster_;
};

class GroupsBudget : public ::testing::TestWithParam<const char*> {};

TEST_P(GroupsBudget, groups_that_come_and_go_leave_no_memory_in_use) {
    ClusterConfig config;
    config.net.ports = kRanks;
    config.embedded = Embedded::kHalf;
    config.engine.profile = GetParam();
    Splits splits(config);
    ASSERT_TRUE(splits.formed());
    for (unsigned n = 0; n < kWarm && !HasFatalFailure(); ++n)
        splits.split();
    const std::size_t before = splits.heap_at_rest();
    for (unsigned n = 0; n < kGroups && !HasFatalFailure(); ++n)
        splits.split();
    const std::size_t after = splits.heap_at_rest();
    const std::size_t grown = after > before ? after - before : 0;
    std::printf("%-8s %zu bytes for %u groups (budget %zu)\n", GetParam(), grown, kGroups,
                kGrowthMax);
    EXPECT_GT(before, 0U);
    EXPECT_LE(grown, kGrowthMax);
}

INSTANTIATE_TEST_SUITE_P(Profiles, GroupsBudget, ::testing::Values("urtp", "pcode"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace ulc::sim
