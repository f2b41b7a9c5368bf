// SPDX-License-Identifier: BSD-3-Clause
// Tests that an engine says what is lost when a client leaves: the bytes that its peers have not
// acknowledged within linger_max, and the rank that has acknowledged least.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {
namespace {

constexpr Nanos kPatience = 60 * kSecond;

class LostAtTheEnd : public ::testing::Test {
protected:
    LostAtTheEnd() : cluster_(config()) {
        const auto place = [](std::size_t n) { return static_cast<std::uint16_t>(n); };
        EXPECT_TRUE(cluster_.form(3, place, 5 * kSecond, {}, kPatience));
    }
    static ClusterConfig config() {
        ClusterConfig config;
        config.net.ports = 3;
        config.engine.linger_max = 50 * kMillisecond;
        return config;
    }
    void send(Rank to, std::size_t bytes) {
        const std::vector<std::byte> payload(bytes);
        ASSERT_TRUE(cluster_.client(0).send(to, 7, payload));
        cluster_.touch(0);
    }
    /// Rank 0 leaves.
    void leave() {
        ASSERT_TRUE(cluster_.client(0).leave());
        cluster_.touch(0);
        ASSERT_TRUE(cluster_.run(kSecond, [&] {
            cluster_.client(0).poll();
            return cluster_.client(0).left;
        }));
    }

    /// Expects that `bytes` are lost, most of them to `rank`.
    void expect_loss(std::uint64_t bytes, Rank rank) {
        EXPECT_EQ(cluster_.client(0).left_status, static_cast<int>(Err::kTimeout));
        ASSERT_EQ(cluster_.client(0).reports.size(), 1U);
        const Report& loss = cluster_.client(0).reports.front();
        EXPECT_EQ(loss.error, Err::kTimeout);
        EXPECT_EQ(loss.count, bytes);
        EXPECT_EQ(loss.source, rank);
    }

    SimCluster cluster_;
};

TEST_F(LostAtTheEnd, nothing_if_all_is_acknowledged) {
    send(1, 1000);
    leave();
    EXPECT_EQ(cluster_.client(0).left_status, 0);
    EXPECT_TRUE(cluster_.client(0).reports.empty());
}

TEST_F(LostAtTheEnd, the_bytes_of_packets_that_a_silent_peer_has_not_acknowledged) {
    cluster_.pause_node(1, cluster_.now() + 10 * kSecond);
    send(2, 5000);
    send(1, 1000);
    send(1, 20);
    leave();
    expect_loss(1020U, 1);
}

TEST_F(LostAtTheEnd, also_those_that_wait_for_the_window) {
    cluster_.pause_node(2, cluster_.now() + 10 * kSecond);
    send(2, 200'000);
    leave();
    expect_loss(200'000U, 2);
}

}  // namespace
}  // namespace ulc::sim
