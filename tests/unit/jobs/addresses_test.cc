// SPDX-License-Identifier: BSD-3-Clause
// Nodes with several links: jobs/node_addresses.h, docs/protocol/NODES.md §8.6.
#include "tests/unit/jobs/addresses_fixture.h"

namespace ulc::jobs {
namespace {

// N-27, N-28
TEST_F(Addresses, reach_every_node_and_are_repeated) {
    const auto links = links_of(1, {100, 1000});
    announce(1, links);
    Mac node;
    EXPECT_EQ(changed(bus.node(0), &node), links);
    EXPECT_EQ(node, mac_of(1));
    EXPECT_EQ(changed(bus.node(2)), links);
    EXPECT_TRUE(changed(bus.node(1)).empty()) << "its own";
    bus.run(3 * kSecond);
    EXPECT_EQ(bus.node(1).counters.get(Counter::links_sent), 4U);
    EXPECT_TRUE(changed(bus.node(0)).empty()) << "repetitions change nothing";
    bus.run(30 * kSecond);
    EXPECT_TRUE(changed(bus.node(0)).empty()) << "it is asked again, and answers";
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

// N-51
TEST_F(Addresses, are_sent_to_any_node_that_asks_by_a_node_of_one_link_too) {
    wire::NodeBody ask{};
    ask.kind = wire::NodeKind::kLinksRequest;
    ask.incarnation = kLife;
    ask.token = 77;
    const auto replies_of = [&](unsigned number) {
        bus.log.clear();
        bus.inject(bus.node(number), mac_of(kPlayed), wire::FrameType::kNode,
                   std::as_bytes(std::span(&ask, 1)));
        bus.run(kMillisecond);
        std::vector<NodeAddress> links;
        for (const auto& frame : bus.log) {
            wire::FrameView view;
            wire::NodeView node;
            EXPECT_EQ(wire::parse(frame.data(), frame.size(), wire::kEtherTypeDefault, view),
                      Counter::kCount);
            if (!wire::parse_node(view.body, view.length, node) ||
                node.kind != wire::NodeKind::kLinksReply)
                continue;
            EXPECT_EQ(node.token, 77U);
            for (const wire::LinkEntry& link : node.links)
                links.push_back({link.mac, link.megabits, link.segment});
        }
        return links;
    };
    EXPECT_EQ(replies_of(1), (std::vector<NodeAddress>{{mac_of(1), kMegabitsUnknown}}));
    announce(1, links_of(1, {100, 0}));
    EXPECT_EQ(replies_of(1), links_of(1, {100, 0}));
    for (unsigned n = 0; n < 2000; ++n)
        bus.inject(bus.node(0), mac_of(1000 + n), wire::FrameType::kNode,
                   std::as_bytes(std::span(&ask, 1)));
    EXPECT_GE(count(Counter::answers_limited), 2000U - NodeAddresses::kRepliesMax);
}

// N-52, N-53
TEST_F(Addresses, count_when_the_node_and_each_of_them_has_replied) {
    const auto links = links_of(kPlayed, {100, 100});
    hint(mac_of(kPlayed), 1, links);
    const std::uint64_t first = token_to(mac_of(kPlayed));
    ASSERT_NE(first, 0U);
    EXPECT_EQ(token_to(link_mac(kPlayed, 1)), 0U) << "nothing goes to an address that is claimed";
    EXPECT_TRUE(changed(bus.node(0)).empty()) << "LINKS is a hint";
    reply(first + 1, 1, links);
    EXPECT_EQ(unproven(), 1U);
    reply(first, 1, links);
    EXPECT_TRUE(changed(bus.node(0)).empty()) << "the second link has not replied";
    const std::uint64_t second = token_to(link_mac(kPlayed, 1));
    ASSERT_NE(second, 0U);
    EXPECT_NE(second, first);
    reply(second, 1, {{link_mac(kPlayed, 0), 100}, {link_mac(kPlayed, 2), 100}});
    EXPECT_TRUE(changed(bus.node(0)).empty()) << "it does not name itself";
    reply(second, 1, links, kLife + 1);
    EXPECT_TRUE(changed(bus.node(0)).empty()) << "it is of another incarnation";
    reply(second, 1, links);
    EXPECT_EQ(changed(bus.node(0)), links);
}

// N-52: one forged frame, of a node that lives
TEST_F(Addresses, of_a_forged_announcement_are_not_used) {
    auto& attacker = bus.add(9);
    const std::vector<NodeAddress> forged{{mac_of(1), 0}, {mac_of(9), 1000}};
    for (std::uint64_t number = 1; number < 20; ++number) {
        hint(mac_of(1), number, forged, 1001);
        bus.run(100 * kMillisecond);
    }
    EXPECT_TRUE(changed(bus.node(0)).empty());
    // A node of two links, of which one is said to be down.
    const auto links = links_of(2, {100, 100});
    announce(2, links);
    ASSERT_EQ(changed(bus.node(0)), links);
    hint(mac_of(2), 100, {{mac_of(2), 0}, {mac_of(9), 1000}}, 1002);
    hint(mac_of(2), 1, {{mac_of(2), 0}, {mac_of(9), 1000}}, 1003);
    bus.run(10 * kSecond);
    EXPECT_TRUE(changed(bus.node(0)).empty());
    EXPECT_EQ(attacker.counters.get(Counter::links_sent), 0U);
}

// N-52
TEST_F(Addresses, of_a_reply_to_an_earlier_question_are_not_taken) {
    const auto links = links_of(kPlayed, {100, 100});
    hint(mac_of(kPlayed), 1, links);
    const std::uint64_t first = token_to(mac_of(kPlayed));
    reply(first, 1, links);
    reply(token_to(link_mac(kPlayed, 1)), 1, links);
    ASSERT_EQ(changed(bus.node(0)), links);
    bus.run(10 * kMillisecond);
    hint(mac_of(kPlayed), 2, links);
    const std::uint64_t now = token_to(mac_of(kPlayed));
    EXPECT_NE(now, first);
    EXPECT_NE(now, token_to(link_mac(kPlayed, 1)));
    reply(first, 9, links_of(kPlayed, {0, 1}));
    EXPECT_EQ(unproven(), 1U);
    EXPECT_TRUE(changed(bus.node(0)).empty());
    reply(now, 2, links_of(kPlayed, {100, 0}));
    EXPECT_EQ(changed(bus.node(0)), links_of(kPlayed, {100, 0}));
}

// N-52
TEST_F(Addresses, of_another_incarnation_than_a_jobs_are_not_taken) {
    form_job_with_node_2();
    bus.cut = &bus.node(2);  // the test plays it
    const auto links = links_of(2, {100, 100});
    hint(mac_of(2), 1, links, 77);
    EXPECT_EQ(token_to(mac_of(2)), 0U);
    EXPECT_EQ(unproven(), 1U);
    hint(mac_of(2), 1, links, 1002);
    const std::uint64_t token = token_to(mac_of(2));
    ASSERT_NE(token, 0U);
    reply(token, 1, links, 77);
    EXPECT_EQ(unproven(), 2U);
    EXPECT_EQ(token_to(link_mac(2, 1)), 0U);
    reply(token, 1, links, 1002);
    reply(token_to(link_mac(2, 1)), 1, links, 1002);
    EXPECT_EQ(changed(bus.node(0)), links);
}

// N-29
TEST_F(Addresses, that_are_all_down_stay) {
    prove(links_of(kPlayed, {100, 100}));
    ASSERT_EQ(changed(bus.node(0)).size(), 2U);
    bus.run(10 * kMillisecond);
    prove(links_of(kPlayed, {0, 0}), 2);
    EXPECT_EQ(changed(bus.node(0)), links_of(kPlayed, {0, 0}));
}

// N-29
TEST_F(Addresses, that_replied_stay_until_another_one_has) {
    prove(links_of(kPlayed, {100, 100}));
    ASSERT_EQ(changed(bus.node(0)).size(), 2U);
    bus.run(10 * kMillisecond);
    const std::vector<NodeAddress> moved{{mac_of(kPlayed), 0}, {link_mac(kPlayed, 2), 100}};
    hint(mac_of(kPlayed), 2, moved);
    reply(token_to(mac_of(kPlayed)), 2, moved);
    EXPECT_EQ(changed(bus.node(0)), (std::vector<NodeAddress>{{mac_of(kPlayed), 0}}));
    reply(token_to(link_mac(kPlayed, 2)), 2, moved);
    EXPECT_EQ(changed(bus.node(0)), moved);
}

// N-30
TEST_F(Addresses, of_an_old_announcement_that_was_overtaken_are_ignored) {
    prove(links_of(kPlayed, {100, 100}), 2);
    (void)changed(bus.node(0));
    bus.run(10 * kMillisecond);
    bus.log.clear();
    hint(mac_of(kPlayed), 1, links_of(kPlayed, {0, 100}));
    EXPECT_EQ(token_to(mac_of(kPlayed)), 0U) << "not worth a question";
    hint(mac_of(kPlayed), 3, links_of(kPlayed, {0, 100}));
    const std::uint64_t token = token_to(mac_of(kPlayed));
    reply(token, 3, links_of(kPlayed, {0, 100}));
    reply(token, 2, links_of(kPlayed, {100, 100}));
    EXPECT_EQ(changed(bus.node(0)), links_of(kPlayed, {0, 100}));
    bus.run(10 * kMillisecond);
    prove(links_of(kPlayed, {100, 100}), 1, kLife + 1);
    EXPECT_EQ(changed(bus.node(0)), links_of(kPlayed, {100, 100})) << "its engine started again";
    EXPECT_EQ(refused(), 0U);
}

// N-32
TEST_F(Addresses, of_another_node_are_refused) {
    prove(links_of(5, {100, 100}));
    ASSERT_EQ(changed(bus.node(0)).size(), 2U);
    prove({{mac_of(6), 100}, {link_mac(5, 1), 100}});
    EXPECT_EQ(refused(), 1U) << "announced by another node";
    prove({{mac_of(6), 100}, {mac_of(5), 100}});
    EXPECT_EQ(refused(), 2U);
    hint(mac_of(6), 1, {{mac_of(6), 100}, {mac_of(0), 100}});
    EXPECT_EQ(refused(), 3U) << "this node's own";
    hint(link_mac(6, 1), 1, links_of(6, {100, 100}));
    EXPECT_EQ(refused(), 4U) << "comes from another address than its first";
    hint(link_mac(5, 1), 1, {{link_mac(5, 1), 100}, {link_mac(6, 1), 100}});
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
    bus.run(20 * kMillisecond);
    prove(placed(5, 2, 1));
    EXPECT_EQ(changed(bus.node(0)), placed(5, 2, 1));
    prove(placed(6, 2, 1));
    EXPECT_EQ(refused(), 1U);
    prove(placed(6, 1, 1));
    EXPECT_EQ(refused(), 2U) << "this node's own";
    (void)changed(bus.node(0));
    prove(placed(6, 1, 2));
    EXPECT_EQ(changed(bus.node(0)), placed(6, 1, 2));
    bus.run(10 * kMillisecond);
    prove(placed(6, 2, 2), 2);
    EXPECT_EQ(refused(), 2U) << "a node may take another place";
    EXPECT_EQ(changed(bus.node(0)), placed(6, 2, 2));
    prove(links_of(7, {100, 100}));
    EXPECT_EQ(refused(), 3U) << "it is in no mesh";
}

// N-32
TEST_F(Addresses, of_a_node_of_a_job_are_refused) {
    form_job_with_node_2();
    prove({{mac_of(kPlayed), 100}, {mac_of(2), 100}});
    EXPECT_EQ(refused(), 1U);
    EXPECT_TRUE(changed(bus.node(0)).empty());
}

TEST_F(Addresses, of_this_nodes_other_links_are_refused) {
    bus.node(0).jobs->set_links(links_of(0, {100, 100}), bus.now);
    hint(mac_of(kPlayed), 1, {{mac_of(kPlayed), 100}, {link_mac(0, 1), 100}});
    EXPECT_EQ(refused(), 1U);
}

// N-55
TEST_F(Addresses, of_a_node_that_is_silent_or_has_one_link_are_forgotten) {
    prove(links_of(5, {100, 100}));
    ASSERT_EQ(changed(bus.node(0)).size(), 2U);
    const std::vector<NodeAddress> alone{{mac_of(5), 100}};
    bus.run(NodeAddresses::kForget + 2 * kSecond);
    EXPECT_EQ(changed(bus.node(0)), alone);
    prove({{mac_of(6), 100}, {link_mac(5, 1), 100}});
    EXPECT_EQ(changed(bus.node(0)).size(), 2U) << "another node may have the address";
    bus.log.clear();
    bus.run(NodeAddresses::kProve + 2 * kSecond);
    reply(token_to(mac_of(6)), 1, {{mac_of(6), 100}});
    EXPECT_EQ(changed(bus.node(0)), (std::vector<NodeAddress>{{mac_of(6), 100}}));
}

// N-32
TEST_F(Addresses, of_more_nodes_than_the_table_holds_are_refused) {
    step = 300 * kMicrosecond;  // not many more than 1000 nodes a second
    for (unsigned n = 0; n <= NodeAddresses::kNodesMax; ++n)
        prove(links_of(1000 + n, {100, 100}));
    EXPECT_EQ(refused(), 1U);
    EXPECT_EQ(count(Counter::answers_limited), 0U);
    (void)changed(bus.node(0));
}

/// A node whose first link is down when others first hear of it.
class FirstDown : public Addresses {
protected:
    const std::vector<NodeAddress> links = links_of(kPlayed, {0, 100});
    const std::vector<NodeAddress> alone{{mac_of(kPlayed), kMegabitsUnknown}};

    void believe() {
        hint(mac_of(kPlayed), 1, links);
        bus.run(400 * kMillisecond);
        hint(mac_of(kPlayed), 1, links);
        EXPECT_EQ(token_to(link_mac(kPlayed, 1)), 0U) << "the first address has time";
        bus.run(200 * kMillisecond);
        hint(mac_of(kPlayed), 1, links);
        ASSERT_NE(token_to(link_mac(kPlayed, 1)), 0U);
        EXPECT_TRUE(changed(bus.node(0)).empty());
        reply(token_to(link_mac(kPlayed, 1)), 1, links);
        ASSERT_EQ(changed(bus.node(0)), links);
    }
};

// N-56
TEST_F(FirstDown, is_believed_at_another_address_until_the_first_one_replies) {
    believe();
    bus.log.clear();
    bus.run(200 * kMillisecond);
    const std::uint64_t token = token_to(mac_of(kPlayed));
    ASSERT_NE(token, 0U) << "it is asked on and on";
    reply(token, 0, alone);
    EXPECT_EQ(changed(bus.node(0)), (std::vector<NodeAddress>{{mac_of(kPlayed), 0}}))
        << "it has one link";
}

// N-57
TEST_F(FirstDown, has_no_say_in_the_reorder_wait_while_it_is_believed_provisionally) {
    believe();
    EXPECT_EQ(bus.node(0).jobs->slowest_link(mac_of(kPlayed)), 0U);
}

// N-56
TEST_F(FirstDown, is_not_believed_any_more_when_the_other_address_is_silent_too) {
    believe();
    bus.run(kSecond);
    EXPECT_EQ(changed(bus.node(0)).size(), 1U);
}

// N-56
TEST_F(FirstDown, is_not_believed_for_a_node_of_a_job) {
    form_job_with_node_2();
    bus.cut = &bus.node(2);
    for (unsigned n = 0; n < 3; ++n) {
        hint(mac_of(2), 1, links_of(2, {0, 100}), 1002);
        bus.run(600 * kMillisecond);
    }
    EXPECT_EQ(token_to(link_mac(2, 1)), 0U);
}

// N-56
TEST_F(FirstDown, is_forgotten_when_another_incarnation_begins_a_job) {
    believe();
    auto& late = bus.add(kPlayed);
    bus.passes_to[kPlayed] = 0;  // it hears no question
    bus.must_join(late, Rank{0}, std::uint16_t{2}, Handle{10});
    bus.run(kMillisecond);
    EXPECT_EQ(changed(bus.node(0)).size(), 1U);
}

// N-57
TEST_F(Addresses, of_invented_nodes_cost_the_same_for_each_and_are_limited) {
    for (unsigned n = 0; n < 1000; ++n)
        prove(links_of(1000 + n, {100, 100, 100, 100}));
    (void)changed(bus.node(0));
    bus.run(3 * kSecond);
    bus.log.clear();
    constexpr unsigned kFrames = 10'000;
    const std::uint64_t before = bus.node(0).jobs->address_steps();
    wire::NodeBody head{};
    head.kind = wire::NodeKind::kLinks;
    head.incarnation = kLife;
    head.token = 1;
    for (unsigned n = 0; n < kFrames; ++n) {
        const auto links = links_of(20'000 + n, {1, 1, 1, 1});
        std::vector<std::byte> body(sizeof head + links.size() * sizeof(wire::LinkEntry));
        (void)wire::put_links(body.data(), head, links);
        bus.inject(bus.node(0), links[0].mac, wire::FrameType::kNode, body);
    }
    EXPECT_LT(bus.node(0).jobs->address_steps() - before, 10U * kFrames);
    EXPECT_GE(count(Counter::answers_limited), kFrames - NodeAddresses::kStrangersBurst - 1);
    bus.run(kMillisecond);
    EXPECT_LE(bus.log.size(), NodeAddresses::kStrangersBurst + 1000);
    EXPECT_TRUE(changed(bus.node(0)).empty());
    bus.run(2 * kSecond);
    EXPECT_EQ(bus.node(0).jobs->slowest_link(mac_of(20'000)), 0U);
    EXPECT_EQ(bus.node(0).jobs->slowest_link(mac_of(1000)), 100U);
}

}  // namespace
}  // namespace ulc::jobs
