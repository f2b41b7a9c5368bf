// SPDX-License-Identifier: BSD-3-Clause
// Peers, groups and their lookup, one part alone (urtp/sessions.h): which frames are a peer's, and
// how losses and ends are reported.
#include "tests/unit/urtp/parts_of_transport.h"

namespace ulc::urtp {
namespace {

using test::Parts;

TEST(UrtpSessions, finds_groups_by_handle_after_others_were_erased) {
    Parts parts(3);
    Group* groups[3] = {};
    for (std::uint32_t i = 0; i < 3; ++i)
        groups[i] = &parts.open_group(test::kWorld + i, {0, 1, 2});
    parts.check();
    EXPECT_EQ(parts.sessions.find_group(test::kWorld + 2), groups[2]);
    parts.sessions.erase_group(*groups[1]);
    EXPECT_EQ(parts.sessions.find_group(test::kWorld + 1), nullptr);
    EXPECT_EQ(parts.sessions.find_group(test::kWorld + 2), groups[2]);
    EXPECT_EQ(parts.sessions.find_group(test::kWorld), groups[0]);
    parts.check();
}

TEST(UrtpSessions, refuses_groups_that_cannot_be) {
    Parts parts(3);
    Group* group = nullptr;
    const auto add = [&](GroupHandle handle, std::vector<Rank> ranks) {
        return parts.sessions.add_group(handle, ranks, group);
    };
    EXPECT_EQ(add(5, {0, 1}), Err::kInvalid) << "no handle of a group";
    EXPECT_EQ(add(test::kWorld, {}), Err::kInvalid);
    EXPECT_EQ(add(test::kWorld, {1, 2}), Err::kInvalid) << "without this rank";
    EXPECT_EQ(add(test::kWorld, {0, 1, 1}), Err::kInvalid);
    EXPECT_EQ(add(test::kWorld, {0, 3}), Err::kInvalid) << "no such rank";
    parts.open_group(test::kWorld, {0, 1});
    EXPECT_EQ(add(test::kWorld, {0, 2}), Err::kMismatch);
    parts.check();
}

TEST(UrtpSessions, tells_losses_before_the_end_and_each_once) {
    Parts parts(2, {}, "detect");
    Session& session = parts.open(1);
    parts.receiver.lose(session.unicast, 3);
    session.gone = session.gone_untold = true;
    session.gone_as = EventKind::kPeerDied;
    parts.sessions.tell(session);
    parts.check();
    Event event;
    ASSERT_TRUE(parts.sessions.poll_event(event));
    EXPECT_EQ(event.kind, EventKind::kLost);
    EXPECT_EQ(event.count, 3U);
    ASSERT_TRUE(parts.sessions.poll_event(event));
    EXPECT_EQ(event.kind, EventKind::kPeerDied);
    EXPECT_FALSE(parts.sessions.poll_event(event));
    parts.check();
}

TEST(UrtpSessions, tells_with_the_end_how_many_messages_failed) {
    Parts parts(2);
    Session& session = parts.open(1);
    session.lost = 3;
    session.gone = session.gone_untold = true;
    session.gone_as = EventKind::kPeerDied;
    parts.sessions.tell(session);
    Event event;
    ASSERT_TRUE(parts.sessions.poll_event(event));
    EXPECT_EQ(event.kind, EventKind::kPeerDied);
    EXPECT_EQ(event.count, 3U);
    EXPECT_FALSE(parts.sessions.poll_event(event));
    parts.check();
}

TEST(UrtpSessions, a_frame_is_from_a_peer_if_rank_and_address_agree) {
    Parts parts(2);
    wire::FrameView view;
    view.rank = 1;
    view.source = test::mac_of(1);
    EXPECT_TRUE(parts.sessions.is_from_peer(view));
    view.source = test::mac_of(0);
    EXPECT_FALSE(parts.sessions.is_from_peer(view));
    view.rank = 2;
    EXPECT_FALSE(parts.sessions.is_from_peer(view));
}

}  // namespace
}  // namespace ulc::urtp
