// SPDX-License-Identifier: BSD-3-Clause
// Memory budgets of the engine: 87 KiB for an idle endpoint, including its shared memory with small
// rings and arenas; 1,160 bytes and the window for a session in which both sides have sent; nearly
// nothing for a silent rank.
#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/unit/base/heap_watch.h"
#include "tests/unit/urtp/world.h"
#include "urtp/sender/stream_tx.h"

namespace ulc::sim {
namespace {

using test::heap_octets;

constexpr std::size_t kIdleEndpointMax = 87U << 10;
// 1 KiB, 16 octets of the reserved packet in private memory, 48 for late packets, 8 so that a
// stream begins with a cache line, and 64 for the counts of repairs. These need 12, but a session
// begins with a cache line too.
constexpr std::size_t kSessionMax = 1160;
constexpr std::size_t kSilentPeerMax = 32;

std::size_t grown_since(std::size_t before) {
    const std::size_t now = heap_octets();
    return now > before ? now - before : 0;
}

void print(const char* what, std::size_t octets, std::size_t budget) {
    std::printf("%-48s %7zu octets (budget %zu)\n", what, octets, budget);
}

TEST(MemoryBudget, the_watch_sees_new_and_calloc) {
    const std::size_t before = heap_octets();
    auto block = std::make_unique<std::vector<std::byte>>(10'000);
    void* volatile zeros = std::calloc(10, 1000);
    const std::size_t with = heap_octets();
    std::free(zeros);
    block.reset();
    const std::size_t after = heap_octets();
    EXPECT_GE(with, before + 20'000U);
    EXPECT_LT(with, before + 21'000U);
    EXPECT_EQ(after, before);
}

TEST(MemoryBudget, an_idle_endpoint) {
    constexpr std::size_t kEndpoints = 32;
    ClusterConfig config;
    config.net.ports = 2;
    config.sizes = {32, 64, 8U << 10, 16U << 10};
    SimCluster cluster(config);
    std::vector<std::unique_ptr<RegionMemory>> regions;
    for (std::size_t n = 0; n < kEndpoints; ++n)
        regions.push_back(std::make_unique<RegionMemory>(config.sizes));
    const std::size_t shared = regions[0]->layout().region_octets;
    const std::size_t before = heap_octets();
    for (const auto& region : regions)
        ASSERT_TRUE(cluster.engine(0).attach(region->base(), region->layout(), 0).ok());
    const std::size_t attached = grown_since(before) / kEndpoints;
    print("endpoint without a job, private", attached, kIdleEndpointMax);
    print("  and its shared memory, small", attached + shared, kIdleEndpointMax);
    EXPECT_GT(attached, 0U);
    EXPECT_LE(attached + shared, kIdleEndpointMax);
}

TEST(MemoryBudget, an_endpoint_in_a_silent_job) {
    constexpr std::size_t kRanks = 32;
    ClusterConfig config;
    config.net.ports = 2;
    config.sizes = {32, 64, 8U << 10, 16U << 10};
    SimCluster cluster(config);
    const auto form = [&] {
        const std::size_t before = heap_octets();
        EXPECT_TRUE(
            cluster.form(kRanks, [](std::size_t n) { return static_cast<std::uint16_t>(n % 2); }));
        EXPECT_FALSE(cluster.run(3 * kSecond, [] { return false; }));
        return grown_since(before) / kRanks;  // region and the test's own client included
    };
    (void)form();  // also creates the data that the simulated net keeps
    const std::size_t formed = form();
    print("endpoint in a formed job of 32, all of it", formed, kIdleEndpointMax);
    EXPECT_GT(formed, 0U);
    EXPECT_LE(formed, kIdleEndpointMax);
}

/// Returns the memory that an engine frees at its end: one endpoint in a job over that number of
/// nodes, and a session in which both sides have sent; with the window and pool that scenarios of a
/// thousand nodes set (tests/sim/README.md).
std::size_t engine_octets(std::uint16_t nodes) {
    ClusterConfig config;
    config.net.ports = nodes;
    config.sizes = {32, 64, 8U << 10, 16U << 10};
    config.engine.params.window = 64;
    config.engine.params.rx_pool_packets = 64;
    SimCluster cluster(config);
    EXPECT_TRUE(cluster.form(nodes, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    const std::vector<std::byte> payload(100);
    for (const Rank from : {Rank{0}, Rank{1}}) {
        const auto to = static_cast<Rank>(1 - from);
        EXPECT_TRUE(cluster.client(from).send(to, 1, payload));
        const auto arrived = [&] {
            cluster.client(to).poll();
            return !cluster.client(to).messages.empty();
        };
        EXPECT_TRUE(cluster.run(kSecond, arrived, [] {}));
    }
    const std::size_t before = heap_octets();
    cluster.kill_node(1);
    const std::size_t after = heap_octets();
    return before > after ? before - after : 0;
}

TEST(MemoryBudget, a_simulated_engine) {
    constexpr std::size_t kEngineMax = 481U << 10;
    // 48 of them for absences: the node's and the judge's (N-50). 150 to find its jobs by the node
    // and by the endpoint, at a cost that does not grow with the number of jobs.
    constexpr std::size_t kNodeMax = 328;
    constexpr std::size_t kNodes = 1024;
    const std::size_t of_16 = engine_octets(16);
    const std::size_t of_64 = engine_octets(64);
    ASSERT_GT(of_64, of_16) << "what each node of the job costs was not counted";
    const std::size_t each = (of_64 - of_16) / 48;
    const std::size_t whole = of_16 + (kNodes - 16) * each;
    print("engine in a job of 16, one live session", of_16, kEngineMax);
    print("  each further node of the job", each, kNodeMax);
    print("  so in a job of 1,024", whole, kEngineMax);
    EXPECT_LE(each, kNodeMax);
    EXPECT_LE(whole, kEngineMax);
}

/// Rank 0 of a job of `size`, which exchanges packets with its peers, one frame at a time.
class Exchange {
public:
    explicit Exchange(std::uint16_t size) {
        const auto roster = urtp::test::roster_of(size);
        for (Rank r = 0; r < size; ++r)
            members_.push_back(std::make_unique<urtp::Transport>(urtp::test::config_of(r), roster,
                                                                 pool_.table(), counters_));
        std::vector<Segment*> warm(64);
        for (Segment*& segment : warm)
            segment = pool_.table().get();
        for (Segment* segment : warm)
            pool_.table().drop(segment);
    }
    void put(Rank from, StreamId stream) {
        const urtp::PacketMeta meta{.stream = stream, .message_length = 5};
        EXPECT_EQ(urtp::test::submit(*members_[from], pool_.table(), meta, "hello", now_),
                  urtp::Admission::kYes);
    }
    /// Carries all frames of `from` to `to`, and takes the packets that are delivered.
    void carry(Rank from, Rank to) {
        while (Segment* frame = members_[from]->next_tx(now_)) {
            wire::FrameView view;
            EXPECT_EQ(wire::parse(frame->frame, frame->length, wire::kEtherTypeDefault, view),
                      Counter::kCount);
            if (view.destination == kBroadcastMac || view.destination == urtp::test::mac_of(to)) {
                members_[to]->on_frame(view, frame, now_);  // takes the reference
            } else {
                pool_.table().drop(frame);
            }
            urtp::ReadyPacket packet;
            while (members_[to]->front(from, packet))
                members_[to]->pop(from, now_);
        }
    }

private:
    urtp::test::CountingPool pool_;
    Counters counters_;
    std::vector<std::unique_ptr<urtp::Transport>> members_;
    Nanos now_ = kSecond;
};

TEST(MemoryBudget, a_live_session) {
    constexpr std::uint16_t kPeers = 16;
    Exchange exchange(kPeers + 2);
    // The first session allocates the pool of held packets, and the first stream sent allocates the
    // queue of retransmissions. Both belong to the endpoint.
    exchange.put(kPeers + 1, 0);
    exchange.carry(kPeers + 1, 0);
    exchange.put(0, kPeers + 1);
    std::size_t heard = 0;
    std::size_t answered = 0;
    std::size_t group = 0;
    for (Rank r = 1; r <= kPeers; ++r) {
        exchange.put(r, 0);
        std::size_t before = heap_octets();
        exchange.carry(r, 0);
        heard += grown_since(before);
        before = heap_octets();
        exchange.put(0, r);
        answered += grown_since(before);
        exchange.put(r, urtp::test::kWorld);
        before = heap_octets();
        exchange.carry(r, 0);
        group += grown_since(before);
    }
    const std::size_t window = urtp::Params{}.window * sizeof(urtp::TxSlot);
    heard /= kPeers;
    answered /= kPeers;
    group /= kPeers;
    print("session, heard only", heard, kSessionMax);
    print("  and sent to, without the window", heard + answered - window, kSessionMax);
    print("  and heard in a group", heard + answered - window + group, kSessionMax);
    print("  the window, 256 packets under way", window, 256 * 64);
    EXPECT_GT(heard, 0U);
    EXPECT_GT(answered, window) << "the ring of sent packets was not counted";
    EXPECT_LE(heard + answered + group, kSessionMax + window);
    for (Rank r = 1; r <= kPeers + 1; ++r)
        exchange.carry(0, r);
}

TEST(MemoryBudget, a_silent_peer) {
    urtp::test::CountingPool pool;
    Counters counters;
    const auto member_of = [&](std::uint16_t size) {
        const auto roster = urtp::test::roster_of(size);
        const std::size_t before = heap_octets();
        const urtp::Transport member(urtp::test::config_of(0), roster, pool.table(), counters);
        return grown_since(before);
    };
    const std::size_t each = (member_of(4000) - member_of(100)) / 3900;
    print("rank that was never heard", each, kSilentPeerMax);
    EXPECT_LE(each, kSilentPeerMax);
    const std::size_t largest = member_of(4096);
    print("member of a silent job of 4,096", largest, 256U << 10);
    EXPECT_LE(largest, 128U << 10) << "an engine of that size has 260 KiB for all";
}

}  // namespace
}  // namespace ulc::sim
