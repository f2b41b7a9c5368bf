// SPDX-License-Identifier: BSD-3-Clause
// Tests clients that write anything anywhere at any time (DECISIONS, 4). The engine must not
// crash, must close such an endpoint, and others must not notice. The address and
// undefined-behaviour sanitizers make these tests stronger.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/random_traffic.h"

namespace ulc::sim {
namespace {

constexpr std::uint16_t kNodes = 2;

class Hostile {
public:
    enum class Style : std::uint8_t { kRecords, kCursors, kScribble };

    Hostile(SimCluster& cluster, Style style, std::uint64_t seed)
        : cluster_(cluster), style_(style), prng_(seed) {
        renew();
    }

    void tick() {
        RingClient& client = cluster_.client(index_);
        client.poll(static_cast<unsigned>(prng_.below(4)));
        client.messages.clear();
        client.sends_done.clear();
        if (client.closed() != 0) {
            ++closed_;
            cluster_.kill_client(index_);
            renew();
            return;
        }
        // In half of the cases the client first behaves correctly for a while, so that there is
        // state to break.
        if (++age_ < honest_for_) return;
        switch (style_) {
            case Style::kRecords:
                for (int n = 0; n < 3; ++n)
                    (void)client.submit(random_record());
                return;
            case Style::kCursors:
                // Answers fill the completion ring, so that the engine needs the cursor.
                for (int n = 0; n < 8; ++n)
                    (void)client.add_group(1, std::array<Rank, 1>{9});
                client.region().control().cq_consumed.store(
                    static_cast<std::uint32_t>(prng_.next()));
                return;
            case Style::kScribble:
                scribble();
                return;
        }
    }
    [[nodiscard]] unsigned closed() const noexcept { return closed_; }

private:
    void renew() {
        index_ = cluster_.add_client(static_cast<std::uint16_t>(prng_.below(kNodes)));
        age_ = 0;
        honest_for_ = prng_.chance(0.5) ? 300 : 0;
        // Forms a separate job, so that honest ranks get none of its messages.
        (void)cluster_.client(index_).join("bad" + std::to_string(index_), 0, 1);
    }

    abi::SubmissionRecord random_record() {
        abi::SubmissionRecord record;
        auto* octets = reinterpret_cast<unsigned char*>(&record);
        for (std::size_t n = 0; n < sizeof record; ++n)
            octets[n] = static_cast<unsigned char>(prng_.next());
        if (prng_.chance(0.9)) record.kind = static_cast<abi::SubmitKind>(1 + prng_.below(11));
        if (prng_.chance(0.9)) record.flags &= 0x7f;
        if (prng_.chance(0.5))
            record.inline_length =
                static_cast<std::uint16_t>(prng_.below(abi::kInlineOctetsMax + 8));
        if (prng_.chance(0.5)) record.stream = static_cast<std::uint32_t>(prng_.below(4));
        if (prng_.chance(0.3)) record.stream = cluster_.client(index_).world;
        if (prng_.chance(0.7) && (record.flags & abi::kSubmitInline) == 0) {
            const std::uint32_t arena = cluster_.client(index_).region().layout().tx_arena_octets;
            record.body.block.offset = static_cast<std::uint32_t>(prng_.below(arena + 100)) & ~63U;
            record.body.block.length = static_cast<std::uint32_t>(prng_.below(arena / 8));
            if (prng_.chance(0.5)) record.body.block.message_length = record.body.block.length;
        }
        return record;
    }

    void scribble() {
        const abi::Region& region = cluster_.client(index_).region();
        auto* base = static_cast<unsigned char*>(region.base());
        const std::uint64_t size = region.layout().region_octets;
        // Mostly the control page and the rings, where damage matters most.
        const std::uint64_t bound = prng_.chance(0.8) ? region.layout().tx_arena_offset : size;
        for (int n = 0; n < 64; ++n)
            base[prng_.below(bound)] = static_cast<unsigned char>(prng_.below(8));
    }

    SimCluster& cluster_;
    Style style_;
    Prng prng_;
    std::size_t index_ = 0;
    unsigned closed_ = 0;
    unsigned age_ = 0;
    unsigned honest_for_ = 0;
};

class HostileClient : public testing::TestWithParam<Hostile::Style> {};

TEST_P(HostileClient, hurts_itself_only) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        ClusterConfig config;
        config.seed = seed;
        config.net.seed = seed;
        config.net.ports = kNodes;
        config.net.faults = {.loss = 0.01, .duplicate = 0.01, .reorder = 0.01};
        config.engine.linger_max = 50 * kMillisecond;
        SimCluster cluster(config);
        ASSERT_TRUE(
            cluster.form(4, [](std::size_t n) { return static_cast<std::uint16_t>(n % 2); }));
        Traffic traffic(cluster, 4, {.messages = 100, .own_groups = false}, seed);
        traffic.start();
        Hostile hostile(cluster, GetParam(), seed);
        const bool done = cluster.run(
            20 * kSecond,
            [&] {
                return traffic.finished() && (hostile.closed() >= 20 || cluster.now() > kSecond);
            },
            [&] { hostile.tick(); });
        EXPECT_TRUE(done) << "seed " << seed << ", still due: " << traffic.oracle().outstanding();
        EXPECT_EQ(traffic.error(), "") << "seed " << seed;
        if (GetParam() != Hostile::Style::kScribble) {
            EXPECT_GT(hostile.closed(), 0U);
        }
        for (Rank rank = 0; rank < 4; ++rank) {
            EXPECT_EQ(cluster.client(rank).closed(), 0);
            EXPECT_EQ(cluster.client(rank).broken, 0U);
            EXPECT_TRUE(cluster.client(rank).peers_died.empty());
        }
        EXPECT_EQ(cluster.shut_down(), 0U) << "segments leaked, seed " << seed;
    }
}

std::string name_of(const testing::TestParamInfo<Hostile::Style>& one) {
    switch (one.param) {
        case Hostile::Style::kRecords:
            return "records";
        case Hostile::Style::kCursors:
            return "cursors";
        case Hostile::Style::kScribble:
            return "scribble";
    }
    return "";
}

INSTANTIATE_TEST_SUITE_P(Styles, HostileClient,
                         testing::Values(Hostile::Style::kRecords, Hostile::Style::kCursors,
                                         Hostile::Style::kScribble),
                         name_of);

// Blocks are validated when memory is wanted: by the next delivery.
TEST(HostileRelease, a_block_that_the_client_does_not_hold_closes_its_endpoint) {
    for (const std::uint32_t bad : {64U, 1U << 20, 0x00ffffffU * abi::kReleaseUnit}) {
        SimCluster cluster({});
        ASSERT_TRUE(cluster.form(2, [](std::size_t) { return std::uint16_t{0}; }));
        RingClient& hostile = cluster.client(1);
        const auto deliver_one = [&] {
            const std::size_t had = hostile.messages.size();
            ASSERT_TRUE(cluster.client(0).send(1, 0, Oracle::payload(1, 1000)));
            (void)cluster.run(
                kMillisecond,
                [&] { return hostile.messages.size() > had || hostile.closed() != 0; },
                [&] { hostile.poll(); });
        };
        hostile.keep_blocks();
        deliver_one();
        ASSERT_EQ(hostile.messages.size(), 1U);
        ASSERT_EQ(hostile.closed(), 0);
        hostile.release(bad);
        deliver_one();
        EXPECT_EQ(hostile.closed(), static_cast<int>(Err::kCorrupt));
        EXPECT_EQ(cluster.count(Counter::client_bad_record), 1U);
        EXPECT_EQ(cluster.client(0).closed(), 0);
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

// ---------------------------------------------------------------- subsets of messages in chunks

constexpr std::uint32_t kChunkOctets = 4096;

/// Makes a chunk of a message of two, to the group; subset 0: to all.
abi::SubmissionRecord chunk(GroupHandle group, bool first, std::uint64_t subset) {
    abi::SubmissionRecord record{};
    record.kind = abi::SubmitKind::kSend;
    record.stream = group;
    record.cookie = first ? 1001 : 1002;
    record.flags = static_cast<std::uint8_t>((first ? abi::kSubmitFirst : abi::kSubmitLast) |
                                             (subset != 0 ? abi::kSubmitHasSubset : 0));
    record.body.block = {0, kChunkOctets, 2ULL * kChunkOctets, subset, 0, 0};
    return record;
}

/// Forms a job of `ranks` on two nodes; submits the first chunk and waits until it was sent.
void send_first_chunk(SimCluster& cluster, std::uint16_t ranks, GroupHandle group,
                      std::uint64_t subset) {
    if (cluster.size() == 0) {
        ASSERT_TRUE(
            cluster.form(ranks, [](std::size_t n) { return static_cast<std::uint16_t>(n % 2); }));
    }
    RingClient& sender = cluster.client(0);
    ASSERT_TRUE(sender.submit(chunk(group != 0 ? group : sender.world, true, subset)));
    ASSERT_TRUE(cluster.run(
        kSecond, [&] { return sender.sends_done.contains(1001); },
        [&] {
            for (std::size_t n = 0; n < cluster.size(); ++n)
                cluster.client(n).poll();
        }));
}

/// Polls all clients until the first one is closed or has the answer to its second chunk.
void wait_for_second_chunk(SimCluster& cluster) {
    ASSERT_TRUE(cluster.run(
        kSecond,
        [&] {
            return cluster.client(0).closed() != 0 || cluster.client(0).sends_done.contains(1002);
        },
        [&] {
            for (std::size_t n = 0; n < cluster.size(); ++n)
                cluster.client(n).poll();
        }));
}

ClusterConfig large_cluster() {
    ClusterConfig config;
    config.net.ports = kNodes;
    config.engine.endpoints_max = 64;
    return config;
}

// Sets of ranks are stored in words of 64 bits.
TEST(HostileChunk, without_a_first_one_fails_alone) {
    constexpr std::uint16_t kRanks = 3;
    for (const std::uint32_t stream : {1U, 2U, 3U, 40U, 63U, 64U, 0xffffU}) {
        SimCluster cluster(large_cluster());
        ASSERT_TRUE(
            cluster.form(kRanks, [](std::size_t n) { return static_cast<std::uint16_t>(n % 2); }));
        ASSERT_TRUE(cluster.client(0).submit(chunk(stream, false, 0)));
        wait_for_second_chunk(cluster);
        (void)cluster.run(
            kMillisecond, [] { return false; }, [&] { cluster.client(0).poll(); });
        EXPECT_EQ(cluster.client(0).closed(), 0);
        EXPECT_EQ(cluster.client(0).sends_done[1002], static_cast<int>(Err::kInvalid));
        EXPECT_TRUE(cluster.client(0).reports.empty()) << "rank " << stream << " lives, or is none";
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

struct Change {
    std::uint16_t ranks;
    std::uint64_t first;
    std::uint64_t second;
};

class HostileSubset : public testing::TestWithParam<Change> {};

TEST_P(HostileSubset, that_changes_between_chunks_closes_the_endpoint) {
    SimCluster cluster(large_cluster());
    send_first_chunk(cluster, GetParam().ranks, 0, GetParam().first);
    ASSERT_EQ(cluster.client(0).closed(), 0);
    ASSERT_TRUE(cluster.client(0).submit(chunk(cluster.client(0).world, false, GetParam().second)));
    wait_for_second_chunk(cluster);
    EXPECT_EQ(cluster.client(0).closed(), static_cast<int>(Err::kCorrupt));
    EXPECT_EQ(cluster.client(1).closed(), 0);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Chunks, HostileSubset,
                         testing::Values(Change{4, 0b0010, 0b0100}, Change{4, 0b0010, 0},
                                         Change{4, 0, 0b0010}, Change{4, 0b0010, 0xf0},
                                         Change{70, 0, 0b0010}));

// F-15
TEST(HostileSubsets, the_same_subset_in_each_chunk_arrives) {
    SimCluster cluster(large_cluster());
    send_first_chunk(cluster, 4, 0, 0b0110);
    ASSERT_TRUE(cluster.client(0).submit(chunk(cluster.client(0).world, false, 0b0110)));
    wait_for_second_chunk(cluster);
    ASSERT_TRUE(cluster.run(
        kSecond,
        [&] { return !cluster.client(1).messages.empty() && !cluster.client(2).messages.empty(); },
        [&] {
            for (std::size_t n = 0; n < cluster.size(); ++n)
                cluster.client(n).poll();
        }));
    EXPECT_EQ(cluster.client(1).messages[0].payload.size(), 2 * kChunkOctets);
    EXPECT_TRUE(cluster.client(3).messages.empty());
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// The later chunk repeats the subset, but the handle names another group, which has no subsets.
TEST(HostileSubsets, a_group_made_again_with_more_members_fails_the_rest_of_the_message) {
    constexpr std::uint16_t kRanks = 70;
    constexpr GroupHandle kOwn = 0x80001234U;
    SimCluster cluster(large_cluster());
    ASSERT_TRUE(
        cluster.form(kRanks, [](std::size_t n) { return static_cast<std::uint16_t>(n % 2); }));
    const auto make = [&](std::uint16_t size) {
        std::vector<Rank> ranks(size);
        for (Rank rank = 0; rank < size; ++rank)
            ranks[rank] = rank;
        for (Rank rank = 0; rank < size; ++rank)
            ASSERT_TRUE(cluster.client(rank).add_group(kOwn, ranks));
        ASSERT_TRUE(cluster.run(
            kSecond,
            [&] {
                for (Rank rank = 0; rank < size; ++rank)
                    if (!cluster.client(rank).groups.contains(kOwn)) return false;
                return true;
            },
            [&] {
                for (std::size_t n = 0; n < cluster.size(); ++n)
                    cluster.client(n).poll();
            }));
        ASSERT_EQ(cluster.client(0).groups.at(kOwn), 0);
    };
    make(4);
    send_first_chunk(cluster, kRanks, kOwn, 0b0110);
    const auto wait = [&] {
        (void)cluster.run(
            100 * kMillisecond, [] { return false; },
            [&] {
                for (std::size_t n = 0; n < cluster.size(); ++n)
                    cluster.client(n).poll();
            });
    };
    wait();  // for acknowledgements
    for (Rank rank = 0; rank < 4; ++rank) {
        ASSERT_TRUE(cluster.client(rank).remove_group(kOwn));
        cluster.client(rank).groups.clear();
    }
    wait();
    make(kRanks);
    ASSERT_TRUE(cluster.client(0).submit(chunk(kOwn, false, 0b0110)));
    wait_for_second_chunk(cluster);
    EXPECT_EQ(cluster.client(0).closed(), 0);
    EXPECT_EQ(cluster.client(0).sends_done.at(1002), static_cast<int>(Err::kInvalid));
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// Frames from any sender: the engine parses, counts and drops them.
// F-28
TEST(HostileWire, random_frames_are_counted_and_dropped) {
    ClusterConfig config;
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    Traffic traffic(cluster, 2, {.messages = 200}, 5);
    traffic.start();
    Prng prng(5);
    const bool done = cluster.run(
        20 * kSecond, [&] { return traffic.finished(); },
        [&] {
            std::byte frame[200];
            for (auto& octet : frame)
                octet = static_cast<std::byte>(prng.next());
            const Mac to = SimNet::mac_of(0);
            std::memcpy(frame, &to, sizeof to);
            const Mac from = SimNet::mac_of(1);
            if (prng.chance(0.5)) std::memcpy(frame + 6, &from, sizeof from);
            frame[12] = std::byte{0x88};
            frame[13] = std::byte{0xB5};
            frame[14] = static_cast<std::byte>(0x10 | (1 + prng.below(7)));
            if (prng.chance(0.3)) frame[14] = static_cast<std::byte>(6 + prng.below(2));
            if (prng.chance(0.6)) {  // an honest handle and rank, so that the transport sees it
                const std::uint32_t handle = cluster.endpoint(0);
                const Be32 wire_handle = handle;
                std::memcpy(frame + 18, &wire_handle, 4);
                frame[22] = std::byte{0};
                frame[23] = std::byte{1};
                frame[15] = std::byte{0};
                frame[16] = std::byte{0};
            }
            cluster.net().inject(0, frame, 60 + static_cast<std::uint32_t>(prng.below(140)));
        });
    // A forger on the segment may forge data; it must neither crash the engine nor make it leak.
    // Delivery of the traffic is not promised under forged acknowledgements.
    (void)done;
    EXPECT_EQ(cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
