// SPDX-License-Identifier: BSD-3-Clause
// Tests clients in their engine's process (abi::Reach::kProcess): payloads that frames refer to. A
// payload is freed when the send is done, so the address sanitizer finds a later read.
#include <gtest/gtest.h>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kLong = 100'000;

std::uint16_t own_node(std::size_t n) { return static_cast<std::uint16_t>(n); }

ClusterConfig embedded(std::uint16_t ports, double loss = 0) {
    ClusterConfig config;
    config.net.ports = ports;
    config.net.mtu = 9000;
    config.net.faults = {.loss = loss};
    config.sizes = {256, 512, 256U << 10, 256U << 10};
    config.embedded = Embedded::kAll;
    return config;
}

void expect_message(const Message& message, std::uint64_t tag, std::size_t octets) {
    EXPECT_EQ(message.tag, tag);
    EXPECT_EQ(message.payload, Oracle::payload(tag, octets));
}

TEST(Direct, a_payload_is_the_engines_until_every_receiver_has_it) {
    SimCluster cluster(embedded(3));
    ASSERT_TRUE(cluster.form(3, own_node));
    RingClient& source = cluster.client(0);
    cluster.pause_node(2, cluster.now() + 50 * kMillisecond);
    const std::uint32_t cookie = source.cookie_next();
    ASSERT_TRUE(source.send(source.world, 7, Oracle::payload(7, kLong)));
    const Nanos resumes = cluster.now() + 50 * kMillisecond;
    ASSERT_TRUE(cluster.run(
        kSecond, [&] { return source.sends_done.contains(cookie); },
        [&] {
            for (std::size_t n = 0; n < 3; ++n)
                cluster.client(n).poll();
        }));
    EXPECT_GE(cluster.now(), resumes) << "one receiver did not have it yet";
    EXPECT_EQ(cluster.client(1).messages.size(), 1U);
    ASSERT_TRUE(cluster.run(
        kSecond, [&] { return !cluster.client(2).messages.empty(); },
        [&] { cluster.client(2).poll(); }));
    expect_message(cluster.client(2).messages[0], 7, kLong);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(Direct, one_that_waits_for_its_receiver_holds_no_other_back) {
    SimCluster cluster(embedded(3));
    ASSERT_TRUE(cluster.form(3, own_node));
    RingClient& source = cluster.client(0);
    cluster.pause_node(1, cluster.now() + 200 * kMillisecond);
    const std::uint32_t slow = source.cookie_next();
    ASSERT_TRUE(source.send(1, 1, Oracle::payload(1, kLong)));
    const std::uint32_t quick = source.cookie_next();
    ASSERT_TRUE(source.send(2, 2, Oracle::payload(2, kLong)));
    ASSERT_TRUE(cluster.run(
        100 * kMillisecond, [&] { return source.sends_done.contains(quick); },
        [&] {
            source.poll();
            cluster.client(2).poll();
        }));
    EXPECT_FALSE(source.sends_done.contains(slow));
    ASSERT_TRUE(cluster.run(
        kSecond, [&] { return source.sends_done.contains(slow); }, [&] { source.poll(); }));
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// Retransmissions read the payload again; members of the sender's node read it from the frame.
TEST(Direct, long_messages_to_all_under_loss_also_on_the_same_node) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        ClusterConfig config = embedded(2, 0.05);
        config.seed = config.net.seed = seed;
        config.embedded = seed % 2 == 0 ? Embedded::kAll : Embedded::kHalf;
        SimCluster cluster(config);
        ASSERT_TRUE(
            cluster.form(4, [](std::size_t n) { return static_cast<std::uint16_t>(n % 2); }));
        for (std::size_t n = 0; n < 4; ++n)
            ASSERT_TRUE(
                cluster.client(n).send(cluster.client(n).world, n, Oracle::payload(n, kLong + n)));
        const auto all_have_all = [&] {
            for (std::size_t n = 0; n < 4; ++n)
                if (cluster.client(n).messages.size() < 3 || cluster.client(n).sends_done.empty())
                    return false;
            return true;
        };
        ASSERT_TRUE(cluster.run(20 * kSecond, all_have_all,
                                [&] {
                                    for (std::size_t n = 0; n < 4; ++n)
                                        cluster.client(n).poll();
                                }))
            << "seed " << seed;
        for (std::size_t n = 0; n < 4; ++n) {
            EXPECT_EQ(cluster.client(n).broken, 0U);
            for (const Message& message : cluster.client(n).messages)
                expect_message(message, message.source, kLong + message.source);
        }
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

/// Client 0 sends a long message, of which the first packet is lost and more than `frames` leave.
bool send_and_lose_the_first(SimCluster& cluster, std::uint64_t frames) {
    cluster.net().faults().lose_next(0, 1, 1);
    if (!cluster.client(0).send(1, 3, Oracle::payload(3, kLong))) return false;
    cluster.touch(0);
    const std::uint64_t before = cluster.net().stats(0).tx_frames;
    return cluster.run(kSecond, [&] { return cluster.net().stats(0).tx_frames > before + frames; });
}

TEST(Direct, what_a_dead_client_sent_from_is_not_read_any_more) {
    SimCluster cluster(embedded(2));
    ASSERT_TRUE(cluster.form(2, own_node));
    ASSERT_TRUE(send_and_lose_the_first(cluster, 11));
    // Its memory is lost with it; the first packet must still be retransmitted
    cluster.kill_client(0);
    ASSERT_TRUE(cluster.run(
        5 * kSecond, [&] { return !cluster.client(1).messages.empty(); },
        [&] { cluster.client(1).poll(); }));
    expect_message(cluster.client(1).messages[0], 3, kLong);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(Direct, what_a_dead_client_had_still_to_send_is_not_read) {
    ClusterConfig config = embedded(2);
    config.engine.params.window = 4;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, own_node));
    ASSERT_TRUE(send_and_lose_the_first(cluster, 2));
    cluster.kill_client(0);
    ASSERT_TRUE(cluster.run(
        5 * kSecond, [&] { return !cluster.client(1).peers_died.empty(); },
        [&] { cluster.client(1).poll(); }));
    EXPECT_TRUE(cluster.client(1).messages.empty());
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// A send that fails half-way is answered at once, and its payload freed; the port holds frames of
// it that it has not taken.
TEST(Direct, a_send_that_fails_half_way_lets_go_of_its_payload) {
    for (const bool group : {false, true}) {
        ClusterConfig config = embedded(2);
        config.hosts = {HostCosts{}};
        config.hosts[0].tx_ring_frames = 2;
        SimCluster cluster(config);
        ASSERT_TRUE(cluster.form(2, own_node));
        RingClient& source = cluster.client(0);
        const std::uint32_t cookie = source.cookie_next();
        ASSERT_TRUE(source.send(group ? source.world : 1, 3, Oracle::payload(3, 4U << 20)));
        cluster.touch(0);
        const std::uint64_t before = cluster.net().stats(0).tx_frames;
        ASSERT_TRUE(
            cluster.run(kSecond, [&] { return cluster.net().stats(0).tx_frames > before + 20; }));
        cluster.kill_node(1);
        ASSERT_TRUE(cluster.run(
            60 * kSecond, [&] { return source.sends_done.contains(cookie); },
            [&] { source.poll(); }));
        EXPECT_EQ(source.sends_done.at(cookie), static_cast<int>(Err::kPeerDied)) << group;
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

TEST(Direct, only_who_shares_the_process_may_name_its_memory) {
    ClusterConfig config = embedded(2);
    config.embedded = Embedded::kNone;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, own_node));
    const std::vector<std::byte> secret(5000);
    abi::SubmissionRecord record{};
    record.kind = abi::SubmitKind::kSend;
    record.stream = 1;
    record.flags = abi::kSubmitFirst | abi::kSubmitLast | abi::kSubmitDirect;
    record.body.block = {0, 5000, 5000, 0, 0, std::bit_cast<std::uintptr_t>(secret.data())};
    ASSERT_TRUE(cluster.client(0).submit(record));
    cluster.touch(0);
    EXPECT_TRUE(cluster.run(kSecond, [&] { return cluster.client(0).closed() != 0; }));
    EXPECT_EQ(cluster.client(0).closed(), static_cast<int>(Err::kCorrupt));
    EXPECT_TRUE(cluster.client(1).messages.empty());
    EXPECT_EQ(cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
