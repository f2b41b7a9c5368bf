// SPDX-License-Identifier: BSD-3-Clause
// Nodes of different MTU on one net (docs/protocol/JOBS.md §7.3): an interface loses each frame
// that is longer than its own MTU, without a word. So no packet of a job or a link may be longer
// than any of its nodes takes.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kSizes[] = {8, 1'400, 1'600, 8'000, 64U << 10};

ClusterConfig config_of(std::vector<std::uint16_t> mtus) {
    ClusterConfig config;
    config.net.ports = static_cast<std::uint16_t>(mtus.size());
    config.net.port_mtus = std::move(mtus);
    config.sizes = {256, 512, 512U << 10, 512U << 10};
    return config;
}

std::uint16_t own_node(std::size_t n) { return static_cast<std::uint16_t>(n); }

/// Runs until that client has that number of messages.
bool wait_for(SimCluster& cluster, std::size_t client, std::size_t messages) {
    return cluster.run(
        5 * kSecond, [&] { return cluster.client(client).messages.size() == messages; },
        [&] {
            for (std::size_t n = 0; n < cluster.size(); ++n)
                cluster.client(n).poll();
        });
}

void expect_no_long_frames(SimCluster& cluster, std::uint16_t ports) {
    for (std::uint16_t port = 0; port < ports; ++port)
        EXPECT_EQ(cluster.net().stats(port).overruns, 0U) << "port " << port;
}

// J-39
TEST(Mtu, messages_of_each_size_pass_between_nodes_of_different_mtu) {
    SimCluster cluster(config_of({9000, 1500, 9000}));
    ASSERT_TRUE(cluster.form(3, own_node));
    std::size_t got[3] = {};
    for (std::size_t from = 0; from < 3; ++from) {
        for (const std::size_t octets : kSizes) {
            for (std::size_t to = 0; to < 3; ++to) {
                if (to == from) continue;
                ASSERT_TRUE(cluster.client(from).send(static_cast<Rank>(to), octets,
                                                      Oracle::payload(octets, octets)));
                ASSERT_TRUE(wait_for(cluster, to, ++got[to])) << octets << " from " << from;
                EXPECT_EQ(cluster.client(to).messages.back().payload,
                          Oracle::payload(octets, octets));
            }
        }
    }
    expect_no_long_frames(cluster, 3);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// J-39
TEST(Mtu, multicasts_of_each_size_reach_all_nodes) {
    SimCluster cluster(config_of({9000, 9000, 1500, 4000}));
    ASSERT_TRUE(cluster.form(4, own_node));
    std::size_t sent = 0;
    for (const std::size_t octets : kSizes) {
        RingClient& source = cluster.client(0);
        ASSERT_TRUE(source.send(source.world, octets, Oracle::payload(octets, octets)));
        ++sent;
        for (std::size_t to = 1; to < 4; ++to)
            ASSERT_TRUE(wait_for(cluster, to, sent)) << octets;
    }
    expect_no_long_frames(cluster, 4);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// Nodes that all take long frames use them.
TEST(Mtu, a_job_of_long_frames_sends_long_packets) {
    SimCluster cluster(config_of({9000, 9000, 1500}));
    ASSERT_TRUE(cluster.form(2, own_node));
    const std::uint64_t before = cluster.net().stats(1).rx_frames;
    ASSERT_TRUE(cluster.client(0).send(1, 1, Oracle::payload(1, 64U << 10)));
    ASSERT_TRUE(wait_for(cluster, 1, 1));
    EXPECT_LT(cluster.net().stats(1).rx_frames - before, 16U);
}

// The interfaces take 9000 bytes, the port of the switch before one of them 1500.
// J-44
TEST(Mtu, messages_of_each_size_pass_a_switch_port_of_a_smaller_mtu) {
    SimCluster cluster(config_of({9000, 9000, 9000}));
    cluster.net().faults().set_longest(1, 1500);
    ASSERT_TRUE(cluster.form(3, own_node));
    std::size_t sent = 0;
    for (const std::size_t octets : kSizes) {
        RingClient& source = cluster.client(0);
        ASSERT_TRUE(source.send(source.world, octets, Oracle::payload(octets, octets)));
        ++sent;
        for (std::size_t to = 1; to < 3; ++to)
            ASSERT_TRUE(wait_for(cluster, to, sent)) << octets;
    }
    EXPECT_EQ(cluster.shut_down(), 0U);
}

/// Nodes of an MTU form a job. Then the path to one takes packets of `narrow` octets at most.
void expect_job_ends(std::uint16_t mtu, std::uint16_t narrow) {
    SimCluster cluster(config_of({mtu, mtu, mtu}));
    ASSERT_TRUE(cluster.form(3, own_node));
    ASSERT_TRUE(cluster.client(0).send(1, 1, Oracle::payload(1, 64U << 10)));
    ASSERT_TRUE(wait_for(cluster, 1, 1));
    cluster.net().faults().set_longest(1, narrow);
    RingClient& sender = cluster.client(0);
    ASSERT_TRUE(sender.send(1, 1, Oracle::payload(2, 64U << 10)));
    const Nanos narrowed = cluster.now();
    const auto ends = [&] { return sender.job_status == static_cast<int>(Err::kPortDown); };
    ASSERT_TRUE(cluster.run(10 * kSecond, ends, [&] {
        for (std::size_t n = 0; n < 3; ++n)
            cluster.client(n).poll();
    }));
    EXPECT_LE(cluster.now() - narrowed, 5 * kSecond);
    const std::string sentence = "packets of up to " + std::to_string(mtu) + " bytes reach node";
    EXPECT_NE(sender.job_text.find(sentence), std::string::npos) << sender.job_text;
    EXPECT_EQ(cluster.engine(0).counters().get(Counter::paths_narrowed), 1U);
    ASSERT_TRUE(cluster.run(
        kSecond, [&] { return cluster.client(2).peers_died == std::vector<Rank>{0}; },
        [&] { cluster.client(2).poll(); }));
}

// J-48
TEST(Mtu, a_path_that_narrows_under_a_job_ends_it_with_a_sentence) {
    expect_job_ends(9000, 1500);
    expect_job_ends(1500, 1000);
}

// J-48
TEST(Mtu, no_path_is_narrow_that_loses_half_of_all_frames) {
    SimCluster cluster(config_of({9000, 9000}));
    ASSERT_TRUE(cluster.form(2, own_node));
    FaultRates rates;
    rates.loss = 0.5;
    cluster.net().faults().set(rates);
    for (std::size_t n = 1; n <= 20; ++n) {
        ASSERT_TRUE(cluster.client(0).send(1, 1, Oracle::payload(n, 64U << 10)));
        ASSERT_TRUE(wait_for(cluster, 1, n)) << n;
    }
    EXPECT_EQ(cluster.engine(0).counters().get(Counter::paths_narrowed), 0U);
}

// J-48
TEST(Mtu, no_path_is_narrow_whose_receiver_takes_nothing_for_a_minute) {
    ClusterConfig config = config_of({9000, 9000});
    config.sizes = {256, 512, 1U << 20, 128U << 10};
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, own_node));
    std::size_t sent = 0;
    while (sent < 64 && cluster.client(0).send(1, 1, Oracle::payload(sent, 64U << 10)))
        ++sent;
    ASSERT_GT(sent, 8U) << "more than the receiver has space for";
    cluster.run(
        60 * kSecond, [] { return false; }, [&] { cluster.client(0).poll(); });
    EXPECT_EQ(cluster.engine(0).counters().get(Counter::paths_narrowed), 0U);
    EXPECT_TRUE(wait_for(cluster, 1, sent));
}

// L-41
TEST(Mtu, links_use_the_least_mtu_of_their_two_nodes) {
    SimCluster cluster(config_of({9000, 1000}));  // a link never has packets of more than 1500
    for (std::uint16_t n = 0; n < 2; ++n) {
        cluster.add_client(n);
        ASSERT_TRUE(cluster.client(n).open_links(4, static_cast<std::uint8_t>(1 + n)));
        cluster.touch(n);
    }
    const auto poll = [&] {
        for (std::size_t n = 0; n < 2; ++n)
            cluster.client(n).poll();
    };
    ASSERT_TRUE(cluster.run(
        kSecond, [&] { return cluster.client(0).links_open && cluster.client(1).links_open; },
        poll));
    RingClient& caller = cluster.client(0);
    const std::uint32_t cookie = caller.link(cluster.client(1).address);
    cluster.touch(0);
    ASSERT_TRUE(cluster.run(
        kSecond,
        [&] { return caller.link_done.contains(cookie) && !cluster.client(1).linked.empty(); },
        poll));
    ASSERT_EQ(caller.link_done[cookie].second, 0);
    const Rank to = caller.link_done[cookie].first;
    const Rank back = cluster.client(1).linked.back().first;
    std::size_t got = 0;
    for (const std::size_t octets : kSizes) {
        ++got;
        ASSERT_TRUE(caller.send(to, octets, Oracle::payload(octets, octets)));
        cluster.touch(0);
        ASSERT_TRUE(wait_for(cluster, 1, got)) << octets;
        ASSERT_TRUE(cluster.client(1).send(back, octets, Oracle::payload(octets, octets)));
        cluster.touch(1);
        ASSERT_TRUE(wait_for(cluster, 0, got)) << octets;
    }
    expect_no_long_frames(cluster, 2);
}

}  // namespace
}  // namespace ulc::sim
