// SPDX-License-Identifier: BSD-3-Clause
// The figures of endpoints and peers (engine/figures.cc) name the rank that loses packets. They
// also name the rank that does not acknowledge. Rows are bounded and only of the user that asks,
// and their sums are the engine's counters.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/sim/messages/flood.h"

namespace ulc::sim {
namespace {

constexpr Rank kRanks = 4;
constexpr Rank kLoser = 2;

abi::EndpointRow row_of(SimCluster& cluster, Rank rank) {
    std::array<abi::EndpointRow, 4> rows{};
    EXPECT_EQ(cluster.engine(cluster.node_of(rank)).take_figures(rows), 1U);
    EXPECT_EQ(rows[0].rank, rank);
    return rows[0];
}

std::vector<abi::StreamRow> streams_of(SimCluster& cluster, Rank rank) {
    std::vector<abi::StreamRow> rows(64);
    rows.resize(cluster.engine(cluster.node_of(rank)).take_streams(rows, nullptr));
    return rows;
}

/// Fails unless the rows of all ranks together have what the engines counted.
void expect_sums(const SimCluster& cluster, std::span<const abi::EndpointRow> rows) {
    std::uint64_t repairs = 0;
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
    for (const abi::EndpointRow& row : rows) {
        repairs += row.repairs_sent;
        received += row.requests_received;
        sent += row.requests_sent;
    }
    EXPECT_GT(repairs, 0U);
    EXPECT_EQ(repairs,
              cluster.count(Counter::repair_unicast) + cluster.count(Counter::repair_multicast));
    EXPECT_EQ(received, cluster.count(Counter::req_received));
    EXPECT_EQ(sent, cluster.count(Counter::req_sent));
}

/// Sends `messages` from each rank of a new job to each other one, by unicast in turns.
void send_to_each(SimCluster& cluster, std::size_t messages) {
    ASSERT_TRUE(cluster.form(kRanks, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    const std::vector<std::byte> payload(100);
    std::array<std::size_t, kRanks> sent{};
    const auto take_and_send = [&] {
        for (Rank rank = 0; rank < kRanks; ++rank) {
            RingClient& client = cluster.client(rank);
            client.poll();
            while (sent[rank] < messages * kRanks) {
                const auto to = static_cast<Rank>(sent[rank] % kRanks);
                if (to != rank && !client.send(to, 1, payload)) break;
                ++sent[rank];
            }
        }
    };
    const auto all_arrived = [&] {
        for (Rank rank = 0; rank < kRanks; ++rank)
            if (cluster.client(rank).messages.size() < messages * (kRanks - 1)) return false;
        return true;
    };
    EXPECT_TRUE(cluster.run(30 * kSecond, all_arrived, take_and_send));
}

/// Sends messages of each rank to all others, by multicast or by unicast, at 3 % loss before one
/// rank.
void send_with_a_loser(SimCluster& cluster, bool multicast) {
    FaultRates rates;
    rates.loss = 0.03;
    cluster.net().faults().set_receiver(kLoser, rates);
    multicast ? flood(cluster, kRanks, 100, 400) : send_to_each(cluster, 400);
}

class RepairCounts : public testing::TestWithParam<std::tuple<bool, std::uint64_t>> {};

TEST_P(RepairCounts, name_the_rank_that_loses) {
    const auto [multicast, upgrade_every] = GetParam();
    ClusterConfig config;
    config.net.ports = kRanks;
    config.upgrade_every = upgrade_every;
    SimCluster cluster(config);
    send_with_a_loser(cluster, multicast);
    EXPECT_EQ(cluster.upgrade_error(), "");
    EXPECT_EQ(cluster.upgrades() > 0, upgrade_every > 0);
    std::vector<abi::EndpointRow> rows;
    for (Rank rank = 0; rank < kRanks; ++rank)
        rows.push_back(row_of(cluster, rank));
    expect_sums(cluster, rows);
    for (const abi::EndpointRow& row : rows) {
        if (row.rank == kLoser) {
            EXPECT_GT(row.requests_sent, 0U);
            EXPECT_NE(row.asked_rank, abi::kNoRowRank);
            continue;
        }
        EXPECT_EQ(row.repairs_rank, kLoser);
        EXPECT_EQ(row.asks_rank, kLoser);
        EXPECT_GT(row.requests_received, 0U);
        // Repairs for several at once are of no rank.
        EXPECT_LE(row.repairs_max, row.repairs_sent);
        EXPECT_GT(2 * row.repairs_max, row.repairs_sent);
    }
    EXPECT_EQ(cluster.shut_down(), 0U);
}

INSTANTIATE_TEST_SUITE_P(, RepairCounts,
                         testing::Combine(testing::Bool(), testing::Values(0U, 200U)));

TEST(RepairCountsOfStreams, are_those_of_the_endpoint_by_peer) {
    ClusterConfig config;
    config.net.ports = kRanks;
    SimCluster cluster(config);
    send_with_a_loser(cluster, false);
    const abi::EndpointRow all = row_of(cluster, 0);
    const std::vector<abi::StreamRow> streams = streams_of(cluster, 0);
    ASSERT_EQ(streams.size(), kRanks - 1U);
    std::uint32_t repairs = 0;
    for (std::size_t n = 0; n < streams.size(); ++n) {
        EXPECT_EQ(streams[n].endpoint, all.endpoint);
        EXPECT_EQ(streams[n].rank, 0U);
        EXPECT_EQ(streams[n].peer, n + 1);
        EXPECT_GT(streams[n].rtt_ns, 0U);
        repairs += streams[n].repairs_sent;
        if (streams[n].peer != kLoser) continue;
        EXPECT_EQ(streams[n].repairs_sent, all.repairs_max);
        EXPECT_EQ(streams[n].requests_received, all.asks_max);
    }
    EXPECT_EQ(repairs, all.repairs_sent);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(RepairCountsOfStreams, are_bounded_and_only_of_the_user_that_asks) {
    ClusterConfig config;
    config.net.ports = kRanks;
    SimCluster cluster(config);
    flood(cluster, kRanks, 100, 10);
    std::array<abi::StreamRow, 2> rows{};
    rows[1].peer = 77;
    const engine::UserId own = 0;
    const engine::UserId other = 7;
    EXPECT_EQ(cluster.engine(0).take_streams(std::span(rows).first(1), &own), kRanks - 1U);
    EXPECT_EQ(rows[0].peer, 1U);
    EXPECT_EQ(rows[1].peer, 77U);
    EXPECT_EQ(cluster.engine(0).take_streams(rows, &other), 0U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(RepairCountsOfStreams, name_the_rank_that_does_not_acknowledge) {
    ClusterConfig config;
    config.net.ports = kRanks;
    SimCluster cluster(config);
    send_to_each(cluster, 10);
    const auto never = [] { return false; };
    cluster.run(100 * kMillisecond, never, [] {});
    EXPECT_EQ(row_of(cluster, 0).unacked_rank, abi::kNoRowRank);
    cluster.net().faults().cut(0, kLoser, true);
    RingClient& sender = cluster.client(0);
    const std::vector<std::byte> payload(8);
    ASSERT_TRUE(sender.send(sender.world, 1, payload));
    ASSERT_TRUE(sender.send(sender.world, 1, payload));
    ASSERT_TRUE(sender.send(1, 1, payload));
    cluster.run(100 * kMillisecond, never, [] {});
    const abi::EndpointRow row = row_of(cluster, 0);
    EXPECT_EQ(row.unacked_rank, kLoser);
    EXPECT_EQ(row.unacked_max, 2U);
    for (const abi::StreamRow& stream : streams_of(cluster, 0))
        EXPECT_EQ(stream.unacked, stream.peer == kLoser ? 2U : 0U) << stream.peer;
    cluster.net().faults().heal();
    EXPECT_EQ(cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
