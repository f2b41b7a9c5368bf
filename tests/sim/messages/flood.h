// SPDX-License-Identifier: BSD-3-Clause
// Messages of each rank to all others, one rank a node, which all must arrive.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/message_programs.h"

namespace ulc::sim {

/// Forms a job on the nodes 0 to ranks - 1. Each rank sends `messages` of `octets` to each other
/// one, and takes messages as they come. Fails the test if one is lost, or after 30 virtual s.
inline void flood(SimCluster& cluster, std::uint16_t ranks, std::size_t octets,
                  std::uint64_t messages) {
    ASSERT_TRUE(cluster.form(ranks, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    MessageLog log;
    log.sent_at.resize(ranks);
    log.octets_by_source.resize(ranks);
    std::vector<std::unique_ptr<StreamProgram>> programs;
    for (Rank rank = 0; rank < ranks; ++rank) {
        RingClient& client = cluster.client(rank);
        programs.push_back(
            std::make_unique<StreamProgram>(client, rank, client.world, octets, messages, log));
        cluster.set_program(rank, programs.back().get());
    }
    const std::uint64_t all = messages * ranks * (ranks - 1U);
    EXPECT_TRUE(cluster.run(30 * kSecond, [&] { return log.messages == all; }))
        << log.messages << " of " << all;
    EXPECT_EQ(log.error, "");
}

}  // namespace ulc::sim
