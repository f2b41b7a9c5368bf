// SPDX-License-Identifier: BSD-3-Clause
// A node of a mesh as receiver and between others (port/mesh_port.h; docs/protocol/NODES.md §8.8).
#include <array>
#include <functional>

#include "tests/unit/port/mesh_fixture.h"

namespace ulc::port {
namespace {

TEST_F(Mesh, frames_of_both_lines_come_with_first_addresses) {
    arrive(kRowLink, frame(kMe, at(2, 1)));
    EXPECT_EQ(received(), at(2, 1));
    arrive(kColumnLink, frame(kMyColumn, at(3, 2, kColumnLink)));
    EXPECT_EQ(received(), at(3, 2));
    arrive(kColumnLink, frame(kGroup, at(3, 2, kColumnLink)));
    EXPECT_EQ(received(), at(3, 2));
    arrive(kRowLink, frame(kMe, mac_of(88)));
    EXPECT_EQ(received(), mac_of(88)) << "not known yet";
    arrive(kRowLink, frame(kMyColumn, at(2, 1)));
    EXPECT_EQ(received(), Mac{}) << "for the other link";
    arrive(kRowLink, frame(kBroadcastMac, kMe));
    EXPECT_EQ(received(), Mac{}) << "its own";
    arrive(kRowLink, frame(kMe, at(3, 2)));
    EXPECT_EQ(received(), Mac{}) << "a node of the column by the row";
    EXPECT_EQ(counts().misrouted, 1U);
}

// N-44
TEST_F(Mesh, a_frame_for_this_node_comes_without_forward) {
    arrive(kColumnLink, forward(kMyColumn, at(1, 2, kColumnLink), 0, at(1, 3), kMe));
    Segment* segment = receive();
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(segment->length, 1000U);
    EXPECT_EQ(destination_of(*segment), kMe);
    EXPECT_EQ(source_of(*segment), at(1, 3));
    EXPECT_EQ(segment->frame[14], kData);
    for (std::uint32_t n = 28; n < 1000; ++n)
        ASSERT_EQ(segment->frame[n], static_cast<std::byte>(n % 251));
    FramePool::put(segment);
    arrive(kRowLink, forward(kMe, at(2, 3), 0, at(1, 3), kMe));
    EXPECT_EQ(received(), at(1, 3)) << "by the other path";
    EXPECT_EQ(counts().forwarded, 0U);
}

// N-44
TEST_F(Mesh, a_frame_for_a_node_of_the_other_line_is_sent_on) {
    arrive(kRowLink, forward(kMe, at(2, 1), 1, at(2, 1), at(3, 2)));
    EXPECT_EQ(receive(), nullptr) << "it is not for the engine";
    EXPECT_EQ(with(kRowLink), 0U);
    ASSERT_EQ(with(kColumnLink), 1U);
    const Segment* sent = devices_[kColumnLink].with[0];
    const wire::ForwardView view = view_of(sent);
    EXPECT_EQ(view.receiver, at(3, 2, kColumnLink));
    EXPECT_EQ(view.sender, kMyColumn);
    EXPECT_EQ(view.hops, 0);
    EXPECT_EQ(view.origin, at(2, 1));
    EXPECT_EQ(view.destination, at(3, 2));
    EXPECT_EQ(sent->length, 1016U);
    EXPECT_EQ(sent->frame[1015], static_cast<std::byte>(999 % 251));
    arrive(kColumnLink, forward(kMyColumn, at(3, 2), 1, at(3, 2), at(2, 1)));
    EXPECT_EQ(receive(), nullptr);
    ASSERT_EQ(with(kRowLink), 1U);
    EXPECT_EQ(view_of(devices_[kRowLink].with[0]).receiver, at(2, 1));
    EXPECT_EQ(view_of(devices_[kRowLink].with[0]).sender, kMe);
    EXPECT_EQ(counts().forwarded, 2U);
    EXPECT_EQ(port_.tx_pending(port_.context), 0U) << "the engine did not send them";
}

// N-45
TEST_F(Mesh, a_frame_for_a_group_is_taken_and_sent_on) {
    arrive(kRowLink, forward(kBroadcastMac, at(2, 1), 1, at(2, 1), kGroup));
    Segment* segment = receive();
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(destination_of(*segment), kGroup);
    EXPECT_EQ(source_of(*segment), at(2, 1));
    EXPECT_EQ(segment->length, 1000U);
    FramePool::put(segment);
    ASSERT_EQ(with(kColumnLink), 1U);
    const wire::ForwardView view = view_of(devices_[kColumnLink].with[0]);
    EXPECT_EQ(view.receiver, kGroup);
    EXPECT_EQ(view.sender, kMyColumn);
    EXPECT_EQ(view.hops, 0);
    EXPECT_EQ(view.destination, kGroup);
    arrive(kColumnLink, forward(kGroup, at(1, 2, kColumnLink), 0, at(1, 3), kGroup));
    EXPECT_EQ(received(), at(1, 3));
    EXPECT_EQ(with(kRowLink), 0U) << "its last segment";
    devices_[kColumnLink].up = false;
    (void)port_.link_up(port_.context);
    arrive(kRowLink, forward(kBroadcastMac, at(2, 1), 1, at(2, 1), kGroup));
    EXPECT_EQ(received(), at(2, 1));
    EXPECT_EQ(counts().full, 1U);
}

struct Wrong {
    const char* what;
    unsigned link;
    Mac receiver, sender;
    std::uint8_t hops;
    Mac origin, destination;
};

// N-46
TEST_F(Mesh, frames_of_nodes_that_may_not_send_them_are_dropped) {
    const Mac stranger = mac_of(99);
    const Wrong cases[] = {
        {"another node's origin", kRowLink, kMe, at(2, 1), 1, at(2, 3), at(3, 2)},
        {"an origin of the other line", kRowLink, kMe, at(3, 2), 1, at(3, 2), at(1, 2)},
        {"an unknown origin", kRowLink, kMe, stranger, 1, stranger, at(3, 2)},
        {"the origin's other address", kRowLink, kMe, at(2, 1, 1), 1, at(2, 1, 1), at(3, 2)},
        {"to the same line", kRowLink, kMe, at(2, 1), 1, at(2, 1), at(2, 3)},
        {"two segments away", kRowLink, kMe, at(2, 1), 1, at(2, 1), at(3, 3)},
        {"to this node", kRowLink, kMe, at(2, 1), 1, at(2, 1), kMe},
        {"to an unknown node", kRowLink, kMe, at(2, 1), 1, at(2, 1), stranger},
        {"to one node, for all", kRowLink, kBroadcastMac, at(2, 1), 1, at(2, 1), at(3, 2)},
        {"to a group, for one", kRowLink, kMe, at(2, 1), 1, at(2, 1), kGroup},
        {"a further segment for 0", kRowLink, kMe, at(2, 1), 0, at(1, 1), at(3, 2)},
        {"an unknown node between", kRowLink, kMe, stranger, 0, at(1, 3), kMe},
        {"a node between of another column", kRowLink, kMe, at(2, 1), 0, at(1, 3), kMe},
        {"a node between by its other link", kRowLink, kMe, at(2, 3, 1), 0, at(1, 3), kMe},
        {"a node between of the other line", kRowLink, kMe, at(1, 2), 0, at(1, 3), kMe},
        {"an origin of this row", kRowLink, kMe, at(2, 3), 0, at(2, 1), kMe},
        {"an origin of this column", kRowLink, kMe, at(2, 3), 0, at(1, 2), kMe},
        {"the node between as origin", kRowLink, kMe, at(2, 3), 0, at(2, 3), kMe},
        {"an unknown origin for one", kColumnLink, kMyColumn, at(1, 2, 1), 0, stranger, kMe},
        {"an unknown origin for a group", kColumnLink, kGroup, at(1, 2, 1), 0, stranger, kGroup},
        {"an unknown origin's data for all", kColumnLink, kBroadcastMac, at(1, 2, 1), 0, stranger,
         kBroadcastMac},
        {"an unknown node between for all", kColumnLink, kBroadcastMac, stranger, 0, mac_of(98),
         kBroadcastMac},
    };
    std::uint64_t dropped = 0;
    for (const Wrong& wrong : cases) {
        arrive(wrong.link,
               forward(wrong.receiver, wrong.sender, wrong.hops, wrong.origin, wrong.destination));
        EXPECT_EQ(received(), Mac{}) << wrong.what;
        EXPECT_EQ(counts().misrouted, ++dropped) << wrong.what;
    }
    EXPECT_EQ(counts().forwarded, 0U);
    EXPECT_EQ(counts().malformed, 0U);
    EXPECT_EQ(with(kRowLink) + with(kColumnLink), 0U);
}

// N-46
TEST_F(Mesh, a_node_that_is_not_known_yet_may_speak_for_itself_to_all) {
    const Mac stranger = mac_of(99);
    arrive(kRowLink, forward(kBroadcastMac, stranger, 1, stranger, kBroadcastMac, kNode));
    EXPECT_EQ(received(), stranger);
    EXPECT_EQ(with(kColumnLink), 1U) << "sent on, so that all know it";
    arrive(kColumnLink,
           forward(kBroadcastMac, at(1, 2, kColumnLink), 0, mac_of(98), kBroadcastMac, kJob));
    EXPECT_EQ(received(), mac_of(98));
    arrive(kRowLink, forward(kBroadcastMac, stranger, 1, mac_of(98), kBroadcastMac, kNode));
    EXPECT_EQ(received(), Mac{}) << "not for another one";
}

// N-43, N-46
TEST_F(Mesh, malformed_frames_are_dropped) {
    const std::function<void(Segment&)> faults[] = {
        [](Segment& s) { s.frame[14] = std::byte{0x1d}; },  // version
        [](Segment& s) { s.frame[15] = std::byte{2}; },     // further segments
        [](Segment& s) { s.frame[15] = std::byte{255}; },
        [](Segment& s) { s.frame[16] |= std::byte{1}; },      // a group as origin
        [](Segment& s) { std::memset(s.frame + 16, 0, 6); },  // no origin
        [](Segment& s) { std::memset(s.frame + 22, 0, 6); },  // no destination
        [](Segment& s) { std::memcpy(s.frame + 22, s.frame + 16, 6); },
        [](Segment& s) { s.frame[6] |= std::byte{1}; },                // a group as sender
        [](Segment& s) { s.frame[28] = s.frame[29] = std::byte{0}; },  // length
        [](Segment& s) { s.frame[28] = std::byte{0}, s.frame[29] = std::byte{13}; },
        [](Segment& s) { s.frame[28] = std::byte{4}; },
        [](Segment& s) { s.length = 43; },
        [](Segment& s) { s.frame[30] = std::byte{0x0d}; },  // FORWARD within
        [](Segment& s) { s.frame[13] = std::byte{0xb6}; },  // type of the frame
    };
    std::uint64_t dropped = 0;
    for (const auto& fault : faults) {
        Segment* segment = forward(kMe, at(2, 1), 1, at(2, 1), at(3, 2));
        fault(*segment);
        arrive(kRowLink, segment);
        EXPECT_EQ(received(), Mac{});
        EXPECT_EQ(counts().malformed, ++dropped);
    }
    EXPECT_EQ(counts().forwarded, 0U);
}

// N-47
TEST_F(Mesh, few_frames_of_others_wait_and_take_turns_with_its_own) {
    devices_[kColumnLink].accepts = 0;
    for (int n = 0; n < 70; ++n) {
        arrive(kRowLink, forward(kMe, at(2, 1), 1, at(2, 1), at(3, 2)));
        EXPECT_EQ(receive(), nullptr);
    }
    EXPECT_EQ(counts().full, 6U);
    EXPECT_EQ(counts().forwarded, 64U);
    EXPECT_EQ(port_.tx_pending(port_.context), 0U);
    for (int n = 0; n < 32; ++n)
        ASSERT_TRUE(send(at(1, 2), kData, 508));
    devices_[kColumnLink].accepts = 30;
    EXPECT_EQ(port_.tx_pending(port_.context), 32U);
    std::array<std::uint64_t, 2> octets{};
    for (const Segment* segment : devices_[kColumnLink].with)
        octets[wire::is_forward(segment->frame, segment->length) ? 1 : 0] += segment->length;
    EXPECT_EQ(with(kColumnLink), 30U);
    EXPECT_NEAR(static_cast<double>(octets[0]), static_cast<double>(octets[1]), 1016);
    devices_[kColumnLink].accepts = 1000;
    (void)port_.tx_pending(port_.context);
    EXPECT_EQ(with(kColumnLink), 96U);
}

TEST_F(Mesh, a_device_is_offered_frames_of_others_after_any_number_of_them) {
    devices_[kColumnLink].accepts = 10'000;
    for (int n = 0; n < 3000; ++n) {
        arrive(kRowLink, forward(kMe, at(2, 1), 1, at(2, 1), at(3, 2), kData, 60));
        EXPECT_EQ(receive(), nullptr);
        done();
    }
    EXPECT_EQ(counts().forwarded, 3000U);
    EXPECT_EQ(counts().full, 0U) << "though the engine sends nothing";
}

// N-48
TEST_F(Mesh, echo_requests_are_answered_by_the_path_that_brought_them) {
    const auto request = [&](unsigned link, const Mac& between) {
        wire::NodeBody body{};
        body.kind = wire::NodeKind::kEchoRequest;
        body.incarnation = 1;
        body.token = 77;
        std::array<std::byte, 60> inner{};
        wire::FrameHead head;
        head.destination = kMe;
        head.source = at(1, 3);
        head.type = wire::FrameType::kNode;
        const std::size_t octets = wire::build_control(
            inner.data(), head, wire::put_node(inner.data() + wire::kHeadOctets, body));
        Segment* segment = pool_.get();
        segment->length = static_cast<std::uint32_t>(
            wire::build_forward(segment->frame, {at(2, 2, link), between, 0, at(1, 3), kMe, 0},
                                wire::kEtherTypeDefault, inner.data(), octets));
        arrive(link, segment);
        EXPECT_EQ(received(), Mac{}) << "it is not for the engine";
    };
    request(kColumnLink, at(1, 2, kColumnLink));
    EXPECT_EQ(with(kRowLink), 0U);
    ASSERT_EQ(with(kColumnLink), 1U);
    const Segment* reply = devices_[kColumnLink].with[0];
    EXPECT_EQ(view_of(reply).receiver, at(1, 2, kColumnLink));
    EXPECT_EQ(view_of(reply).hops, 1);
    EXPECT_EQ(view_of(reply).destination, at(1, 3));
    EXPECT_EQ(reply->frame[wire::kForwardOctets + 14], std::byte{7});
    EXPECT_EQ(reply->frame[wire::kForwardOctets + 14 + 15], std::byte{77}) << "the token";
    for (int n = 0; n < 100; ++n)
        request(kRowLink, at(2, 3));
    EXPECT_EQ(with(kRowLink), 31U) << "32 between two looks";
}

}  // namespace
}  // namespace ulc::port
