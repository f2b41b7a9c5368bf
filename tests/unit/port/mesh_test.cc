// SPDX-License-Identifier: BSD-3-Clause
// A node of a mesh as sender (port/mesh_port.h; docs/protocol/NODES.md §8.8).
#include "tests/unit/port/mesh_fixture.h"

namespace ulc::port {
namespace {

// N-40
TEST_F(Mesh, has_the_address_of_its_row_and_the_numbers_of_its_segments) {
    EXPECT_EQ(port_.info.mac, kMe);
    EXPECT_EQ(port_.info.links, 2);
    EXPECT_EQ(port_.info.mtu, 1500 - 16);
    EXPECT_EQ(port_.info.link_bits_per_second, 200'000'000U);
    const auto addresses = port_.addresses(port_.context);
    ASSERT_EQ(addresses.size(), 2U);
    EXPECT_EQ(addresses[0], (NodeAddress{kMe, 100, 2}));
    EXPECT_EQ(addresses[1], (NodeAddress{kMyColumn, 100, 2}));
}

// N-41
TEST_F(Mesh, a_node_of_the_row_or_the_column_gets_its_frames_by_that_link) {
    for (int n = 0; n < 4; ++n) {
        ASSERT_TRUE(send(at(2, 3)));
        ASSERT_TRUE(send(at(1, 2)));
    }
    ASSERT_EQ(with(kRowLink), 4U);
    ASSERT_EQ(with(kColumnLink), 4U);
    for (const Segment* segment : devices_[kRowLink].with) {
        EXPECT_EQ(destination_of(*segment), at(2, 3));
        EXPECT_EQ(source_of(*segment), kMe);
        EXPECT_EQ(segment->length, 1000U) << "without FORWARD";
    }
    for (const Segment* segment : devices_[kColumnLink].with) {
        EXPECT_EQ(destination_of(*segment), at(1, 2, kColumnLink));
        EXPECT_EQ(source_of(*segment), kMyColumn);
    }
    ASSERT_TRUE(send(at(1, 2), kJob));
    EXPECT_EQ(source_of(*devices_[kColumnLink].with.back()), kMe) << "its first address (N-31)";
}

// N-42, N-43
TEST_F(Mesh, a_node_of_another_row_and_column_is_reached_by_two_paths_in_turn) {
    for (int n = 0; n < 10; ++n)
        ASSERT_TRUE(send(at(1, 3)));
    ASSERT_EQ(with(kRowLink), 5U);
    ASSERT_EQ(with(kColumnLink), 5U);
    for (const unsigned link : {kRowLink, kColumnLink}) {
        const Segment* segment = devices_[link].with[0];
        const wire::ForwardView view = view_of(segment);
        EXPECT_EQ(view.receiver, link == kRowLink ? at(2, 3) : at(1, 2, kColumnLink));
        EXPECT_EQ(view.sender, kMe);
        EXPECT_EQ(view.hops, 1);
        EXPECT_EQ(view.origin, kMe);
        EXPECT_EQ(view.destination, at(1, 3));
        EXPECT_EQ(view.length, 1000 - 14);
        EXPECT_EQ(segment->length, 1016U);
        EXPECT_EQ(segment->frame[14], std::byte{0x0d});
        EXPECT_EQ(segment->frame[30], kData) << "the ULC header";
        EXPECT_EQ(segment->frame[1015], static_cast<std::byte>(999 % 251));
    }
    devices_[kColumnLink].done(4);
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(at(1, 3)));
    EXPECT_EQ(with(kColumnLink), 5U) << "the path whose first queue is empty first";
}

TEST_F(Mesh, a_payload_elsewhere_goes_into_the_frame) {
    const std::array<std::byte, 300> payload = [] {
        std::array<std::byte, 300> octets{};
        for (std::size_t n = 0; n < octets.size(); ++n)
            octets[n] = static_cast<std::byte>(n % 249);
        return octets;
    }();
    Segment* segment = frame(at(3, 3), kMe, kData, 40);
    segment->tail = payload.data();
    segment->tail_octets = payload.size();
    segment->length += segment->tail_octets;
    ASSERT_EQ(port_.tx(port_.context, &segment, 1), 1);
    const Segment* sent = devices_[with(kRowLink) == 1 ? kRowLink : kColumnLink].with[0];
    EXPECT_EQ(view_of(sent).length, 340 - 14);
    EXPECT_EQ(std::memcmp(sent->frame + 56, payload.data(), payload.size()), 0);
}

// N-29, N-42
TEST_F(Mesh, no_path_leads_over_a_link_that_is_down) {
    const auto both = [&](const Mac& to) {
        done();
        for (int n = 0; n < 4; ++n)
            EXPECT_TRUE(send(to));
        return std::pair(with(kRowLink), with(kColumnLink));
    };
    using Frames = std::pair<std::size_t, std::size_t>;
    know(2, 3, 100, 0);  // the node between, by its column
    EXPECT_EQ(both(at(1, 3)), Frames(0, 4));
    know(2, 3, 0, 100);
    EXPECT_EQ(both(at(1, 3)), Frames(0, 4));
    know(2, 3);
    know(1, 3, 100, 0);  // the receiver, by its column
    EXPECT_EQ(both(at(1, 3)), Frames(0, 4));
    know(1, 3, 0, 100);
    EXPECT_EQ(both(at(1, 3)), Frames(4, 0));
    EXPECT_EQ(counts().pathless, 0U);
    know(2, 3, 100, 0);
    EXPECT_EQ(both(at(1, 3)), Frames(0, 0));
    EXPECT_EQ(counts().pathless, 4U);
    know(2, 1, 0, 100);
    EXPECT_EQ(both(at(2, 1)), Frames(0, 0)) << "a node of the row has no other path";
    EXPECT_EQ(both(mac_of(77)), Frames(0, 0)) << "unknown";
    EXPECT_EQ(counts().pathless, 12U);
}

TEST_F(Mesh, an_own_link_that_is_down_drops_what_waits_and_is_used_again) {
    devices_[kRowLink].accepts = 0;
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(at(2, 3)));
    EXPECT_EQ(port_.tx_pending(port_.context), 4U);
    devices_[kRowLink].up = false;
    EXPECT_TRUE(port_.link_up(port_.context));
    EXPECT_EQ(port_.addresses(port_.context)[0].megabits, 0U);
    EXPECT_EQ(port_.tx_pending(port_.context), 0U);
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(at(1, 3)));
    EXPECT_EQ(with(kColumnLink), 4U);
    devices_[kRowLink].up = true;
    devices_[kRowLink].accepts = 100;
    EXPECT_TRUE(port_.link_up(port_.context));
    done();  // echo requests
    ASSERT_TRUE(send(at(2, 3)));
    EXPECT_EQ(with(kRowLink), 1U);
    devices_[kRowLink].up = devices_[kColumnLink].up = false;
    EXPECT_FALSE(port_.link_up(port_.context));
    EXPECT_TRUE(send(kBroadcastMac));
    EXPECT_EQ(counts().pathless, 1U);
}

// N-45
TEST_F(Mesh, a_frame_for_a_group_is_spread_by_one_link_and_plain_by_the_other) {
    ASSERT_TRUE(send(kGroup));
    ASSERT_EQ(with(kRowLink), 1U);
    ASSERT_EQ(with(kColumnLink), 1U);
    const wire::ForwardView view = view_of(devices_[kRowLink].with[0]);
    EXPECT_EQ(view.receiver, kBroadcastMac) << "each node of the row sends it on";
    EXPECT_EQ(view.hops, 1);
    EXPECT_EQ(view.origin, kMe);
    EXPECT_EQ(view.destination, kGroup);
    EXPECT_EQ(destination_of(*devices_[kColumnLink].with[0]), kGroup);
    EXPECT_EQ(source_of(*devices_[kColumnLink].with[0]), kMyColumn);
    EXPECT_EQ(devices_[kColumnLink].with[0]->length, 1000U);
    ASSERT_TRUE(send(kBroadcastMac, kJob));
    EXPECT_EQ(source_of(*devices_[kColumnLink].with[1]), kMe);
    devices_[kRowLink].up = false;
    EXPECT_TRUE(port_.link_up(port_.context));
    done();  // echo requests too
    ASSERT_TRUE(send(kGroup));
    EXPECT_EQ(with(kRowLink), 0U);
    ASSERT_EQ(with(kColumnLink), 1U);
    EXPECT_EQ(view_of(devices_[kColumnLink].with[0]).hops, 1) << "by the column now";
}

TEST_F(Mesh, a_full_device_bounds_what_is_taken) {
    devices_[kRowLink].accepts = devices_[kColumnLink].accepts = 0;
    unsigned taken = 0;
    while (send(at(1, 1)))
        ++taken;
    EXPECT_EQ(taken, 64U);
    EXPECT_FALSE(send(kGroup));
    EXPECT_FALSE(send(at(2, 1)));
    EXPECT_EQ(port_.tx_pending(port_.context), 64U);
    devices_[kRowLink].accepts = devices_[kColumnLink].accepts = 1000;
    EXPECT_EQ(port_.tx_pending(port_.context), 64U);
    EXPECT_EQ(with(kRowLink) + with(kColumnLink), 64U);
}

TEST_F(Mesh, what_waits_for_a_device_goes_when_the_engine_only_receives) {
    devices_[kRowLink].accepts = 0;
    ASSERT_TRUE(send(at(2, 1)));
    devices_[kRowLink].accepts = 100;
    EXPECT_EQ(received(), Mac{});
    EXPECT_EQ(with(kRowLink), 1U);
}

TEST_F(Mesh, no_frame_is_taken_that_needs_a_segment_when_none_is_left) {
    std::vector<Segment*> all;
    Segment* to_far = frame(at(1, 1), kMe);
    Segment* to_near = frame(at(2, 1), kMe);
    while (Segment* segment = pool_.get())
        all.push_back(segment);
    EXPECT_EQ(port_.tx(port_.context, &to_far, 1), 0);
    EXPECT_EQ(port_.tx(port_.context, &to_near, 1), 1);
    FramePool::put(to_far);
    for (Segment* segment : all)
        FramePool::put(segment);
}

// N-48
TEST_F(Mesh, a_path_without_replies_is_left_and_taken_again) {
    const Mac peer = at(1, 3);
    const auto round = [&](std::vector<unsigned> replies) {
        EXPECT_TRUE(send(peer));
        done();
        return look(peer, std::move(replies));
    };
    EXPECT_EQ(round({kColumnLink}), 1U) << "asked when frames begin to go there";
    EXPECT_EQ(round({kColumnLink}), 50U);
    for (int n = 0; n < 6; ++n)
        EXPECT_EQ(round({kColumnLink}), 8U) << "in doubt";
    EXPECT_EQ(port_.silences(port_.context), 0U);
    EXPECT_EQ(round({kColumnLink}), 8U);
    EXPECT_EQ(port_.silences(port_.context), 1U);
    for (int n = 0; n < 6; ++n)
        ASSERT_TRUE(send(peer));
    EXPECT_EQ(with(kRowLink), 0U);
    EXPECT_EQ(with(kColumnLink), 6U);
    done();
    for (int n = 0; n < 6; ++n)
        ASSERT_TRUE(send(at(3, 3)));
    EXPECT_EQ(with(kRowLink), 3U) << "its paths are judged by themselves";
    done();
    know(2, 3, 100, 0);
    know(1, 3, 0, 100);
    EXPECT_TRUE(send(peer));
    EXPECT_EQ(with(kRowLink) + with(kColumnLink), 0U);
    know(1, 3);
    know(2, 3);
    know(1, 2, 0, 100);
    EXPECT_TRUE(send(peer));
    EXPECT_EQ(with(kRowLink), 1U) << "a silent path is better than none";
    know(1, 2);
    done();
    for (int n = 0; n < 6; ++n)
        (void)round({kRowLink, kColumnLink});
    for (int n = 0; n < 6; ++n)
        ASSERT_TRUE(send(peer));
    EXPECT_EQ(with(kRowLink), 3U);
}

// N-48
TEST_F(Mesh, a_node_to_which_no_frame_goes_is_not_asked) {
    ASSERT_TRUE(send(at(1, 3)));
    done();
    EXPECT_EQ(look(at(1, 3), {kRowLink, kColumnLink}), 1U);
    EXPECT_EQ(look(at(1, 3), {}), 300U);
}

// N-49
TEST_F(Mesh, frames_for_groups_are_spread_by_the_line_that_reaches_more_nodes) {
    for (int n = 0; n < 8; ++n)
        (void)port_.link_up(port_.context);
    know(2, 3, 100, 0);
    for (int n = 0; n < 8; ++n)
        (void)port_.link_up(port_.context);
    ASSERT_TRUE(send(kGroup));
    EXPECT_EQ(view_of(devices_[kColumnLink].with[0]).hops, 1);
    EXPECT_EQ(destination_of(*devices_[kRowLink].with[0]), kGroup);
}

// N-48
TEST_F(Mesh, frames_for_groups_let_all_paths_be_judged) {
    ASSERT_TRUE(send(kGroup));
    done();
    (void)port_.link_up(port_.context);
    EXPECT_EQ(with(kRowLink), 4U) << "two nodes behind each of two";
    EXPECT_EQ(with(kColumnLink), 4U);
}

TEST_F(Mesh, a_node_that_left_and_many_others_are_told_apart) {
    for (std::uint16_t row = 4; row < 24; ++row)
        for (std::uint16_t column = 1; column < 8; ++column)
            know(row, column);
    const std::array alone{NodeAddress{at(1, 3), 100}};
    port_.set_addresses(port_.context, alone, true);
    ASSERT_TRUE(send(at(1, 3)));
    EXPECT_EQ(counts().pathless, 1U);
    ASSERT_TRUE(send(at(7, 3)));
    const unsigned link = with(kRowLink) == 1 ? kRowLink : kColumnLink;
    EXPECT_EQ(view_of(devices_[link].with[0]).receiver,
              link == kRowLink ? at(2, 3) : at(7, 2, kColumnLink));
}

// N-53: a node that has not confirmed its place is asked, and nothing else goes to it or comes.
TEST_F(Mesh, a_node_that_is_not_proved_is_only_asked) {
    const std::array claimed{NodeAddress{at(4, 4), 100, 4}, NodeAddress{at(4, 4, 1), 100, 3}};
    port_.set_addresses(port_.context, claimed, false);
    ASSERT_TRUE(send(at(4, 4)));
    EXPECT_EQ(counts().pathless, 1U);
    Segment* question = frame(at(4, 4), kMe, kNode, 60);
    question->frame[wire::kHeadOctets] = std::byte{8};
    ASSERT_EQ(port_.tx(port_.context, &question, 1), 1);
    EXPECT_EQ(with(kRowLink) + with(kColumnLink), 1U) << "by the node between";
    // The frames of such a node, by the node of this column in its row, and of this row in its
    // column. Here is the one of this row.
    const auto arrives = [&](std::byte type, std::byte kind) {
        Segment* segment = forward(kMe, at(2, 3), 0, at(4, 4), kMe, type, 100);
        segment->frame[wire::kForwardOctets + sizeof(wire::Header)] = kind;
        arrive(kRowLink, segment);
        return received();
    };
    EXPECT_EQ(arrives(kData, std::byte{0}), Mac{});
    EXPECT_EQ(arrives(kNode, std::byte{1}), Mac{}) << "a PING";
    EXPECT_EQ(counts().misrouted, 2U);
    EXPECT_EQ(arrives(kNode, std::byte{8}), at(4, 4)) << "a question";
    EXPECT_EQ(arrives(kNode, std::byte{9}), at(4, 4)) << "an answer";
    EXPECT_EQ(counts().misrouted, 2U);
}

// N-53
TEST_F(Mesh, a_claim_takes_no_place_and_no_address_of_a_node_that_is_proved) {
    const std::array claimed{NodeAddress{at(9, 9), 100, 1}, NodeAddress{at(1, 3, 1), 100, 3}};
    port_.set_addresses(port_.context, claimed, false);
    ASSERT_TRUE(send(at(1, 3)));
    EXPECT_EQ(counts().pathless, 0U);
    arrive(kColumnLink, frame(kMyColumn, at(3, 2, kColumnLink)));
    EXPECT_EQ(received(), at(3, 2));
    // A proved node takes its address from a claim.
    const std::array other{NodeAddress{at(9, 8), 100, 2}, NodeAddress{at(9, 9), 100, 9}};
    port_.set_addresses(port_.context, other, true);
    ASSERT_TRUE(send(at(9, 8)));
    EXPECT_EQ(counts().pathless, 0U);
}

/// Nodes that are not proved: one announcement in the name of a node that does not exist says that
/// another one's address is that of its column.
class MeshStart : public Mesh {
protected:
    static constexpr std::byte kAsks{8};
    static constexpr std::byte kAnswers{9};

    void claim(const Mac& row, std::uint16_t row_number, const Mac& column,
               std::uint16_t column_number) {
        const std::array claimed{NodeAddress{row, 100, row_number},
                                 NodeAddress{column, 100, column_number}};
        port_.set_addresses(port_.context, claimed, false);
    }
    Segment* about_links(const Mac& to, const Mac& from, std::byte kind) {
        Segment* segment = frame(to, from, kNode, 60);
        segment->frame[wire::kHeadOctets] = kind;
        return segment;
    }
    void send_about_links(const Mac& to, std::byte kind) {
        Segment* segment = about_links(to, kMe, kind);
        ASSERT_EQ(port_.tx(port_.context, &segment, 1), 1);
    }
};

// N-53
TEST_F(MeshStart, one_forged_announcement_keeps_no_node_from_being_asked) {
    claim(mac_of(99), 5, at(2, 4), 5);   // forged: nothing is at (5, 5)
    claim(at(2, 4), 2, at(2, 4, 1), 4);  // the node itself
    send_about_links(at(2, 4), kAsks);
    ASSERT_EQ(with(kRowLink), 1U);
    EXPECT_EQ(with(kColumnLink), 0U);
    EXPECT_EQ(destination_of(*devices_[kRowLink].with[0]), at(2, 4));
    arrive(kRowLink, about_links(kMe, at(2, 4), kAnswers));
    EXPECT_EQ(received(), at(2, 4));
    EXPECT_EQ(counts().misrouted, 0U);
    know(2, 4);
    ASSERT_TRUE(send(at(2, 4)));
    EXPECT_EQ(with(kRowLink), 2U);
}

// N-54
TEST_F(MeshStart, a_question_has_the_address_of_its_link) {
    send_about_links(at(3, 2), kAsks);
    ASSERT_EQ(with(kColumnLink), 1U);
    EXPECT_EQ(source_of(*devices_[kColumnLink].with[0]), kMyColumn);
    EXPECT_EQ(destination_of(*devices_[kColumnLink].with[0]), at(3, 2, kColumnLink));
    send_about_links(at(3, 2), kAnswers);
    EXPECT_EQ(source_of(*devices_[kColumnLink].with[1]), kMe) << "N-31";
}

// N-59
TEST_F(MeshStart, a_question_is_answered_by_the_link_that_brought_it_whatever_others_announce) {
    claim(at(4, 2, 1), 7, mac_of(98), 7);  // forged: the column's address of (4, 2) is a node
    claim(at(4, 2), 1, mac_of(97), 1);     // forged: (4, 2) is elsewhere
    arrive(kColumnLink, about_links(kMyColumn, at(4, 2, 1), kAsks));
    EXPECT_EQ(received(), at(4, 2, 1));
    EXPECT_EQ(counts().misrouted, 0U);
    send_about_links(at(4, 2, 1), kAnswers);
    ASSERT_EQ(with(kColumnLink), 1U);
    EXPECT_EQ(with(kRowLink), 0U);
    EXPECT_EQ(destination_of(*devices_[kColumnLink].with[0]), at(4, 2, 1));
    EXPECT_EQ(source_of(*devices_[kColumnLink].with[0]), kMe);
}

TEST_F(MeshStart, each_question_has_one_answer_by_its_way) {
    const Mac stranger = mac_of(96);
    arrive(kRowLink, about_links(kMe, stranger, kAsks));
    EXPECT_EQ(received(), stranger);
    send_about_links(stranger, kAnswers);
    send_about_links(stranger, kAnswers);
    EXPECT_EQ(with(kRowLink), 1U);
    EXPECT_EQ(counts().pathless, 1U) << "nothing says where it is";
    devices_[kRowLink].up = false;
    arrive(kRowLink, about_links(kMe, stranger, kAsks));
    EXPECT_EQ(received(), stranger);
    EXPECT_TRUE(port_.link_up(port_.context));
    send_about_links(stranger, kAnswers);
    EXPECT_EQ(with(kRowLink), 1U);
    EXPECT_EQ(counts().pathless, 2U);
}

TEST_F(MeshStart, a_question_in_forward_is_not_answered_by_the_line_of_an_earlier_one) {
    claim(at(4, 3), 4, at(4, 3, 1), 3);
    arrive(kRowLink, about_links(kMe, at(4, 3), kAsks));  // forged: the node is not of this row
    EXPECT_EQ(received(), at(4, 3));
    Segment* question = forward(kMe, at(2, 3), 0, at(4, 3), kMe, kNode, 60);
    question->frame[wire::kForwardOctets + sizeof(wire::Header)] = kAsks;
    arrive(kRowLink, question);
    EXPECT_EQ(received(), at(4, 3));
    send_about_links(at(4, 3), kAnswers);
    ASSERT_EQ(with(kRowLink) + with(kColumnLink), 1U);
    const Segment* answer = devices_[with(kRowLink) == 1 ? kRowLink : kColumnLink].with[0];
    EXPECT_EQ(view_of(answer).destination, at(4, 3)) << "by a node between";
}

TEST_F(MeshStart, many_questions_of_strangers_take_no_more_memory) {
    for (unsigned n = 0; n < 200; ++n) {
        arrive(kRowLink, about_links(kMe, mac_of(100, n), kAsks));
        EXPECT_EQ(received(), mac_of(100, n));
    }
    send_about_links(mac_of(100, 0), kAnswers);
    EXPECT_EQ(with(kRowLink), 0U) << "forgotten, and asks again";
    send_about_links(mac_of(100, 199), kAnswers);
    EXPECT_EQ(with(kRowLink), 1U);
}

}  // namespace
}  // namespace ulc::port
