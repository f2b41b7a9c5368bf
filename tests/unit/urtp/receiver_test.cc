// SPDX-License-Identifier: BSD-3-Clause
// The receiver, one part alone (urtp/receiver/receiver.h): order, window, gaps and requests, the
// store of late packets, acknowledgements, and the end of a source.
#include "tests/unit/urtp/parts_of_transport.h"

namespace ulc::urtp {
namespace {

using test::Parts;

std::vector<std::string> take(Parts& parts, Rank source) {
    std::vector<std::string> out;
    ReadyPacket packet;
    while (parts.receiver.front(source, packet)) {
        out.emplace_back(reinterpret_cast<const char*>(packet.payload), packet.length);
        (void)parts.receiver.pop(source, parts.now);
        parts.check();
    }
    return out;
}

using Strings = std::vector<std::string>;

// S-8
TEST(UrtpReceiver, puts_packets_in_order) {
    Parts parts(2);
    Session& session = parts.open(1);
    EXPECT_TRUE(parts.arrive(session, 2, "c"));
    EXPECT_TRUE(parts.arrive(session, 1, "b"));
    EXPECT_EQ(parts.receiver.next_source(), kNoRank) << "the first is missing";
    EXPECT_TRUE(session.unicast.missing());
    EXPECT_TRUE(parts.arrive(session, 0, "a"));
    EXPECT_EQ(parts.receiver.next_source(), 1);
    EXPECT_EQ(take(parts, 1), (Strings{"a", "b", "c"}));
    EXPECT_FALSE(session.unicast.missing());
}

// S-6, S-7
TEST(UrtpReceiver, drops_and_counts_what_came_before_and_what_is_beyond_the_window) {
    Parts parts(2);
    Session& session = parts.open(1);
    EXPECT_TRUE(parts.arrive(session, 0));
    EXPECT_FALSE(parts.arrive(session, 0));
    EXPECT_EQ(parts.counters.get(Counter::drop_duplicate), 1U);
    EXPECT_TRUE(session.unicast.ack_due) << "the acknowledgement may be lost";
    EXPECT_FALSE(parts.arrive(session, 1 + session.unicast.window));
    EXPECT_EQ(parts.counters.get(Counter::drop_beyond_window), 1U);
    EXPECT_TRUE(parts.arrive(session, 5));
    EXPECT_FALSE(parts.arrive(session, 5));
    EXPECT_EQ(parts.counters.get(Counter::drop_duplicate), 2U);
    EXPECT_EQ(take(parts, 1).size(), 1U);
}

// S-22, S-24
TEST(UrtpReceiver, asks_for_a_gap_and_says_so_in_a_request) {
    Params params;
    params.reorder_wait = 0;
    Parts parts(2, params);
    Session& session = parts.open(1);
    EXPECT_TRUE(parts.arrive(session, 2));
    const Turn turn = parts.control.next();
    ASSERT_EQ(turn.kind, Turn::Kind::kStream);
    Segment* segment = parts.receiver.speak(*turn.rx, parts.now);
    ASSERT_NE(segment, nullptr);
    wire::FrameView view;
    ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    EXPECT_EQ(view.type, wire::FrameType::kReq);
    const auto& body = *reinterpret_cast<const wire::ReqBody*>(view.body);
    EXPECT_EQ(Seq{body.ack.next}, Seq{0});
    EXPECT_EQ(std::to_integer<unsigned>(view.body[sizeof body]), 0xfcU) << "0 and 1 are missing";
    parts.drop(segment);
    EXPECT_TRUE(session.unicast.timed) << "the repair gives a sample of the round trip";
    parts.check();
}

/// Lets the stream's timer fire if it is due. Returns whether a request is due.
bool asks_at(Parts& parts, RxStream& rx, Nanos now) {
    parts.now = now;
    while (Timer* timer = parts.context.timers.pop_due(now)) {
        EXPECT_EQ(timer, &rx.timer);
        parts.receiver.on_timer(rx, now);
    }
    parts.check();
    return rx.request_due;
}

// S-59: a process that was away finds its timer due and the packet in its port.
TEST(UrtpReceiver, judges_a_gap_when_the_frames_in_the_port_are_taken) {
    Params params;
    params.reorder_wait = 20 * kMicrosecond;
    for (const bool comes : {true, false}) {
        Parts parts(2, params);
        Arrivals arrivals;
        parts.context.arrivals = &arrivals;
        Session& session = parts.open(1);
        RxStream& rx = session.unicast;
        EXPECT_TRUE(parts.arrive(session, 1));
        const Nanos due = rx.ask_new_at;
        ASSERT_EQ(due, parts.now + params.reorder_wait);
        arrivals.took(false, due - 1);
        const Nanos back = due + 5 * kMillisecond;
        EXPECT_FALSE(asks_at(parts, rx, back));
        arrivals.took(true, back);
        EXPECT_FALSE(asks_at(parts, rx, back + 1)) << "the port may have more";
        if (comes) {
            EXPECT_TRUE(parts.arrive(session, 0));
        }
        arrivals.took(false, back + 1);
        EXPECT_EQ(asks_at(parts, rx, back + 2), !comes);
        EXPECT_EQ(take(parts, 1).size(), comes ? 2U : 0U);
    }
}

// S-36, S-37
TEST(UrtpReceiver, keeps_one_packet_of_each_source_when_the_store_is_full) {
    Params params;
    params.rx_pool_packets = 1;
    Parts parts(3, params);
    Session& one = parts.open(1);
    Session& two = parts.open(2);
    EXPECT_TRUE(parts.arrive(one, 0, "first"));
    EXPECT_FALSE(parts.arrive(two, 0, "copied")) << "its frame is let go";
    EXPECT_TRUE(two.reserved_used);
    EXPECT_FALSE(parts.arrive(two, 1));
    EXPECT_EQ(parts.counters.get(Counter::drop_no_room), 1U);
    EXPECT_EQ(take(parts, 2), Strings{"copied"});
    EXPECT_EQ(take(parts, 1), Strings{"first"});
    EXPECT_FALSE(two.reserved_used);
}

// S-12
TEST(UrtpReceiver, rides_acknowledgements_on_data_that_goes_back) {
    Parts parts(2);
    Session& session = parts.open(1);
    wire::AckEntry entry{};
    EXPECT_FALSE(parts.receiver.piggyback(session, true, entry, parts.now)) << "nothing came";
    EXPECT_TRUE(parts.arrive(session, 0));
    EXPECT_TRUE(parts.receiver.piggyback(session, true, entry, parts.now));
    EXPECT_EQ(entry.next, 1U);
    EXPECT_EQ(session.unicast.ack_by, kNever) << "no separate frame any more";
    EXPECT_FALSE(parts.receiver.piggyback(session, true, entry, parts.now));
    EXPECT_EQ(take(parts, 1).size(), 1U);
}

// S-28
TEST(UrtpReceiver, a_waiting_receive_asks_its_source_until_a_packet_comes) {
    Parts parts(2);
    parts.open_group(test::kWorld, {0, 1});
    Session& session = parts.open(1);
    parts.receiver.expect(session, parts.now);
    ASSERT_TRUE(session.expecting);
    parts.now = session.expect_at;
    parts.receiver.on_timer(session, parts.now);
    EXPECT_EQ(parts.control.next().kind, Turn::Kind::kStream);
    EXPECT_GT(session.expect_at, parts.now) << "asks again";
    EXPECT_TRUE(parts.arrive(session, 0));
    EXPECT_FALSE(session.expecting);
    EXPECT_EQ(take(parts, 1).size(), 1U);
}

TEST(UrtpReceiver, the_end_of_a_source_drops_what_is_held_and_keeps_what_is_ready) {
    Parts parts(2);
    Session& session = parts.open(1);
    EXPECT_TRUE(parts.arrive(session, 0, "ready"));
    EXPECT_TRUE(parts.arrive(session, 2, "held"));
    session.gone = true;
    parts.receiver.end(session, parts.now);
    parts.control.remove(session);
    EXPECT_EQ(parts.pool.live(), 1U);
    parts.receiver.check_invariants();
    EXPECT_EQ(take(parts, 1), Strings{"ready"});
}

TEST(UrtpRxRoom, keeps_promised_nodes_apart_and_lets_sources_wait_in_turn) {
    Parts parts(3);
    RxStore store(8);
    store.open();
    RxRoom room(store);
    Session& one = parts.open(1);
    Session& two = parts.open(2);
    EXPECT_EQ(room.of(one), 8U);
    EXPECT_FALSE(room.has(one, 9));
    room.keep(6);
    EXPECT_EQ(room.unkept(), 2U);
    RxNode* taken[3];
    for (RxNode*& node : taken)
        node = store.take(false);
    EXPECT_EQ(room.unkept(), 0U) << "what was promised is not free for others";
    room.unkeep(6);
    EXPECT_EQ(room.unkept(), 5U);
    for (RxNode* node : taken)
        store.give_back(*node);
    EXPECT_FALSE(room.is_awaited());
    room.await(one);
    room.await(two);
    room.await(one);
    EXPECT_EQ(&room.first_starved(), &one);
    room.starve_on();
    EXPECT_EQ(&room.first_starved(), &two);
    room.end_starving(two);
    EXPECT_FALSE(two.starved);
    EXPECT_EQ(&room.first_starved(), &one);
    room.remove(one);
    EXPECT_FALSE(room.is_awaited());
}

}  // namespace
}  // namespace ulc::urtp
