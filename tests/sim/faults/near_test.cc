// SPDX-License-Identifier: BSD-3-Clause
// Engines tell their clients which processes their peers are (engine/near.cc). They name ranks of
// one engine and the ends of a link, also through a full ring and over an upgrade, and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {
namespace {

ClusterConfig config_of(std::uint16_t nodes) {
    ClusterConfig config;
    config.net.ports = nodes;
    return config;
}

class Asking {
public:
    explicit Asking(std::uint16_t nodes) : cluster(config_of(nodes)) {}

    [[nodiscard]] RingClient& at(std::size_t client) { return cluster.client(client); }
    bool run(const std::function<bool()>& done) {
        return cluster.run(5 * kSecond, done, [this] {
            for (std::size_t n = 0; n < cluster.size(); ++n)
                if (!cluster.gone(n)) at(n).poll();
        });
    }
    /// Returns the process that the client's engine names; 0: the peer is not near.
    std::uint32_t ask(std::size_t client, Rank rank) {
        const std::size_t before = at(client).answered.size();
        EXPECT_TRUE(at(client).ask_near(rank));
        cluster.touch(cluster.node_of(client));
        EXPECT_TRUE(run([&] { return at(client).answered.size() > before; }));
        EXPECT_EQ(at(client).answered.back(), rank);
        const auto found = at(client).near.find(rank);
        if (found == at(client).near.end()) return 0;
        const abi::NearRows& rows = found->second;
        EXPECT_EQ(rows.self.pid, client + 1);
        EXPECT_EQ(rows.self.start_ticks, SimCluster::kStartTicks + client + 1);
        EXPECT_EQ(rows.peer.start_ticks, SimCluster::kStartTicks + rows.peer.pid);
        return rows.peer.pid;
    }
    /// Links two clients. Returns the slot of the second at the first.
    Rank link(std::size_t a, std::size_t b) {
        const std::uint32_t cookie = at(a).link(at(b).address);
        cluster.touch(cluster.node_of(a));
        EXPECT_TRUE(run([&] { return at(a).link_done.contains(cookie); }));
        EXPECT_EQ(at(a).link_done[cookie].second, 0);
        return at(a).link_done[cookie].first;
    }

    SimCluster cluster;
};

TEST(Near, ranks_of_one_engine_are_named_and_others_are_not) {
    Asking w(2);
    ASSERT_TRUE(w.cluster.form(4, [](std::size_t n) { return n == 3 ? 1 : 0; }));
    EXPECT_EQ(w.ask(0, 1), 2U);
    EXPECT_EQ(w.ask(1, 0), 1U);
    EXPECT_EQ(w.ask(0, 0), 1U);
    EXPECT_EQ(w.ask(0, 3), 0U);
    EXPECT_EQ(w.ask(3, 0), 0U);
    EXPECT_EQ(w.ask(0, 4), 0U);  // there is no such rank
    w.cluster.kill_client(1);
    ASSERT_TRUE(w.run([&] { return w.at(0).peers_died.size() == 1; }));
    EXPECT_EQ(w.ask(0, 1), 0U);
    EXPECT_EQ(w.ask(0, 2), 3U);
    w.cluster.close_client(2);
    EXPECT_EQ(w.ask(0, 2), 0U);
    EXPECT_EQ(w.at(0).closed(), 0);
}

TEST(Near, an_endpoint_without_a_job_hears_of_none) {
    Asking w(1);
    w.cluster.add_client(0);
    EXPECT_EQ(w.ask(0, 0), 0U);
    EXPECT_EQ(w.at(0).closed(), 0);
}

TEST(Near, an_upgrade_keeps_the_names) {
    Asking w(1);
    ASSERT_TRUE(w.cluster.form(2, [](std::size_t) { return 0; }));
    ASSERT_TRUE(w.cluster.upgrade_node(0)) << w.cluster.upgrade_error();
    EXPECT_EQ(w.ask(0, 1), 2U);
    EXPECT_EQ(w.ask(1, 0), 1U);
}

TEST(Near, a_question_for_each_place_in_a_full_ring_is_answered) {
    Asking w(1);
    ASSERT_TRUE(w.cluster.form(2, [](std::size_t) { return 0; }));
    unsigned asked = 0;
    for (int fills = 0; fills < 4; ++fills) {
        while (w.at(0).ask_near(1))
            ++asked;
        w.cluster.touch(0);  // the client takes no completion
        EXPECT_FALSE(w.cluster.run(kMillisecond, [] { return false; }));
    }
    ASSERT_GT(asked, 100U);  // both rings are full
    w.cluster.touch(0);
    EXPECT_TRUE(w.run([&] { return w.at(0).answered.size() == asked; }));
    EXPECT_EQ(w.at(0).closed(), 0);
}

TEST(Near, both_ends_of_a_link_are_named_while_it_is_up) {
    Asking w(2);
    for (const std::uint16_t node : {0, 0, 1, 0}) {
        const std::size_t n = w.cluster.add_client(node);
        ASSERT_TRUE(w.at(n).open_links(1 + (n == 0), static_cast<std::uint8_t>(n + 1)));
        w.cluster.touch(node);
    }
    ASSERT_TRUE(w.run([&] {
        return w.at(0).links_open && w.at(1).links_open && w.at(2).links_open && w.at(3).links_open;
    }));
    EXPECT_EQ(w.ask(0, 0), 0U);  // vacant
    const Rank first = w.link(0, 1);
    const Rank far = w.link(0, 2);
    EXPECT_EQ(w.ask(0, first), 2U);
    EXPECT_EQ(w.ask(1, 0), 1U);
    EXPECT_EQ(w.ask(0, far), 0U);
    EXPECT_EQ(w.ask(2, 0), 0U);
    ASSERT_TRUE(w.at(0).unlink(first));
    w.cluster.touch(0);
    ASSERT_TRUE(w.run([&] { return w.at(0).unlinked.size() == 1; }));
    EXPECT_EQ(w.ask(0, first), 0U);
    const Rank next = w.link(0, 3);
    EXPECT_EQ(next, first);
    EXPECT_EQ(w.ask(0, next), 4U);
}

}  // namespace
}  // namespace ulc::sim
