// SPDX-License-Identifier: BSD-3-Clause
// Nodes in rows and columns (port/mesh_port.h, docs/protocol/NODES.md §8.8): messages between all
// of them. Forwarders work, die, fall silent, or send hostile frames. A multicast comes once to
// each node, two paths carry twice as much as one, and forged frames go no further.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/messages/numbered.h"
#include "wire/build.h"
#include "wire/forward.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kFast = 100'000'000;

/// A mesh of `rows` × `columns` nodes; client n is on node n, in row n / columns.
class MeshCluster {
public:
    explicit MeshCluster(std::uint16_t rows = 4, std::uint16_t columns = 4,
                         const FaultRates& faults = {})
        : nodes_(static_cast<std::uint16_t>(rows * columns)) {
        config_.links = 2;
        config_.mesh_columns = columns;
        config_.net.ports = static_cast<std::uint16_t>(2 * nodes_);
        config_.net.bits_per_second = kFast;
        config_.net.faults = faults;
        config_.sizes = {256, 512, 1U << 20, 4U << 20};
        cluster_ = std::make_unique<SimCluster>(config_);
        formed_ =
            cluster_->form(nodes_, [](std::size_t n) { return static_cast<std::uint16_t>(n); });
    }
    [[nodiscard]] SimCluster& operator*() { return *cluster_; }
    [[nodiscard]] SimCluster* operator->() { return cluster_.get(); }
    [[nodiscard]] bool formed() const { return formed_; }
    [[nodiscard]] std::uint16_t nodes() const { return nodes_; }
    /// The port of a node to its row (0) or its column (1).
    [[nodiscard]] static std::uint16_t port(std::uint16_t node, std::uint16_t line) {
        return static_cast<std::uint16_t>(2 * node + line);
    }
    /// Frames that the node passes on are lost, or not any more; it answers for itself.
    void set_silent(std::uint16_t node, bool silent) {
        Faults& faults = cluster_->net().faults();
        for (std::uint16_t other = 0; other < 2 * nodes_; ++other)
            if (other / 2 != node) faults.cut(port(node, 1), other, silent);
    }

private:
    ClusterConfig config_;
    std::uint16_t nodes_;
    std::unique_ptr<SimCluster> cluster_;
    bool formed_ = false;
};

/// Each client sends `each` numbered messages to every other one, or to all at once, and judges
/// those that come.
class Everybody {
public:
    Everybody(MeshCluster& mesh, std::uint32_t each, std::size_t octets, bool to_all)
        : mesh_(mesh), each_(each), octets_(octets), to_all_(to_all) {
        sent_.assign(mesh.nodes(), std::vector<std::uint32_t>(mesh.nodes()));
        next_ = sent_;
    }
    bool run(Nanos limit) {
        for (const Nanos end = mesh_->now() + limit; !done(); step())
            if (mesh_->now() >= end) return false;
        return true;
    }
    unsigned wrong = 0;  ///< messages out of order, twice, or of another length

private:
    void step() {
        for (std::uint16_t n = 0; n < mesh_.nodes(); ++n) {
            RingClient& client = mesh_->client(n);
            client.poll();
            for (const Message& message : client.messages) {
                std::uint32_t number = 0;
                std::memcpy(&number, message.payload.data(), sizeof number);
                if (number != next_[n][message.source]++ || message.payload.size() != octets_)
                    ++wrong;
            }
            client.messages.clear();
            const std::uint16_t last = to_all_ ? 1 : mesh_.nodes();
            for (std::uint16_t to = 0; to < last; ++to)
                if (to_all_ || to != n) send(n, to);
            mesh_->touch(n);
        }
        (void)mesh_->run(50 * kMicrosecond, [] { return false; });
    }
    void send(std::uint16_t from, std::uint16_t to) {
        RingClient& client = mesh_->client(from);
        std::uint32_t& sent = sent_[from][to];
        std::vector<std::byte> payload(octets_, std::byte{0x22});
        for (; sent < each_; ++sent) {
            std::memcpy(payload.data(), &sent, sizeof sent);
            if (!client.send(to_all_ ? client.world : unicast_to(to), 1, payload)) return;
        }
    }
    [[nodiscard]] bool done() const {
        for (std::uint16_t n = 0; n < mesh_.nodes(); ++n)
            for (std::uint16_t from = 0; from < mesh_.nodes(); ++from)
                if (from != n && next_[n][from] < each_) return false;
        return true;
    }

    MeshCluster& mesh_;
    std::uint32_t each_;
    std::size_t octets_;
    bool to_all_;
    std::vector<std::vector<std::uint32_t>> sent_, next_;
};

// N-42, N-44
TEST(Mesh, all_pairs_exchange_messages_once_and_in_order_at_1_percent_loss) {
    MeshCluster mesh(4, 4, {.loss = 0.01});
    ASSERT_TRUE(mesh.formed());
    (void)mesh->run(3 * kSecond, [] { return false; });  // lost announcements are repeated
    const std::uint64_t misrouted = mesh->count(Counter::drop_misrouted);
    Everybody all(mesh, 12, 2500, false);
    ASSERT_TRUE(all.run(20 * kSecond));
    EXPECT_EQ(all.wrong, 0U);
    EXPECT_GT(mesh->count(Counter::mesh_forwarded), 9U * 16 * 12 * 2);
    EXPECT_EQ(mesh->count(Counter::drop_misrouted), misrouted) << "only before nodes were known";
    EXPECT_EQ(mesh->count(Counter::drop_forward), 0U);
    EXPECT_EQ(mesh->shut_down(), 0U);
}

// N-45
TEST(Mesh, each_multicast_comes_once_to_each_node) {
    MeshCluster mesh;
    ASSERT_TRUE(mesh.formed());
    const std::uint64_t before = mesh->count(Counter::mesh_forwarded);
    Numbered stream(*mesh, 5, mesh->client(5).world,
                    {0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 1200);
    stream.wanted = 200;
    ASSERT_TRUE(stream.run(10 * kSecond));
    EXPECT_EQ(stream.out_of_order, 0U);
    EXPECT_EQ(mesh->count(Counter::drop_duplicate), 0U);
    EXPECT_EQ(mesh->count(Counter::drop_own_echo), 0U);
    EXPECT_EQ(mesh->count(Counter::req_sent), 0U);
    EXPECT_GE(mesh->count(Counter::mesh_forwarded) - before, 600U) << "3 nodes send each one on";
    EXPECT_EQ(mesh->shut_down(), 0U);
}

// N-45
TEST(Mesh, all_multicast_at_1_percent_loss) {
    MeshCluster mesh(4, 4, {.loss = 0.01});
    ASSERT_TRUE(mesh.formed());
    Everybody all(mesh, 20, 2500, true);
    ASSERT_TRUE(all.run(20 * kSecond));
    EXPECT_EQ(all.wrong, 0U);
    EXPECT_EQ(mesh->shut_down(), 0U);
}

/// Returns the messages a second of a stream between two nodes of a mesh of 2 × 2.
double rate_of(std::uint16_t to) {
    MeshCluster mesh(2, 2);
    EXPECT_TRUE(mesh.formed());
    Numbered stream(*mesh, 0, unicast_to(to), {to}, 16000);
    stream.wanted = 10'000'000;
    EXPECT_FALSE(stream.run(100 * kMillisecond));
    const std::uint64_t before = stream.received;
    EXPECT_FALSE(stream.run(400 * kMillisecond));
    EXPECT_EQ(stream.out_of_order, 0U);
    return static_cast<double>(stream.received - before) / 0.4;
}

// N-42
TEST(Mesh, two_paths_carry_twice_as_much_as_one) {
    const double one = rate_of(1);
    const double two = rate_of(3);
    EXPECT_GE(two, 1.9 * one);
    EXPECT_LT(one * 16000 * 8, 1.0 * kFast);
    RecordProperty("one", std::to_string(one));
    RecordProperty("two", std::to_string(two));
}

// N-48
TEST(Mesh, a_stream_goes_on_when_a_node_between_dies) {
    MeshCluster mesh;
    ASSERT_TRUE(mesh.formed());
    Numbered stream(*mesh, 0, unicast_to(5), {5}, 1400);
    stream.wanted = 10'000'000;
    ASSERT_FALSE(stream.run(100 * kMillisecond));
    mesh->kill_node(1);
    ASSERT_FALSE(stream.run(500 * kMillisecond));
    EXPECT_GE(mesh->count(Counter::link_silences), 1U);
    const std::uint64_t before = stream.received;
    ASSERT_FALSE(stream.run(200 * kMillisecond));
    EXPECT_GT(static_cast<double>(stream.received - before), 0.9 * 0.2 * kFast / 8 / 1530)
        << "what one path carries";
    ASSERT_FALSE(stream.run(3 * kSecond)) << "until the node is held for dead";
    stream.wanted = stream.sent;
    ASSERT_TRUE(stream.run(kSecond));
    EXPECT_EQ(stream.out_of_order, 0U);
    // Both ends leave the path: 70 to 170 ms, by the phase of their rounds.
    EXPECT_LT(stream.longest_gap[0], 200 * kMillisecond);
    RecordProperty("longest_gap_us", static_cast<int>(stream.longest_gap[0] / kMicrosecond));
    EXPECT_EQ(mesh->shut_down(), 0U);
}

// N-48
TEST(Mesh, a_node_that_loses_what_it_should_send_on_is_left_and_used_again) {
    MeshCluster mesh;
    ASSERT_TRUE(mesh.formed());
    Numbered stream(*mesh, 0, unicast_to(5), {5}, 1400);
    stream.wanted = 10'000'000;
    ASSERT_FALSE(stream.run(100 * kMillisecond));
    const auto row = [&] { return mesh->net().stats(MeshCluster::port(0, 0)).tx_frames; };
    mesh.set_silent(1, true);
    ASSERT_FALSE(stream.run(300 * kMillisecond));
    std::uint64_t sent = row();
    const std::uint64_t before = stream.received;
    ASSERT_FALSE(stream.run(200 * kMillisecond));
    EXPECT_GT(static_cast<double>(stream.received - before), 0.9 * 0.2 * kFast / 8 / 1530);
    EXPECT_LT(row() - sent, 100U) << "nothing but echo requests goes by it";
    mesh.set_silent(1, false);
    ASSERT_FALSE(stream.run(300 * kMillisecond));
    sent = row();
    stream.wanted = stream.sent + 2000;
    ASSERT_TRUE(stream.run(kSecond));
    EXPECT_GT(row() - sent, 800U) << "it has its share again";
    EXPECT_EQ(stream.out_of_order, 0U);
    EXPECT_EQ(mesh->shut_down(), 0U);
}

// N-49
TEST(Mesh, multicasts_are_spread_by_the_column_when_a_node_of_the_row_is_silent) {
    MeshCluster mesh;
    ASSERT_TRUE(mesh.formed());
    std::vector<std::size_t> all;
    for (std::size_t n = 1; n < 16; ++n)
        all.push_back(n);
    Numbered stream(*mesh, 0, mesh->client(0).world, all, 1200);
    stream.wanted = 10'000'000;
    ASSERT_FALSE(stream.run(100 * kMillisecond));
    mesh.set_silent(1, true);
    ASSERT_FALSE(stream.run(500 * kMillisecond));
    const std::uint64_t repaired =
        mesh->count(Counter::repair_unicast) + mesh->count(Counter::repair_multicast);
    const std::uint64_t before = stream.received;
    ASSERT_FALSE(stream.run(200 * kMillisecond));
    EXPECT_GT(stream.received - before, 15U * 1000U) << "no worse than without the fault";
    EXPECT_LT(
        mesh->count(Counter::repair_unicast) + mesh->count(Counter::repair_multicast) - repaired,
        50U);
    stream.wanted = stream.sent;
    ASSERT_TRUE(stream.run(2 * kSecond));
    EXPECT_EQ(stream.out_of_order, 0U);
    EXPECT_EQ(mesh->shut_down(), 0U);
}

/// Counts frames of one length that any node sends.
class LengthTap final : public Tap {
public:
    explicit LengthTap(std::size_t octets) : octets_(octets) {}
    void on_frame(std::uint16_t, bool outbound, const std::vector<std::byte>& frame,
                  Nanos) override {
        if (outbound && frame.size() == octets_) ++sent;
    }
    unsigned sent = 0;

private:
    std::size_t octets_;
};

// N-44, N-46
TEST(Mesh, frames_of_a_hostile_node_between_go_no_further) {
    MeshCluster mesh;
    ASSERT_TRUE(mesh.formed());
    Numbered stream(*mesh, 0, unicast_to(5), {5}, 1400);
    stream.wanted = 10'000'000;
    LengthTap forged_on(1000 + sizeof(wire::ForwardHeader));
    mesh->net().set_tap(&forged_on);
    const auto mac = [](std::uint16_t node, std::uint16_t line) {
        return SimNet::mac_of(MeshCluster::port(node, line));
    };
    std::vector<std::byte> inner(1000);
    wire::FrameHead head;
    head.destination = mac(5, 0);
    head.source = mac(0, 0);
    head.type = wire::FrameType::kData;
    head.flags = wire::kFlagFirst | wire::kFlagLast;
    (void)wire::build_data(inner.data(), head, {}, 900);
    const auto forge = [&](std::uint16_t to, std::uint16_t line, std::uint8_t hops,
                           const wire::ForwardView& view) {
        std::vector<std::byte> frame(inner.size() + sizeof(wire::ForwardHeader));
        const std::size_t octets = wire::build_forward(frame.data(), view, wire::kEtherTypeDefault,
                                                       inner.data(), inner.size());
        frame[sizeof(wire::EthernetHeader) + 1] = std::byte{hops};
        mesh->net().inject(MeshCluster::port(to, line), frame.data(),
                           static_cast<std::uint32_t>(octets));
    };
    const std::uint64_t misrouted = mesh->count(Counter::drop_misrouted);
    std::uint64_t forged = 0;
    for (unsigned round = 0; round < 200; ++round) {
        // Node 1 is in the row of node 0 and in the column of node 5.
        for (const std::uint8_t hops : {0, 1, 2}) {
            forge(5, 1, hops, {mac(5, 1), mac(1, 1), 0, mac(0, 0), mac(10, 0), 0});
            forge(5, 1, hops, {mac(5, 1), mac(1, 1), 0, mac(0, 0), mac(7, 0), 0});
            forge(5, 1, hops, {kBroadcastMac, mac(1, 1), 0, mac(10, 0), kBroadcastMac, 0});
            forged += 3;
        }
        ASSERT_FALSE(stream.run(kMillisecond));
    }
    stream.wanted = stream.sent;
    ASSERT_TRUE(stream.run(5 * kSecond));
    EXPECT_EQ(stream.out_of_order, 0U);
    EXPECT_EQ(mesh->count(Counter::drop_misrouted) - misrouted + mesh->count(Counter::drop_forward),
              forged)
        << "each is counted";
    EXPECT_GE(mesh->count(Counter::drop_forward), forged / 3) << "more segments than there are";
    EXPECT_EQ(forged_on.sent, 0U) << "no forged frame is on another segment";
    EXPECT_GT(stream.sent, 2000U);
    mesh->net().set_tap(nullptr);
    EXPECT_EQ(mesh->shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
