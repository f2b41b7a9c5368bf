// SPDX-License-Identifier: BSD-3-Clause
// The table of the endpoints of a group (engine/groups/group_table.h), against std::map: one handle
// belongs to one job, and the table has a limit.
#include "engine/groups/group_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/prng.h"

namespace ulc::engine {
namespace {

// The table only keeps the pointers.
Endpoint* member(std::uintptr_t n) { return reinterpret_cast<Endpoint*>(n * 64); }

// H-6
TEST(GroupTable, one_handle_belongs_to_one_job) {
    GroupTable table(4, 0);
    EXPECT_NE(table.join(kGroupBit | 1, 10, member(1)), nullptr);
    EXPECT_NE(table.join(kGroupBit | 1, 10, member(2)), nullptr);
    EXPECT_EQ(table.join(kGroupBit | 1, 11, member(3)), nullptr);
    EXPECT_TRUE(table.foreign(kGroupBit | 1, 11));
    EXPECT_FALSE(table.foreign(kGroupBit | 1, 10));
    EXPECT_FALSE(table.foreign(kGroupBit | 2, 11));
    table.leave(kGroupBit | 1, member(1));
    EXPECT_NE(table.find(kGroupBit | 1), nullptr);
    table.leave(kGroupBit | 1, member(2));
    EXPECT_EQ(table.find(kGroupBit | 1), nullptr);
}

TEST(GroupTable, holds_no_more_than_its_limit) {
    GroupTable table(3, 0);
    for (std::uint32_t n = 0; n < 3; ++n)
        EXPECT_NE(table.join(kGroupBit | (n << 8), 1, member(1)), nullptr);
    EXPECT_EQ(table.join(kGroupBit | 77, 1, member(1)), nullptr);
}

// Colliding homes, random joins and leaves, against a map.
TEST(GroupTable, agrees_with_a_map) {
    Prng prng(3);
    GroupTable table(24, 0);
    std::map<GroupHandle, std::set<std::uintptr_t>> model;
    for (int step = 0; step < 200'000; ++step) {
        const auto handle = static_cast<GroupHandle>(kGroupBit | (prng.below(40) * 0x15));
        const std::uintptr_t who = 1 + prng.below(3);
        if (prng.chance(0.5)) {
            if (model[handle].contains(who)) continue;
            const bool joined = table.join(handle, 1, member(who)) != nullptr;
            if (joined) model[handle].insert(who);
        } else {
            table.leave(handle, member(who));
            model[handle].erase(who);
        }
        if (model[handle].empty()) model.erase(handle);
        const LocalGroup* group = table.find(handle);
        ASSERT_EQ(group != nullptr, model.contains(handle));
        if (group != nullptr) {
            ASSERT_EQ(group->members.size(), model[handle].size());
        }
    }
    for (const auto& [handle, members] : model)
        ASSERT_NE(table.find(handle), nullptr);
}

}  // namespace
}  // namespace ulc::engine
