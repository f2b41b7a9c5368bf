// SPDX-License-Identifier: BSD-3-Clause
// Nodes with several links: jobs/node_addresses.h, docs/protocol/NODES.md §8.6.
#include <gtest/gtest.h>

#include "tests/unit/jobs/bus.h"
#include "wire/build.h"

namespace ulc::engine {
namespace {

/// The address of link `link` of a node.
Mac link_mac(unsigned node, unsigned link) {
    Mac mac = mac_of(node);
    mac.octets[2] = static_cast<std::uint8_t>(link);
    return mac;
}

std::vector<NodeAddress> links_of(unsigned node, std::vector<std::uint32_t> megabits) {
    std::vector<NodeAddress> links;
    for (unsigned n = 0; n < megabits.size(); ++n)
        links.push_back({link_mac(node, n), megabits[n]});
    return links;
}

std::vector<NodeAddress> changed(BusNode& at, Mac* node = nullptr) {
    AddressChange change;
    std::vector<NodeAddress> last;
    while (at.jobs->next_address_change(change)) {
        last.assign(change.addresses.begin(), change.addresses.end());
        if (node != nullptr) *node = change.node;
    }
    return last;
}

class Addresses : public testing::Test {
protected:
    Addresses() : bus(1) {
        for (unsigned n = 0; n < 3; ++n)
            bus.add(n);
    }
    void announce(unsigned node, const std::vector<NodeAddress>& links) {
        bus.node(node).jobs->set_links(links, bus.now);
        bus.run(kMillisecond);
    }
    /// A LINKS frame as node `from` would send it, from the address `source`.
    void forge(const Mac& source, std::uint64_t number, const std::vector<NodeAddress>& links,
               std::uint32_t incarnation = 5) {
        wire::NodeBody head{};
        head.kind = wire::NodeKind::kLinks;
        head.incarnation = incarnation;
        head.token = number;
        std::vector<std::byte> body(sizeof head + links.size() * sizeof(wire::LinkEntry));
        (void)wire::put_links(body.data(), head, links);
        bus.inject(bus.node(0), source, wire::FrameType::kNode, body);
    }
    [[nodiscard]] std::uint64_t refused() {
        return bus.node(0).counters.get(Counter::drop_links_address);
    }
    JobBus bus;
};

// N-27, N-28
TEST_F(Addresses, reach_every_node_and_are_repeated) {
    const auto links = links_of(1, {100, 1000});
    announce(1, links);
    Mac node;
    EXPECT_EQ(changed(bus.node(0), &node), links);
    EXPECT_EQ(node, mac_of(1));
    EXPECT_EQ(changed(bus.node(2)), links);
    EXPECT_TRUE(changed(bus.node(1)).empty()) << "its own";
    bus.run(3 * kSecond + kMillisecond);
    EXPECT_EQ(bus.node(1).counters.get(Counter::links_sent), 4U);
    EXPECT_TRUE(changed(bus.node(0)).empty()) << "repetitions change nothing";
}

// N-27
TEST_F(Addresses, of_a_node_with_one_link_are_not_announced) {
    announce(1, links_of(1, {100}));
    bus.run(3 * kSecond);
    EXPECT_EQ(bus.frames_sent(), 0U);
    EXPECT_EQ(bus.node(1).jobs->next_timer(), kNever);
}

// N-27
TEST_F(Addresses, are_announced_again_when_a_node_begins_a_job) {
    announce(1, links_of(1, {100, 100}));
    bus.run(100 * kMillisecond);
    auto& late = bus.add(7);
    bus.must_join(late, Rank{1}, std::uint16_t{2}, Handle{10});
    bus.must_join(bus.node(1), Rank{0}, std::uint16_t{2}, Handle{11});
    bus.run(5 * kMillisecond);
    EXPECT_EQ(changed(late).size(), 2U);
    EXPECT_LE(bus.node(1).counters.get(Counter::links_sent), 3U) << "no more often than in 10 ms";
}

// N-29
TEST_F(Addresses, change_when_a_link_goes_down_and_comes_back) {
    announce(1, links_of(1, {100, 100}));
    (void)changed(bus.node(0));
    announce(1, links_of(1, {0, 100}));
    EXPECT_EQ(changed(bus.node(0)), links_of(1, {0, 100}));
    announce(1, links_of(1, {100, 100}));
    EXPECT_EQ(changed(bus.node(0)), links_of(1, {100, 100}));
}

// N-30
TEST_F(Addresses, of_an_old_announcement_that_was_overtaken_are_ignored) {
    forge(mac_of(1), 2, links_of(1, {100, 0}));
    forge(mac_of(1), 1, links_of(1, {100, 100}));
    EXPECT_EQ(changed(bus.node(0)), links_of(1, {100, 0}));
    forge(mac_of(1), 1, links_of(1, {100, 100}), 6);
    EXPECT_EQ(changed(bus.node(0)), links_of(1, {100, 100})) << "its engine started again";
    EXPECT_EQ(refused(), 0U);
}

// N-32
TEST_F(Addresses, of_another_node_are_refused) {
    forge(mac_of(1), 1, links_of(1, {100, 100}));
    ASSERT_EQ(changed(bus.node(0)).size(), 2U);
    forge(mac_of(2), 1, {{mac_of(2), 100}, {link_mac(1, 1), 100}});
    EXPECT_EQ(refused(), 1U) << "announced by another node";
    forge(mac_of(2), 1, {{mac_of(2), 100}, {mac_of(1), 100}});
    EXPECT_EQ(refused(), 2U);
    forge(mac_of(2), 1, {{mac_of(2), 100}, {mac_of(0), 100}});
    EXPECT_EQ(refused(), 3U) << "this node's own";
    forge(link_mac(2, 1), 1, links_of(2, {100, 100}));
    EXPECT_EQ(refused(), 4U) << "comes from another address than its first";
    forge(link_mac(1, 1), 1, {{link_mac(1, 1), 100}, {link_mac(2, 1), 100}});
    EXPECT_EQ(refused(), 5U) << "an address of another node as its first";
    EXPECT_TRUE(changed(bus.node(0)).empty());
}

// N-40
TEST_F(Addresses, with_the_place_of_another_node_of_a_mesh_are_refused) {
    const auto placed = [](unsigned node, std::uint16_t row, std::uint16_t column) {
        auto links = links_of(node, {100, 100});
        links[0].segment = row;
        links[1].segment = column;
        return links;
    };
    bus.node(0).jobs->set_links(placed(0, 1, 1), bus.now);
    forge(mac_of(1), 1, placed(1, 2, 1));
    EXPECT_EQ(changed(bus.node(0)), placed(1, 2, 1));
    forge(mac_of(2), 1, placed(2, 2, 1));
    EXPECT_EQ(refused(), 1U);
    forge(mac_of(2), 1, placed(2, 1, 1));
    EXPECT_EQ(refused(), 2U) << "this node's own";
    EXPECT_TRUE(changed(bus.node(0)).empty());
    forge(mac_of(2), 1, placed(2, 1, 2));
    EXPECT_EQ(changed(bus.node(0)), placed(2, 1, 2));
    forge(mac_of(2), 2, placed(2, 2, 2));
    EXPECT_EQ(refused(), 2U) << "a node may take another place";
}

// N-32
TEST_F(Addresses, of_a_node_of_a_job_are_refused) {
    bus.must_join(bus.node(0), Rank{0}, std::uint16_t{2}, Handle{10});
    bus.must_join(bus.node(2), Rank{1}, std::uint16_t{2}, Handle{11});
    ASSERT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(10); }));
    forge(mac_of(1), 1, {{mac_of(1), 100}, {mac_of(2), 100}});
    EXPECT_EQ(refused(), 1U);
    EXPECT_TRUE(changed(bus.node(0)).empty());
}

TEST_F(Addresses, of_this_nodes_other_links_are_refused) {
    bus.node(0).jobs->set_links(links_of(0, {100, 100}), bus.now);
    forge(mac_of(1), 1, {{mac_of(1), 100}, {link_mac(0, 1), 100}});
    EXPECT_EQ(refused(), 1U);
}

TEST_F(Addresses, of_a_node_that_is_silent_go_to_another) {
    forge(mac_of(1), 1, links_of(1, {100, 100}));
    (void)changed(bus.node(0));
    bus.run(NodeAddresses::kForget + kSecond);
    forge(mac_of(2), 1, {{mac_of(2), 100}, {link_mac(1, 1), 100}});
    EXPECT_EQ(refused(), 0U);
    EXPECT_EQ(changed(bus.node(0)).size(), 2U);
}

TEST_F(Addresses, of_more_nodes_than_the_table_holds_are_refused) {
    for (unsigned n = 0; n <= NodeAddresses::kNodesMax; ++n) {
        bus.now += kMillisecond;
        forge(mac_of(1000 + n), 1, links_of(1000 + n, {100, 100}));
    }
    EXPECT_EQ(refused(), 1U);
    (void)changed(bus.node(0));
}

// N-17
TEST_F(Addresses, of_invented_nodes_are_limited_and_those_of_a_job_are_not_among_them) {
    bus.must_join(bus.node(0), Rank{0}, std::uint16_t{2}, Handle{10});
    bus.must_join(bus.node(2), Rank{1}, std::uint16_t{2}, Handle{11});
    ASSERT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(10); }));
    constexpr unsigned kFrames = 3000;
    for (unsigned n = 0; n < kFrames; ++n)
        forge(mac_of(1000 + n), 1, links_of(1000 + n, {100, 100}));
    AddressChange change;
    unsigned changes = 0;
    while (bus.node(0).jobs->next_address_change(change))
        ++changes;
    EXPECT_EQ(changes, NodeAddresses::kChangesBurst);
    EXPECT_EQ(bus.node(0).counters.get(Counter::answers_limited),
              kFrames - NodeAddresses::kChangesBurst);
    forge(mac_of(2), 1, links_of(2, {100, 100}), 1002);
    EXPECT_EQ(changed(bus.node(0)), links_of(2, {100, 100}));
}

}  // namespace
}  // namespace ulc::engine
