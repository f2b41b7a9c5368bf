// SPDX-License-Identifier: BSD-3-Clause
// Jobs that form over a lossy wire, for their tests.
#pragma once

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/jobs/bus.h"

namespace ulc::jobs {

/// Expects that every endpoint of every node has formed, and that all hold the same roster.
inline void expect_one_roster(JobBus& bus, const std::string& name, std::uint16_t size) {
    JobView first;
    bool have_first = false;
    std::size_t ranks = 0;
    for (std::size_t i = 0; i < bus.size(); ++i) {
        for (const auto& [endpoint, id] : bus.node(i).ids) {
            JobView view;
            ASSERT_TRUE(bus.node(i).jobs->job(id, view)) << "node " << i << " rank " << endpoint;
            if (view.name != name) continue;
            ++ranks;
            ASSERT_EQ(view.roster.size(), size);
            if (!have_first) first = view;
            have_first = true;
            EXPECT_EQ(view.nonce, first.nonce);
            EXPECT_EQ(view.world, first.world);
            EXPECT_EQ(view.first_seq, first.first_seq);
            EXPECT_EQ(view.version, wire::kProtocolVersion);
            for (std::size_t rank = 0; rank < size; ++rank) {
                EXPECT_EQ(view.roster[rank].mac, first.roster[rank].mac);
                EXPECT_EQ(view.roster[rank].handle, first.roster[rank].handle);
                EXPECT_EQ(view.roster[rank].incarnation, first.roster[rank].incarnation);
            }
        }
    }
    EXPECT_EQ(ranks, size);
    EXPECT_TRUE(is_group(first.world));
}

inline bool all_formed(JobBus& bus) {
    for (std::size_t i = 0; i < bus.size(); ++i) {
        for (const auto& [endpoint, id] : bus.node(i).ids) {
            if (!bus.node(i).formed(endpoint)) return false;
        }
    }
    return true;
}

class UnderLoss : public testing::TestWithParam<std::uint64_t> {};

}  // namespace ulc::jobs
