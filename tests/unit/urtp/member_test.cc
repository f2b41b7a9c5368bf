// SPDX-License-Identifier: BSD-3-Clause
// Tests a member as its engine sees it: two or more members on a wire that loses the frames that
// the test selects.
#include "urtp/transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "tests/unit/urtp/world.h"

namespace ulc::urtp::test {
namespace {

using Strings = std::vector<std::string>;

TEST(UrtpTransport, delivers_a_unicast_packet_with_its_tag) {
    World w(2);
    EXPECT_EQ(w.send(0, PacketMeta{.stream = 1, .has_tag = true, .tag = 42}, "hello"),
              Admission::kYes);
    w.run_for(kMillisecond / 10);
    EXPECT_EQ(w.members[1]->next_source(), 0);
    ReadyPacket packet;
    ASSERT_TRUE(w.members[1]->front(0, packet));
    EXPECT_TRUE(packet.first() && packet.last() && packet.has_tag());
    EXPECT_EQ(packet.tag, 42U);
    EXPECT_EQ(packet.stream, 1U);
    EXPECT_EQ(w.receive(1, 0), Strings{"hello"});
    EXPECT_EQ(w.members[1]->next_source(), kNoRank);
}

// S-12
TEST(UrtpTransport, drains_after_the_delayed_acknowledgement) {
    World w(2);
    EXPECT_EQ(w.send(0, 1, "x"), Admission::kYes);
    EXPECT_FALSE(w.members[0]->drained());
    w.run_for(kMillisecond);
    EXPECT_TRUE(w.drained());
    EXPECT_EQ(w.count(1, Counter::ack_sent), 1U);
    EXPECT_EQ(w.count(0, Counter::probe_sent), 0U);
}

TEST(UrtpTransport, counts_whole_messages_that_a_dead_peer_did_not_acknowledge) {
    World w(3);
    ASSERT_EQ(w.send(0, 1, "acknowledged"), Admission::kYes);
    w.run_for(kMillisecond);
    ASSERT_TRUE(w.drained());
    w.dead[1] = true;
    ASSERT_EQ(w.send(0, 2, "to another"), Admission::kYes);
    ASSERT_EQ(w.send(0, 1, "one"), Admission::kYes);
    const PacketMeta first{.stream = 1, .last = false, .message_length = 6};
    ASSERT_EQ(w.send(0, first, "two"), Admission::kYes);
    ASSERT_EQ(w.send(0, {.stream = 1, .first = false, .message_length = 6}, "two"),
              Admission::kYes);
    w.run_for(100 * kMicrosecond);
    ASSERT_EQ(w.send(0, 1, "three, which was not transmitted"), Admission::kYes);
    ASSERT_EQ(w.send(0, first, "not submitted whole"), Admission::kYes);
    w.members[0]->peer_gone(1, EventKind::kPeerLeft, w.now);
    Event event;
    ASSERT_TRUE(w.members[0]->poll_event(event));
    EXPECT_EQ(event.kind, EventKind::kPeerLeft);
    EXPECT_EQ(event.rank, 1);
    EXPECT_EQ(event.count, 3U);
    EXPECT_FALSE(w.members[0]->poll_event(event)) << "and no packets of it are lost";
    w.run_for(kMillisecond);
}

/// Releases the frame as a port would.
void give_up(World& w, Rank from, Segment* frame) {
    wire::FrameView view;
    ASSERT_EQ(wire::parse(frame->frame, frame->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    EXPECT_TRUE(w.members[from]->send_failed(view, w.now));
    w.pool.table().drop(frame);
}

// S-35
TEST(UrtpTransport, sends_again_at_once_what_the_port_gave_up) {
    World w(3);
    Transport& member = *w.members[0];
    for (const StreamId stream : {StreamId{1}, StreamId{kWorld}}) {
        ASSERT_EQ(submit(member, w.pool.table(), {.stream = stream}, "x", w.now), Admission::kYes);
        Segment* frame = member.next_tx(w.now);
        ASSERT_NE(frame, nullptr);
        EXPECT_EQ(member.next_tx(w.now), nullptr);
        give_up(w, 0, frame);
        frame = member.next_tx(w.now);
        ASSERT_NE(frame, nullptr) << "the repair";
        EXPECT_EQ(member.next_tx(w.now), nullptr) << "one";
        w.pool.table().drop(frame);
    }
    EXPECT_EQ(w.count(0, Counter::repair_unicast) + w.count(0, Counter::repair_multicast), 2U);
    w.run_for(kSecond);
    EXPECT_EQ(w.receive(1, 0), (Strings{"x", "x"}));
    EXPECT_TRUE(w.drained());
}

// S-33
TEST(UrtpTransport, repairs_a_multicast_that_one_receiver_lost) {
    World w(3);
    int lost = 0;
    w.hook = [&](const wire::FrameView& f, Rank to) {
        const bool lose =
            f.type == wire::FrameType::kMcast && to == 2 && f.seq.value == 1 && lost == 0;
        lost += lose;
        return lose ? Fate::kLose : Fate::kPass;
    };
    for (const char* text : {"a", "b", "c"})
        EXPECT_EQ(w.send(0, kWorld, text), Admission::kYes);
    w.run_for(200 * kMicrosecond);
    EXPECT_EQ(lost, 1);
    EXPECT_EQ(w.receive(1, 0), (Strings{"a", "b", "c"}));
    EXPECT_EQ(w.receive(2, 0), (Strings{"a", "b", "c"}));
    EXPECT_EQ(w.count(2, Counter::req_sent), 1U);
    EXPECT_EQ(w.count(0, Counter::repair_unicast), 1U);
    EXPECT_EQ(w.count(0, Counter::repair_multicast), 0U);
    w.run_for(100 * kMillisecond);
    EXPECT_TRUE(w.drained());
}

// S-33
TEST(UrtpTransport, repairs_by_multicast_what_several_lost) {
    World w(4);
    bool lost = false;
    w.hook = [&](const wire::FrameView& f, Rank to) {
        if (f.type != wire::FrameType::kMcast || f.seq.value != 1 || lost) return Fate::kPass;
        lost = to == 3;
        return Fate::kLose;
    };
    for (const char* text : {"a", "b", "c"})
        EXPECT_EQ(w.send(0, kWorld, text), Admission::kYes);
    w.run_for(200 * kMicrosecond);
    for (Rank r = 1; r < 4; ++r)
        EXPECT_EQ(w.receive(r, 0), (Strings{"a", "b", "c"})) << r;
    EXPECT_EQ(w.count(0, Counter::repair_multicast), 1U);
    EXPECT_EQ(w.count(0, Counter::repair_unicast), 0U);
}

// S-39
TEST(UrtpTransport, probes_for_a_lost_tail) {
    World w(2);
    int data = 0;
    w.hook = [&](const wire::FrameView& f, Rank) {
        return f.type == wire::FrameType::kData && data++ == 0 ? Fate::kLose : Fate::kPass;
    };
    EXPECT_EQ(w.send(0, 1, "only"), Admission::kYes);
    w.run_for(10 * kMillisecond);
    EXPECT_EQ(w.receive(1, 0), Strings{"only"});
    EXPECT_EQ(w.count(0, Counter::probe_sent), 1U);
    EXPECT_EQ(w.count(0, Counter::repair_unicast), 1U);
    EXPECT_TRUE(w.drained());
}

// O-1, O-5
TEST(UrtpTransport, unicast_never_overtakes_a_lost_multicast) {
    World w(3);
    bool lost = false;
    w.hook = [&](const wire::FrameView& f, Rank to) {
        if (f.type != wire::FrameType::kMcast || to != 1 || lost) return Fate::kPass;
        lost = true;
        return Fate::kLose;
    };
    EXPECT_EQ(w.send(0, kWorld, "first"), Admission::kYes);
    EXPECT_EQ(w.send(0, 1, "second"), Admission::kYes);
    w.run_for(20 * kMicrosecond);
    EXPECT_TRUE(w.receive(1, 0).empty());
    w.run_for(20 * kMillisecond);
    EXPECT_EQ(w.receive(1, 0), (Strings{"first", "second"}));
    EXPECT_EQ(w.receive(2, 0), Strings{"first"});
    EXPECT_TRUE(w.drained());
}

// In an earlier version, a host with many pending receives sent requests so often that a slow host,
// which sends control frames first, sent nothing else. The data that the others waited for were
// never sent.
TEST(UrtpTransport, a_slow_host_that_awaits_many_still_sends_its_own) {
    World w(17, {.max_recv_wait = kMillisecond});
    for (Rank rank = 1; rank <= 16; ++rank)
        w.members[0]->expect(rank, w.now);
    unsigned frames = 0;
    for (; w.count(0, Counter::data_sent) == 0 && frames < 100; ++frames) {  // one a millisecond
        w.now += kMillisecond;
        if (frames == 50) {
            ASSERT_EQ(w.send(0, 1, "awaited"), Admission::kYes);
        }
        if (w.members[0]->next_timer() <= w.now) w.members[0]->on_timer(w.now);
        if (Segment* segment = w.members[0]->next_tx(w.now)) w.pool.table().drop(segment);
    }
    EXPECT_LT(frames, 50U + 2 * 16);
}

// An earlier version of a host that sends one frame while timers make two due asked without end
// about the first stream of a source, and never about the others, nor did it acknowledge them. If
// the packets of the first stream waited for those of the others, no packet came in order any more.
// S-48
TEST(UrtpTransport, a_slow_host_speaks_of_each_stream_of_a_source_in_turn) {
    World w(2, {.max_recv_wait = kMillisecond}, {.gap = kMillisecond});
    constexpr GroupHandle kWhole = kGroupBit | 100;
    constexpr GroupHandle kLost = kGroupBit | 101;
    const Rank ranks[] = {0, 1};
    for (const GroupHandle group : {kWhole, kLost})
        for (const auto& member : w.members)
            ASSERT_EQ(member->add_group(group, ranks), Err::kOk);
    std::map<StreamId, int> asked;
    int acknowledged = 0;
    w.hook = [&](const wire::FrameView& f, Rank to) {
        if (f.type == wire::FrameType::kReq)
            ++asked[reinterpret_cast<const wire::ReqBody*>(f.body)->ack.stream];
        if (f.type == wire::FrameType::kAck) ++acknowledged;
        const bool data = f.type == wire::FrameType::kData || f.type == wire::FrameType::kMcast;
        const bool lost = data && f.seq.value == 0 && f.handle != kWhole;
        return to == 1 || lost ? Fate::kLose : Fate::kPass;
    };
    ASSERT_EQ(w.send(1, kWhole, "whole"), Admission::kYes);
    for (const StreamId stream : {StreamId{0}, StreamId{kWorld}, StreamId{kLost}})
        for (const char* text : {"lost", "held"})
            ASSERT_EQ(w.send(1, stream, text), Admission::kYes);
    w.run_for(kSecond);
    for (const StreamId stream : {StreamId{0}, StreamId{kWorld}, StreamId{kLost}})
        EXPECT_GT(asked[stream], 100) << "of a thousand frames, about " << stream;
    EXPECT_GT(acknowledged, 5) << "at each of the source's questions";
}

// P-10
TEST(UrtpTransport, asks_no_more_often_for_awaiting_many) {
    constexpr int kMillis = 3200;
    const auto requests = [](std::uint16_t awaited) {
        World w(17, {.max_recv_wait = 20 * kMillisecond});
        for (Rank rank = 1; rank <= awaited; ++rank)
            w.members[0]->expect(rank, w.now);
        unsigned sent = 0;
        for (int n = 0; n < kMillis; ++n) {
            const Nanos now = w.now + n * kMillisecond;
            if (w.members[0]->next_timer() <= now) w.members[0]->on_timer(now);
            while (Segment* segment = w.members[0]->next_tx(now)) {
                ++sent;
                w.pool.table().drop(segment);
            }
        }
        return sent;
    };
    const unsigned one = requests(1);
    EXPECT_GT(one, 2U * kMillis / 20 * 3 / 4) << "its unicast stream and the world, every 20 ms";
    EXPECT_LT(requests(16), 2 * one);
}

// A packet that needs more than four entries asks for the acknowledgements that block it. With a
// short round trip and a lost predecessor, an earlier version sent such a question in every other
// frame.
// O-3
TEST(UrtpTransport, asks_ever_less_often_for_acknowledgements_that_do_not_come) {
    World w(3);
    w.hook = [](const wire::FrameView&, Rank) { return Fate::kLose; };
    const Rank ranks[] = {0, 1, 2};
    for (std::uint32_t n = 0; n < 5; ++n) {
        const GroupHandle group = kGroupBit | (100 + n);
        ASSERT_EQ(w.members[0]->add_group(group, ranks), Err::kOk);
        ASSERT_EQ(w.send(0, group, "in the way"), Admission::kYes);
    }
    for (int n = 0; n < 1000; ++n) {  // 100 ms
        ASSERT_EQ(w.send(0, kWorld, "waits"), Admission::kAfter);
        w.run_for(100 * kMicrosecond);
    }
    EXPECT_LT(w.count(0, Counter::probe_sent), 5U * 30);
    EXPECT_GT(w.count(0, Counter::probe_sent), 5U * 5);
}

// An earlier version of a receiver with a full pool asked each time for all that it lacked, and
// dropped nearly all of it again.
// S-23
TEST(UrtpTransport, does_not_ask_for_what_it_has_no_room_for) {
    World w(4, {.window = 64, .rx_pool_packets = 16});
    unsigned requests = 0;
    int most = 0;
    w.hook = [&](const wire::FrameView& f, Rank) {
        if (f.type == wire::FrameType::kData)
            return w.now < 20 * kMillisecond && f.seq.value == 0 ? Fate::kLose : Fate::kPass;
        if (f.type != wire::FrameType::kReq) return Fate::kPass;
        ++requests;
        const auto& body = *reinterpret_cast<const wire::ReqBody*>(f.body);
        const auto* bitmap = reinterpret_cast<const unsigned char*>(f.body + sizeof body);
        int asked = 0;
        for (std::size_t i = 0; i < body.bitmap_octets; ++i)
            asked += std::popcount(static_cast<unsigned char>(~bitmap[i]));
        most = std::max(most, asked);
        return Fate::kPass;
    };
    for (Rank from = 1; from <= 3; ++from)
        for (int n = 0; n < 20; ++n)
            ASSERT_EQ(w.send(from, 0, "x"), Admission::kYes);
    w.run_for(50 * kMillisecond);
    EXPECT_GT(requests, 2U);
    EXPECT_GT(w.count(0, Counter::drop_no_room), 0U);
    EXPECT_EQ(most, 1);
    std::size_t received = 0;
    for (int round = 0; round < 20; ++round) {
        for (Rank from = 1; from <= 3; ++from)
            received += w.receive(0, from).size();
        w.run_for(50 * kMillisecond);
    }
    EXPECT_EQ(received, 60U);
}

// In an earlier version, the timer that asks for credit ended such that the packets behind it had
// no timer, and a lost tail stayed lost.
// S-39
TEST(UrtpTransport, probes_for_a_tail_that_is_lost_after_a_wait_for_credit) {
    World w(2, {.rx_pool_packets = 16});
    std::size_t sent = 0;
    while (w.send(0, 1, "x") == Admission::kYes) {
        ++sent;
        w.run_for(kMillisecond);
    }
    w.run_for(50 * kMillisecond);
    EXPECT_EQ(w.receive(1, 0).size(), sent);
    w.run_for(kSecond);
    bool lost = false;
    w.hook = [&](const wire::FrameView& f, Rank) {
        if (f.type != wire::FrameType::kData || lost) return Fate::kPass;
        lost = true;
        return Fate::kLose;
    };
    ASSERT_EQ(w.send(0, 1, "tail"), Admission::kYes);
    w.run_for(kSecond);
    EXPECT_TRUE(lost);
    EXPECT_EQ(w.receive(1, 0), Strings{"tail"});
}

// A slow host that others outrun loses nearly all questions that it gets. An earlier version
// declared it dead for a rank of which it had lost every question, although it answered those of
// the others.
// N-18
TEST(UrtpTransport, a_peer_lives_while_its_node_is_heard) {
    CountingPool pool;
    for (const bool node_lives : {true, false}) {
        Counters counters;
        struct Clock {
            Nanos heard = 0;
        } node;
        TransportConfig config = config_of(0, {.peer_dead = 100 * kMillisecond});
        config.node_context = &node;
        config.node_silent = [](const void* context, Rank, Nanos at) {
            return at - static_cast<const Clock*>(context)->heard >= 100 * kMillisecond;
        };
        Transport member(config, roster_of(2), pool.table(), counters);
        ASSERT_EQ(submit(member, pool.table(), {.stream = 1, .message_length = 1}, "x", 0),
                  Admission::kYes);
        for (Nanos now = 0; now < kSecond; now += kMillisecond) {
            if (node_lives) node.heard = now;
            if (member.next_timer() <= now) member.on_timer(now);
            while (Segment* segment = member.next_tx(now))
                pool.table().drop(segment);
        }
        EXPECT_GE(counters.get(Counter::probe_sent), 5U);
        EXPECT_EQ(counters.get(Counter::peers_dead), node_lives ? 0U : 1U);
    }
}

// A node answers GONE only to frames that name the handle of a rank. In an earlier version, a rank
// that had ended with all its BYEs lost was never found gone by a peer that asked it in groups
// only, because its node is alive.
// N-14
TEST(UrtpTransport, asks_a_rank_in_doubt_under_its_own_handle) {
    constexpr Nanos kDead = 100 * kMillisecond;
    CountingPool pool;
    Counters counters;
    Nanos now = 0;
    TransportConfig config = config_of(0, {.peer_dead = kDead});
    config.node_silent = [](const void*, Rank, Nanos) { return false; };
    Transport asker(config, roster_of(3), pool.table(), counters);
    Transport asked(config_of(1), roster_of(3), pool.table(), counters);
    ASSERT_EQ(submit(asker, pool.table(), {.stream = kWorld, .message_length = 1}, "x", now),
              Admission::kYes);
    int to_all = 0;
    int own_handle = 0;
    for (; now < 2 * kDead; now += kMillisecond) {
        if (asker.next_timer() <= now) asker.on_timer(now);
        while (Segment* segment = asker.next_tx(now)) {
            wire::FrameView view;
            ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
                      Counter::kCount);
            to_all += view.type == wire::FrameType::kProbe && view.handle == kWorld ? 1 : 0;
            if (view.handle != handle_of(1)) {
                pool.table().drop(segment);
                continue;
            }
            EXPECT_GE(now, kDead) << "not in doubt yet";
            EXPECT_EQ(view.type, wire::FrameType::kProbe);
            EXPECT_EQ(view.destination, mac_of(1));
            if (own_handle++ == 0) {
                asked.on_frame(view, segment, now);
            } else {
                pool.table().drop(segment);
            }
        }
    }
    EXPECT_GE(to_all, 4);
    EXPECT_GE(own_handle, 1);
    Segment* answer = asked.next_tx(now);
    ASSERT_NE(answer, nullptr) << "who lives answers, though there is nothing to acknowledge";
    wire::FrameView view;
    ASSERT_EQ(wire::parse(answer->frame, answer->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    EXPECT_EQ(view.type, wire::FrameType::kAck);
    EXPECT_EQ(view.handle, handle_of(0));
    pool.table().drop(answer);
}

// A host that waits for acknowledgements asks for them in each of its rounds, and a probe goes
// first. On a slow host, which sends one frame a round, the retransmission that would have brought
// them was never sent.
// S-46
TEST(UrtpTransport, a_repair_goes_before_the_question_that_awaits_it) {
    World w(6);
    Transport& member = *w.members[0];
    for (Rank to = 1; to <= 5; ++to)
        ASSERT_EQ(w.send(0, to, "in the way"), Admission::kYes);
    wire::FrameView first;
    std::vector<Segment*> frames;
    while (Segment* segment = member.next_tx(w.now))
        frames.push_back(segment);
    ASSERT_EQ(frames.size(), 5U);
    ASSERT_EQ(wire::parse(frames[0]->frame, frames[0]->length, wire::kEtherTypeDefault, first),
              Counter::kCount);
    w.now += kMillisecond;
    ASSERT_TRUE(member.send_failed(first, w.now)) << "the port gave it up: to be sent again";
    for (Segment* segment : frames)
        w.pool.table().drop(segment);
    ASSERT_EQ(w.send(0, kWorld, "waits"), Admission::kAfter);
    std::vector<wire::FrameType> sent;
    for (int round = 0; round < 3; ++round) {
        Segment* segment = member.next_tx(w.now);
        if (segment == nullptr) break;
        wire::FrameView view;
        ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        sent.push_back(view.type);
        w.pool.table().drop(segment);
        w.now += kMillisecond;
        (void)w.send(0, kWorld, "waits");
    }
    ASSERT_FALSE(sent.empty());
    EXPECT_EQ(sent[0], wire::FrameType::kData);
    EXPECT_EQ(std::count(sent.begin(), sent.end(), wire::FrameType::kProbe), 2) << "then it asks";
}

}  // namespace
}  // namespace ulc::urtp::test
