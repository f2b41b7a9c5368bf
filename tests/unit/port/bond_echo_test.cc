// SPDX-License-Identifier: BSD-3-Clause
// Echo requests and replies of the links of a bond (docs/protocol/NODES.md §8.7).
#include "tests/unit/port/bond_fixture.h"
#include "wire/build.h"
#include "wire/job.h"

namespace ulc::port {
namespace {

/// Kinds of NODE frames, and their place.
constexpr std::byte kRequest{6};
constexpr std::byte kReply{7};
constexpr std::size_t kKindAt = wire::kHeadOctets;

// N-37
TEST_F(Bond, echo_requests_are_answered_by_the_link_that_brought_them) {
    make(2);
    const auto request = [&](const Mac& to, const Mac& from) {
        Segment* segment = pool_.get();
        wire::NodeBody body{};
        body.kind = wire::NodeKind::kEchoRequest;
        body.incarnation = 1;
        body.token = 77;
        const std::size_t octets = wire::put_node(segment->frame + wire::kHeadOctets, body);
        wire::FrameHead head;
        head.destination = to;
        head.source = from;
        head.type = wire::FrameType::kNode;
        segment->length =
            static_cast<std::uint32_t>(wire::build_control(segment->frame, head, octets));
        return segment;
    };
    arrive(1, request(mac_of(1, 1), mac_of(2, 3)));
    EXPECT_EQ(received(), Mac{}) << "it is not for the engine";
    EXPECT_EQ(with(0), 0U);
    ASSERT_EQ(with(1), 1U);
    const Segment* reply = device(1).with[0];
    EXPECT_EQ(destination_of(*reply), mac_of(2, 3));
    EXPECT_EQ(source_of(*reply), mac_of(1, 1));
    EXPECT_EQ(reply->frame[kKindAt], kReply);
    EXPECT_EQ(reply->frame[kKindAt + 15], std::byte{77}) << "the token";
    arrive(1, request(mac_of(1, 1), kGroup));
    EXPECT_EQ(received(), Mac{});
    arrive(1, request(mac_of(1, 1), mac_of(1)));
    EXPECT_EQ(received(), Mac{});
    EXPECT_EQ(with(1), 1U) << "no answer to a group, and none to itself";
    for (int n = 0; n < 100; ++n) {
        arrive(0, request(mac_of(1), mac_of(2)));
        EXPECT_EQ(received(), Mac{});
    }
    EXPECT_EQ(with(0), 31U) << "32 between two looks";
    (void)port_.link_up(port_.context);
    arrive(0, request(mac_of(1), mac_of(2)));
    EXPECT_EQ(received(), Mac{});
    EXPECT_EQ(with(0), 32U);
}

// N-35, N-36, N-39
TEST_F(Bond, a_link_whose_requests_have_no_reply_is_left_with_what_waits) {
    make(2);
    peer({100, 100});
    ASSERT_TRUE(send(mac_of(2)));
    // Returns the looks until the next requests, which are replied to.
    const auto look = [&](bool second_replies) {
        unsigned looks = 0;
        EXPECT_TRUE(send(mac_of(2), kData, 60));
        for (unsigned link : {0U, 1U})
            device(link).done(with(link));
        while (with(0) == 0 && ++looks < 300)
            EXPECT_TRUE(port_.link_up(port_.context));
        for (unsigned link : {0U, 1U}) {
            unsigned requests = 0;
            for (Segment* segment : device(link).with) {
                if (segment->frame[14] != kNode) continue;
                ++requests;
                EXPECT_EQ(segment->frame[kKindAt], kRequest);
                EXPECT_EQ(source_of(*segment), mac_of(1, link));
                if (link == 1 && !second_replies) continue;
                const Mac to = destination_of(*segment);
                const Mac from = source_of(*segment);
                Segment* reply = frame(from, to, kNode, segment->length);
                std::memcpy(reply->frame + 12, segment->frame + 12, segment->length - 12);
                reply->frame[kKindAt] = kReply;
                arrive(link, reply);
            }
            EXPECT_EQ(requests, 1U);
            device(link).done(with(link));
        }
        EXPECT_EQ(received(), Mac{});
        return looks;
    };
    EXPECT_EQ(look(false), 49U) << "the constructor looked too";
    EXPECT_EQ(look(false), 50U);
    for (int n = 0; n < 6; ++n)
        EXPECT_EQ(look(false), 8U) << "in doubt";
    EXPECT_EQ(port_.silences(port_.context), 0U);
    device(1).accepts = 0;
    for (int n = 0; n < 8; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_EQ(with(0), 4U);
    for (int n = 0; n < 8; ++n)
        EXPECT_TRUE(port_.link_up(port_.context));
    EXPECT_EQ(port_.silences(port_.context), 1U);
    EXPECT_EQ(port_.addresses(port_.context)[1].megabits, 0U) << "announced as down";
    ASSERT_TRUE(send(mac_of(2)));
    EXPECT_GE(with(0), 9U) << "the other link has its frames";
    device(0).done(with(0));
    device(1).accepts = 1000;
    EXPECT_EQ(port_.tx_pending(port_.context), 0U) << "only the silent link has a request";
    EXPECT_EQ(look(true), 50U) << "no doubt";
    EXPECT_EQ(look(true), 50U);
    EXPECT_EQ(look(true), 8U);
    EXPECT_EQ(look(true), 8U);
    EXPECT_EQ(port_.addresses(port_.context)[1].megabits, 0U);
    EXPECT_EQ(look(true), 8U);
    EXPECT_TRUE(port_.link_up(port_.context));
    EXPECT_EQ(port_.addresses(port_.context)[1].megabits, 100U) << "used again";
}

// N-38
TEST_F(Bond, a_device_that_takes_nothing_is_left) {
    make(2);
    peer({100, 100});
    device(0).accepts = 10'000;
    device(1).accepts = 0;
    for (int n = 0; n < 100; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_EQ(port_.tx_pending(port_.context), 100U);
    device(0).done(with(0));
    for (int n = 0; n < 50 * 30; ++n) {
        ASSERT_TRUE(send(mac_of(2), kData, 60));
        EXPECT_TRUE(port_.link_up(port_.context));
        for (Segment* segment : device(0).with) {
            if (segment->frame[14] != kNode) continue;
            Segment* reply = frame(mac_of(1), mac_of(2), kNode, segment->length);
            std::memcpy(reply->frame + 12, segment->frame + 12, segment->length - 12);
            reply->frame[kKindAt] = kReply;
            arrive(0, reply);
        }
        EXPECT_EQ(received(), Mac{});
        device(0).done(with(0));
    }
    EXPECT_EQ(port_.silences(port_.context), 1U);
    EXPECT_EQ(port_.tx_pending(port_.context), 0U) << "what waits for it is no load";
}

// N-36
TEST_F(Bond, no_stranger_judges_the_links) {
    make(2);
    peer({100, 100});
    arrive(0, frame(mac_of(1), mac_of(9)));
    EXPECT_EQ(received(), mac_of(9));
    ASSERT_TRUE(send(mac_of(9), kNode, 60)) << "an answer to it";
    device(0).done(with(0));
    for (int n = 0; n < 600; ++n)
        EXPECT_TRUE(port_.link_up(port_.context));
    EXPECT_EQ(with(0) + with(1), 0U) << "nothing is asked of it";
    ASSERT_TRUE(send(mac_of(2)));
    for (int n = 0; n < 300; ++n)
        EXPECT_TRUE(port_.link_up(port_.context));
    EXPECT_GE(with(0) + with(1), 3U) << "the node that gets data is asked";
}

}  // namespace
}  // namespace ulc::port
