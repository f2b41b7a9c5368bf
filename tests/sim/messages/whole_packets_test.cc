// SPDX-License-Identifier: BSD-3-Clause
// Messages that one packet carries whole, longer than a record holds: the fast path takes them from
// the arena of their sender into a block of their receiver. Their lengths go beyond a packet, so
// that both ways alternate.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/prng.h"
#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {
namespace {

constexpr std::uint32_t kMtu = 1500;

std::vector<std::byte> payload_of(std::uint64_t tag, std::size_t octets) {
    std::vector<std::byte> payload(octets);
    for (std::size_t i = 0; i < octets; ++i)
        payload[i] = static_cast<std::byte>(tag * 31 + i * 7 + i / 251);
    return payload;
}

class WholePackets : public ::testing::Test {
protected:
    void open(std::uint16_t nodes = 2) {
        ASSERT_TRUE(cluster_.form(
            2, [nodes](std::size_t n) { return static_cast<std::uint16_t>(n % nodes); }));
    }
    /// Sends a message from one rank to the other and waits for it and for its answer.
    void move(Rank from, std::size_t octets) {
        const std::uint64_t tag = ++number_;
        RingClient& sender = cluster_.client(from);
        RingClient& receiver = cluster_.client(1U - from);
        const auto payload = payload_of(tag, octets);
        const std::size_t answers = sender.sends_done.size();
        ASSERT_TRUE(sender.send(static_cast<Rank>(1 - from), tag, payload));
        ASSERT_TRUE(run([&] {
            const bool answered =
                octets <= abi::kInlineOctetsMax || sender.sends_done.size() > answers;
            return answered && !receiver.messages.empty();
        })) << octets;
        ASSERT_EQ(receiver.messages.size(), 1U);
        ASSERT_EQ(receiver.messages[0].tag, tag);
        ASSERT_TRUE(receiver.messages[0].payload == payload) << octets;
        receiver.messages.clear();
    }
    template <typename Done>
    bool run(Done done) {
        return cluster_.run(10 * kMillisecond, done, [this] {
            for (Rank rank = 0; rank < 2; ++rank)
                cluster_.client(rank).poll();
        });
    }
    /// Submits a record that no correct client writes, in quiet, behind messages that were
    /// predicted.
    void expect_corrupt(std::uint32_t offset, std::uint32_t octets, std::uint64_t whole) {
        open();
        for (int turn = 0; turn < 4; ++turn) {
            move(0, 100);
            move(1, 100);
        }
        RingClient& hostile = cluster_.client(0);
        abi::SubmissionRecord record{};
        record.kind = abi::SubmitKind::kSend;
        record.stream = 1;
        record.cookie = 77;
        record.flags = abi::kSubmitFirst | abi::kSubmitLast;
        record.body.block = {offset, octets, whole, 0, 0, 0};
        ASSERT_TRUE(hostile.submit(record));
        EXPECT_TRUE(run([&] { return hostile.closed() != 0; }));
        EXPECT_EQ(hostile.closed(), static_cast<int>(Err::kCorrupt));
        EXPECT_TRUE(cluster_.client(1).messages.empty());
        EXPECT_EQ(cluster_.client(1).closed(), 0);
    }
    void TearDown() override { EXPECT_EQ(cluster_.shut_down(), 0U) << "segments leaked"; }

    SimCluster cluster_{{}};
    std::uint64_t number_ = 0;
};

TEST_F(WholePackets, arrive_as_they_were_sent_at_each_length) {
    open();
    for (std::size_t octets = 0; octets < 200 && !HasFatalFailure(); ++octets) {
        move(0, octets);
        move(1, octets);
    }
    for (std::size_t octets = kMtu - 60; octets < kMtu + 20 && !HasFatalFailure(); ++octets) {
        move(0, octets);
        move(1, octets);
    }
}

// No answer brings an acknowledgement along, so a frame of the longest one inside a completion has
// space for a longer message.
TEST_F(WholePackets, arrive_one_way_at_each_length) {
    open();
    for (std::size_t octets = 0; octets < 200 && !HasFatalFailure(); ++octets)
        move(0, octets);
}

TEST_F(WholePackets, arrive_on_the_same_node_at_each_length) {
    open(1);
    for (std::size_t octets = 0; octets < 4000 && !HasFatalFailure(); octets += 1 + octets / 16) {
        move(0, octets);
        move(1, octets);
    }
}

TEST_F(WholePackets, keep_their_order_in_bursts_of_any_length) {
    open();
    Prng random(7);
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    const auto take = [&] {
        for (const Message& message : cluster_.client(1).messages) {
            ASSERT_EQ(message.tag, ++received);
            ASSERT_TRUE(message.payload == payload_of(received, message.payload.size()));
        }
        cluster_.client(1).messages.clear();
    };
    for (int turn = 0; turn < 500 && !HasFatalFailure(); ++turn) {
        for (std::uint64_t n = random.below(12); n > 0; --n) {
            const std::size_t octets = random.below(random.chance(0.8) ? 120 : 3000);
            if (!cluster_.client(0).send(1, sent + 1, payload_of(sent + 1, octets))) break;
            ++sent;
        }
        (void)cluster_.run(
            static_cast<Nanos>(random.below(20)) * kMicrosecond, [] { return false; },
            [this] {
                cluster_.client(0).poll();
                cluster_.client(1).poll();
            });
        take();
    }
    EXPECT_TRUE(run([&] {
        take();
        return received == sent;
    }));
    EXPECT_GT(sent, 1000U);
}

TEST_F(WholePackets, of_a_length_that_the_message_has_not_are_refused) {
    expect_corrupt(0, 100, 101);
}

TEST_F(WholePackets, outside_of_the_arena_are_refused) {
    expect_corrupt((256U << 10) - 50, 100, 100);
}

}  // namespace
}  // namespace ulc::sim
