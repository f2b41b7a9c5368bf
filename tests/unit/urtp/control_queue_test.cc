// SPDX-License-Identifier: BSD-3-Clause
// The order of control frames, one part alone (urtp/control_queue.h): sessions, streams and groups
// have turns, and packets have one after a run of control frames.
#include "tests/unit/urtp/parts_of_transport.h"

namespace ulc::urtp {
namespace {

using test::Parts;

// S-48
TEST(UrtpControlQueue, gives_sessions_their_turns_in_the_order_of_their_wishes) {
    Parts parts(4);
    Session& one = parts.open(1);
    Session& two = parts.open(2);
    one.unicast.ack_due = two.unicast.ack_due = true;
    parts.control.push(two);
    parts.control.push(one);
    parts.control.push(two);  // waits already
    Turn turn = parts.control.next();
    EXPECT_EQ(turn.kind, Turn::Kind::kStream);
    EXPECT_EQ(turn.session, &two);
    parts.control.spoke(turn, parts.now);
    turn = parts.control.next();
    EXPECT_EQ(turn.session, &one) << "the other's turn, though the first still wants to speak";
    one.unicast.ack_due = two.unicast.ack_due = false;
    EXPECT_EQ(parts.control.next().kind, Turn::Kind::kNone);
    EXPECT_TRUE(parts.control.empty()) << "those with nothing to say leave";
    parts.check();
}

// S-48
TEST(UrtpControlQueue, gives_the_streams_of_a_session_their_turns) {
    Parts parts(2);
    Group& group = parts.open_group(test::kWorld, {0, 1});
    Session& session = parts.open(1);
    RxStream& multicast = *parts.receiver.group_stream(group, session);
    parts.receiver.make_request_due(session.unicast, false);
    parts.receiver.make_request_due(multicast, false);
    session.unicast.high = session.unicast.next + 1;  // something is missing in both
    multicast.high = multicast.next + 1;
    Turn turn = parts.control.next();
    EXPECT_EQ(turn.rx, &session.unicast);
    parts.control.spoke(turn, parts.now);
    turn = parts.control.next();
    EXPECT_EQ(turn.rx, &multicast);
    parts.control.spoke(turn, parts.now);
    EXPECT_EQ(parts.control.next().rx, &session.unicast);
}

TEST(UrtpControlQueue, forgets_a_request_whose_gap_was_closed) {
    Parts parts(2);
    Session& session = parts.open(1);
    parts.receiver.make_request_due(session.unicast, false);
    EXPECT_EQ(parts.control.next().kind, Turn::Kind::kNone);
    EXPECT_FALSE(session.unicast.request_due);
}

TEST(UrtpControlQueue, asks_first_whether_a_doubtful_peer_lives) {
    Parts parts(2);
    Session& session = parts.open(1);
    session.in_doubt = session.unicast.ack_due = true;
    parts.control.push(session);
    EXPECT_EQ(parts.control.next().kind, Turn::Kind::kDoubt);
}

TEST(UrtpControlQueue, speaks_for_sessions_before_streams_before_groups) {
    class Talkative final : public GroupRules {
    public:
        bool has_word() noexcept override { return true; }
    };
    Parts parts(3);
    Group& group = parts.open_group(test::kWorld, {0, 1, 2});
    group.rules = std::make_unique<Talkative>();
    Session& session = parts.open(1);
    TxStream& tx = parts.sender.begin(session);
    EXPECT_EQ(parts.commit(tx, "data"), Admission::kYes);
    session.unicast.ack_due = true;
    parts.control.push(group);
    parts.control.push(tx);
    parts.control.push(session);
    Turn turn = parts.control.next();
    EXPECT_EQ(turn.kind, Turn::Kind::kStream);
    session.unicast.ack_due = false;
    turn = parts.control.next();
    EXPECT_EQ(turn.kind, Turn::Kind::kProbe);
    EXPECT_EQ(turn.tx, &tx);
    parts.control.spoke(turn, parts.now);
    turn = parts.control.next();
    EXPECT_EQ(turn.kind, Turn::Kind::kGroup);
    EXPECT_EQ(turn.group, &group);
    parts.control.remove(group);
}

// S-47
TEST(UrtpControlQueue, leaves_packets_a_turn_after_a_run_of_control_frames) {
    Parts parts(2);
    Session& session = parts.open(1);
    session.unicast.ack_due = true;
    parts.control.push(session);
    for (std::uint32_t i = 0; i < ControlQueue::kRunMax; ++i) {
        ASSERT_TRUE(parts.control.goes_first()) << i;
        parts.control.spoke(parts.control.next(), parts.now);
        parts.control.extend_run();
    }
    EXPECT_FALSE(parts.control.goes_first());
    EXPECT_TRUE(parts.control.end_run());
    EXPECT_TRUE(parts.control.goes_first());
    EXPECT_FALSE(parts.control.end_run()) << "a run that was not full";
}

// S-49
TEST(UrtpControlQueue, waits_for_the_port_where_frames_go_one_by_one) {
    Params params;
    params.control_one_by_one = true;
    Departures departures;
    Parts parts(2, params);
    parts.context.departures = &departures;
    Session& session = parts.open(1);
    session.unicast.ack_due = true;
    parts.control.push(session);
    EXPECT_FALSE(parts.control.waits(parts.now));
    parts.control.spoke(parts.control.next(), parts.now);
    ++departures.next;  // the port has it
    EXPECT_TRUE(parts.control.waits(parts.now));
    EXPECT_FALSE(parts.control.waits(parts.now + params.control_wait_max)) << "bounded";
    departures.leave_until(departures.next, parts.now);
    EXPECT_FALSE(parts.control.waits(parts.now));
}

}  // namespace
}  // namespace ulc::urtp
