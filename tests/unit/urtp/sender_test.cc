// SPDX-License-Identifier: BSD-3-Clause
// The sender, one part alone (urtp/sender/sender.h): numbers, retained packets, credit, repairs,
// when a packet counts as lost, a silent tail, and the end of a stream.
#include "tests/unit/urtp/parts_of_transport.h"

namespace ulc::urtp {
namespace {

using test::Parts;

wire::AckEntry entry(Rank rank, std::uint32_t next, std::uint16_t credit = 64) {
    return {rank, next, credit, kDelayUnknown};
}

// S-1
TEST(UrtpSender, numbers_packets_and_transmits_them_in_the_order_of_their_commits) {
    Parts parts(3);
    TxStream& one = parts.sender.begin(parts.open(1));
    TxStream& two = parts.sender.begin(parts.open(2));
    ASSERT_EQ(parts.commit(one, "a"), Admission::kYes);
    ASSERT_EQ(parts.commit(two, "b"), Admission::kYes);
    ASSERT_EQ(parts.commit(one, "c"), Admission::kYes);
    const std::pair<Rank, std::uint32_t> expected[] = {{1, 0}, {2, 0}, {1, 1}};
    for (const auto& [rank, seq] : expected) {
        Segment* segment = parts.sender.next_new(parts.now);
        ASSERT_NE(segment, nullptr);
        wire::FrameView view;
        ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        EXPECT_EQ(view.destination, test::mac_of(rank));
        EXPECT_EQ(view.seq, Seq{seq});
        parts.drop(segment);
        parts.check();
    }
    EXPECT_EQ(parts.sender.next_new(parts.now), nullptr);
    EXPECT_FALSE(parts.sender.drained()) << "nothing is acknowledged yet";
}

// S-2
TEST(UrtpSender, retains_packets_until_they_are_acknowledged) {
    Parts parts(2);
    Session& session = parts.open(1);
    TxStream& tx = parts.sender.begin(session);
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(parts.commit(tx, "p"), Admission::kYes);
        EXPECT_TRUE(parts.drop(parts.sender.next_new(parts.now)));
    }
    EXPECT_EQ(parts.pool.live(), 3U);
    std::uint32_t at = 0;
    EXPECT_EQ(parts.sender.on_ack(entry(1, 2), session, at, parts.now), &tx);
    EXPECT_EQ(parts.pool.live(), 1U);
    parts.check();
    EXPECT_EQ(parts.sender.on_ack(entry(1, 4), session, at, parts.now), nullptr) << "not sent";
    EXPECT_EQ(parts.counters.get(Counter::drop_ack_range), 1U);
    EXPECT_NE(parts.sender.on_ack(entry(1, 3), session, at, parts.now), nullptr);
    EXPECT_TRUE(parts.sender.drained());
    EXPECT_EQ(parts.pool.live(), 0U);
    parts.check();
}

TEST(UrtpSender, keeps_the_time_at_which_a_paced_packet_may_go) {
    Parts parts(2);
    TxStream& tx = parts.sender.begin(parts.open(1));
    tx.pacer.set_gap(kMicrosecond, parts.now);
    while (parts.commit(tx, "p") == Admission::kYes)
        EXPECT_TRUE(parts.drop(parts.sender.next_new(parts.now)));
    const Nanos at = tx.pacer.next();
    EXPECT_EQ(tx.timer.due, at);
    ASSERT_GT(tx.probe_at, at);
    EXPECT_EQ(Sender::deadline(tx, at), at) << "the packet that was refused waits for it";
    tx.pacer.set_gap(0, at);
    EXPECT_EQ(Sender::deadline(tx, at), tx.probe_at);
}

// S-5
TEST(UrtpSender, admits_no_more_than_the_receivers_credit) {
    Parts parts(2);
    Session& session = parts.open(1);
    TxStream& tx = parts.sender.begin(session);
    ASSERT_EQ(parts.commit(tx, "p"), Admission::kYes);
    EXPECT_TRUE(parts.drop(parts.sender.next_new(parts.now)));
    std::uint32_t at = 0;
    EXPECT_NE(parts.sender.on_ack(entry(1, 1, 2), session, at, parts.now), nullptr);
    EXPECT_EQ(parts.commit(tx, "p"), Admission::kYes);
    EXPECT_EQ(parts.commit(tx, "p"), Admission::kYes);
    EXPECT_EQ(parts.commit(tx, "p"), Admission::kWindow);
    EXPECT_TRUE(tx.wants_credit);
    parts.check();
}

// S-29, S-30
TEST(UrtpSender, repeats_what_is_asked_for_and_nothing_else) {
    Parts parts(2);
    Session& session = parts.open(1);
    TxStream& tx = parts.sender.begin(session);
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(parts.commit(tx, "p"), Admission::kYes);
        EXPECT_TRUE(parts.drop(parts.sender.next_new(parts.now)));
    }
    EXPECT_EQ(parts.sender.repairs().next(parts.now), nullptr);
    parts.sender.request_one(tx, Seq{1}, 0, true, parts.now);
    parts.check();
    Segment* segment = parts.sender.repairs().next(parts.now);
    ASSERT_NE(segment, nullptr);
    wire::FrameView view;
    ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    EXPECT_EQ(view.seq, Seq{1});
    parts.drop(segment);
    EXPECT_EQ(parts.sender.repairs().next(parts.now), nullptr);
    parts.check();
}

/// Sends packets and asks for some of them. Returns how many it asked for.
int ask_for_half(Parts& parts, TxStream& tx) {
    constexpr int kPackets = 20;
    const Seq first = tx.tail;
    for (int i = 0; i < kPackets; ++i) {
        EXPECT_EQ(parts.commit(tx, "p"), Admission::kYes);
        EXPECT_TRUE(parts.drop(parts.sender.next_new(parts.now)));
    }
    for (std::uint32_t i = 0; i < kPackets; i += 2) {
        parts.now += kMillisecond;  // a loss is judged once a round trip
        parts.sender.request_one(tx, first + i, 0, true, parts.now);
    }
    return kPackets / 2;
}

// S-60: where packets overtake each other, one that is asked for may still come.
TEST(UrtpSender, counts_a_packet_that_may_be_late_as_lost_when_it_repeats_it) {
    Params params;
    params.reorder_wait = 20 * kMicrosecond;
    Parts parts(2, params);
    Session& session = parts.open(1);
    TxStream& tx = parts.sender.begin(session);
    const std::uint32_t before = tx.cwnd;
    ask_for_half(parts, tx);
    std::uint32_t at = 0;
    EXPECT_NE(parts.sender.on_ack(entry(1, tx.sent.value, 100), session, at, parts.now), nullptr);
    EXPECT_EQ(parts.sender.next_repair(parts.now), nullptr) << "they were late";
    EXPECT_GE(tx.cwnd, before);
    for (int left = ask_for_half(parts, tx); left > 0; --left) {
        parts.now += kMillisecond;
        EXPECT_TRUE(parts.drop(parts.sender.next_repair(parts.now)));
    }
    EXPECT_LT(tx.cwnd, before) << "they were lost";
    parts.check();
}

TEST(UrtpSender, counts_a_packet_as_lost_when_it_is_asked_for_on_one_link) {
    Parts parts(2);
    TxStream& tx = parts.sender.begin(parts.open(1));
    const std::uint32_t before = tx.cwnd;
    ask_for_half(parts, tx);
    EXPECT_LT(tx.cwnd, before);
}

// S-35
TEST(UrtpSender, a_failed_send_goes_again_at_once) {
    Parts parts(2);
    TxStream& tx = parts.sender.begin(parts.open(1));
    ASSERT_EQ(parts.commit(tx, "p"), Admission::kYes);
    Segment* segment = parts.sender.next_new(parts.now);
    ASSERT_NE(segment, nullptr);
    wire::FrameView view;
    ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    view.source = test::mac_of(0);
    EXPECT_TRUE(parts.sender.send_failed(view, parts.now));
    parts.drop(segment);
    EXPECT_TRUE(parts.drop(parts.sender.repairs().next(parts.now)));
    parts.check();
}

TEST(UrtpSender, ends_a_stream_and_drops_what_it_retains) {
    Parts parts(2);
    TxStream& tx = parts.sender.begin(parts.open(1));
    ASSERT_EQ(parts.commit(tx, "sent"), Admission::kYes);
    EXPECT_TRUE(parts.drop(parts.sender.next_new(parts.now)));
    ASSERT_EQ(parts.commit(tx, "not sent"), Admission::kYes);
    parts.sender.end(tx, parts.now);
    EXPECT_EQ(parts.pool.live(), 0U);
    EXPECT_TRUE(parts.sender.drained());
    parts.check();
}

TEST(UrtpSender, begins_a_stream_to_a_group_whose_members_are_gone_not_clear) {
    Parts parts(2);
    parts.open(1).gone = true;
    Group& group = parts.open_group(kGroupBit | 1, {0, 1});
    const TxStream& tx = parts.sender.begin(group);
    EXPECT_EQ(tx.destinations, 0U);
    EXPECT_FALSE(tx.clear);
    parts.sender.check_invariants();
}

// S-39
TEST(UrtpSender, asks_for_news_of_a_silent_tail_and_takes_long_silence_for_death) {
    Parts parts(2);
    Session& session = parts.open(1);
    TxStream& tx = parts.sender.begin(session);
    ASSERT_EQ(parts.commit(tx, "p"), Admission::kYes);
    EXPECT_TRUE(parts.drop(parts.sender.next_new(parts.now)));
    EXPECT_FALSE(parts.sender.on_timer(tx, parts.now)) << "not yet";
    bool dead = false;
    int asked = 0;
    for (; asked < 200 && !dead; ++asked) {
        parts.now = tx.probe_at;
        ASSERT_TRUE(parts.sender.on_timer(tx, parts.now));
        EXPECT_TRUE(tx.lacks(0));
        dead = parts.sender.is_dead(session, parts.now);
        parts.sender.ask_for_news(tx, parts.now);
        EXPECT_EQ(parts.control.next().kind, Turn::Kind::kProbe);
        parts.check();
    }
    EXPECT_TRUE(dead);
    EXPECT_GT(asked, 4);
    EXPECT_GE(parts.now, parts.context.params().peer_dead);
}

// S-40
TEST(UrtpTailWait, is_the_round_trip_and_what_the_receiver_keeps_back) {
    Parts parts(2);
    TxStream& tx = parts.sender.begin(parts.open(1));
    const TailWait tail(parts.context);
    const Params& p = parts.context.params();
    for (int n = 0; n < 20; ++n)
        tx.rtt.sample(10 * kMillisecond);
    tx.wait = 0;
    EXPECT_EQ(tail.of(tx), tx.rtt.bound() + p.ack_delay);
    EXPECT_EQ(Nanos{tx.wait}, tail.computed(tx)) << "it is kept";
    EXPECT_TRUE(tail.is_long(kDelayUnknown));
    tail.note_delay(tx, p.ack_delay - 1);
    EXPECT_EQ(tx.patience, 0) << "no longer than was expected";
    tail.note_delay(tx, p.ack_delay);
    EXPECT_EQ(tx.patience, 1);
    EXPECT_EQ(tail.of(tx), tx.rtt.bound() + parts.context.ack_delay(1));
    tail.restart(tx, parts.now);
    EXPECT_EQ(tx.probe_at, parts.now + tail.of(tx));
    EXPECT_LE(tx.timer.due, tx.probe_at);
}

}  // namespace
}  // namespace ulc::urtp
