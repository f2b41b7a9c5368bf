// SPDX-License-Identifier: BSD-3-Clause
// Tests how the flow-control policies differ: the frames that they cost, and the reaction to a full
// receiver (Express §2.1, §3.1; GAMMA §7.3.2). The conformance list tests that each delivers under
// every fault.
#include <gtest/gtest.h>

#include "tests/unit/urtp/world.h"
#include "wire/build.h"

namespace ulc::urtp::test {
namespace {

const std::string kLong(200, 'l');

/// Sends as long as the transport admits, at most `most` packets. Returns how many.
int fill(World& w, Rank from, StreamId to, int most, const std::string& payload) {
    int sent = 0;
    while (sent < most && w.send(from, to, payload) == Admission::kYes)
        ++sent;
    return sent;
}

Params small_pool(std::uint32_t packets) {
    Params params;
    params.rx_pool_packets = packets;
    return params;
}

// ---------------------------------------------------------------- conservative
//
TEST(Conservative, short_messages_go_at_once_and_long_ones_after_three_ways) {
    World w(2, {}, {}, 1, 0, "conservative");
    ASSERT_EQ(w.send(0, 1, "short"), Admission::kYes);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.receive(1, 0).size(), 1U);
    EXPECT_EQ(w.count(0, Counter::reserve_sent), 0U);
    ASSERT_EQ(w.send(0, 1, kLong), Admission::kWindow);
    w.run_for(50 * kMicrosecond);
    EXPECT_EQ(w.count(0, Counter::reserve_sent), 1U);
    EXPECT_EQ(w.count(1, Counter::grant_sent), 1U);
    ASSERT_EQ(w.send(0, 1, kLong), Admission::kYes);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.receive(1, 0), std::vector<std::string>{kLong});
    EXPECT_EQ(w.count(0, Counter::reserve_sent), 1U);
}

//
TEST(Conservative, a_multicast_waits_for_every_members_grant) {
    World w(4, {}, {}, 1, 0, "conservative");
    int lost = 0;
    w.hook = [&](const wire::FrameView& f, Rank to) {  // member 2 does not learn of it at first
        return f.type == wire::FrameType::kFlow && to == 2 && lost++ == 0 ? Fate::kLose
                                                                          : Fate::kPass;
    };
    ASSERT_EQ(w.send(0, kWorld, kLong), Admission::kWindow);
    w.run_for(50 * kMicrosecond);
    EXPECT_EQ(w.count(1, Counter::grant_sent), 1U);
    EXPECT_EQ(w.count(3, Counter::grant_sent), 1U);
    EXPECT_EQ(w.send(0, kWorld, kLong), Admission::kWindow) << "one member has not granted";
    w.run_for(100 * kMillisecond);
    EXPECT_EQ(w.send(0, kWorld, kLong), Admission::kYes) << "the timer asked again";
    w.run_for(kMillisecond);
    for (Rank r = 1; r < 4; ++r)
        EXPECT_EQ(w.receive(r, 0), std::vector<std::string>{kLong});
}

//
TEST(Conservative, a_full_receiver_grants_when_room_returns_and_drops_nothing) {
    World w(3, small_pool(32), {}, 1, 0, "conservative");
    int sent[2] = {0, 0};
    int got[2] = {0, 0};
    for (int round = 0; round < 4000 && got[0] + got[1] < 600; ++round) {
        for (Rank r = 0; r < 2; ++r) {
            const std::string& payload = sent[r] % 2 == 0 ? kLong : std::string("s");
            if (sent[r] < 300) sent[r] += fill(w, r, 2, 1, payload);
        }
        w.run_for(100 * kMicrosecond);
        ReadyPacket packet;
        if (round % 4 == 0 && w.members[2]->front(static_cast<Rank>(round / 4 % 2), packet)) {
            const auto source = static_cast<Rank>(round / 4 % 2);
            EXPECT_EQ(packet.length, got[source] % 2 == 0 ? 200U : 1U);
            w.members[2]->pop(source, w.now);
            ++got[source];
        }
    }
    EXPECT_EQ(got[0], 300);
    EXPECT_EQ(got[1], 300);
    EXPECT_EQ(w.count(2, Counter::drop_no_room), 0U);
}

//
TEST(Conservative, room_that_was_kept_always_comes_back) {
    World w(2, small_pool(16), {.loss = 0.05, .duplicate = 0.05}, 3, 0xfffffff0U, "conservative");
    int sent = 0;
    int got = 0;
    const Nanos end = w.now + 600 * kSecond;
    while (got < 2000 && w.now < end) {
        if (sent < 2000)
            sent += fill(w, 0, sent % 5 == 0 ? StreamId{kWorld} : StreamId{1}, 1, kLong);
        w.run_for(100 * kMicrosecond);
        got += static_cast<int>(w.receive(1, 0).size());
    }
    EXPECT_EQ(got, 2000);
}

// ---------------------------------------------------------------- credit
//
TEST(Credit, a_receiver_answers_twice_a_credit_and_never_by_itself) {
    World w(2, {}, {}, 1, 0, "credit");
    int sent = 0;
    int got = 0;
    while (got < 640 && w.now < kSecond) {
        sent += fill(w, 0, 1, 640 - sent, "x");
        w.run_for(10 * kMicrosecond);
        got += static_cast<int>(w.receive(1, 0).size());
    }
    EXPECT_EQ(got, 640);
    EXPECT_EQ(w.count(1, Counter::drop_no_room), 0U);
    EXPECT_LE(w.count(1, Counter::ack_sent), 2U * 640U / 32U + 4U);
    EXPECT_GE(w.count(1, Counter::ack_sent), 640U / 32U);
}

//
TEST(Credit, a_sender_stops_at_its_credit_and_harms_no_other) {
    World w(3, small_pool(512), {}, 1, 0, "credit");
    EXPECT_EQ(fill(w, 0, 2, 1000, "x"), 32) << "nobody reads";
    w.run_for(10 * kMillisecond);
    EXPECT_EQ(fill(w, 0, 2, 1000, "x"), 1) << "the packet that every source has reserved";
    w.run_for(10 * kMillisecond);
    EXPECT_EQ(fill(w, 0, 2, 1000, "x"), 0);
    EXPECT_EQ(fill(w, 1, 2, 1000, "y"), 32) << "its separate space";
    w.run_for(10 * kMillisecond);
    EXPECT_EQ(w.receive(2, 1).size(), 32U);
    EXPECT_EQ(w.count(2, Counter::drop_no_room), 0U);
    EXPECT_EQ(w.receive(2, 0).size(), 33U);
    w.run_for(10 * kMillisecond);
    EXPECT_GT(fill(w, 0, 2, 1000, "x"), 0) << "renewed when there was space";
}

//
TEST(Credit, a_message_beyond_the_threshold_synchronises_first) {
    World w(2, {}, {}, 1, 0, "credit");
    PacketMeta meta{.stream = 1, .message_length = 30'001};
    meta.last = false;
    EXPECT_EQ(w.send(0, meta, kLong), Admission::kWindow);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.count(1, Counter::grant_sent), 1U);
    EXPECT_EQ(w.send(0, meta, kLong), Admission::kYes);
}

// ---------------------------------------------------------------- optimistic
//
TEST(Optimistic, exchanges_cost_no_frame_but_the_messages) {
    World w(2, {}, {}, 1, 0, "optimistic");
    for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(w.send(0, 1, kLong), Admission::kYes);
        w.run_for(20 * kMicrosecond);
        EXPECT_EQ(w.receive(1, 0).size(), 1U);
        ASSERT_EQ(w.send(1, 0, kLong), Admission::kYes);
        w.run_for(20 * kMicrosecond);
        EXPECT_EQ(w.receive(0, 1).size(), 1U);
    }
    EXPECT_EQ(w.frames, 100U);
}

//
TEST(Optimistic, the_message_beyond_optimism_reserves_and_its_grant_opens_it_again) {
    World w(2, {}, {}, 1, 0, "optimistic");
    int sent = 0;
    for (int round = 0; round < 20; ++round) {
        sent += fill(w, 0, 1, 1000, "x");  // the last one is refused
        w.run_for(20 * kMicrosecond);
        (void)w.receive(1, 0);
    }
    EXPECT_EQ(sent, 20 * 8) << "7 optimistic ones for each that was granted";
    EXPECT_EQ(w.count(0, Counter::reserve_sent), 20U);
    EXPECT_EQ(w.count(1, Counter::grant_sent), 20U);
    EXPECT_EQ(w.count(0, Counter::probe_sent) + w.count(1, Counter::ack_sent), 0U)
        << "two protocol messages, no more";
}

//
TEST(Optimistic, a_full_receiver_refuses_and_the_message_comes_again_by_reservation) {
    World w(2, small_pool(3), {}, 1, 0, "optimistic");
    int sent = 0;
    for (int i = 0; i < 7; ++i)
        sent += fill(w, 0, 1, 1, std::to_string(i));
    ASSERT_EQ(sent, 7);
    w.run_for(kMillisecond);
    EXPECT_GE(w.count(1, Counter::refuse_sent), 1U);
    EXPECT_GE(w.count(0, Counter::reserve_sent), 1U);
    EXPECT_EQ(w.count(1, Counter::grant_sent), 0U) << "no space yet";
    std::vector<std::string> got;
    for (int i = 0; i < 200 && got.size() < 7; ++i) {
        for (const std::string& text : w.receive(1, 0))
            got.push_back(text);
        w.run_for(50 * kMicrosecond);
    }
    ASSERT_EQ(got.size(), 7U);
    for (int i = 0; i < 7; ++i)
        EXPECT_EQ(got[static_cast<std::size_t>(i)], std::to_string(i)) << "announced order";
    EXPECT_GE(w.count(1, Counter::grant_sent), 1U);
}

//
TEST(Optimistic, survives_the_loss_of_each_frame_of_the_retry) {
    for (const auto kind :
         {wire::FlowKind::kRefuse, wire::FlowKind::kReserve, wire::FlowKind::kGrant}) {
        World w(2, small_pool(3), {}, 1, 0, "optimistic");
        int lost = 0;
        w.hook = [&](const wire::FrameView& f, Rank) {
            if (f.type != wire::FrameType::kFlow) return Fate::kPass;
            const auto& body = *reinterpret_cast<const wire::FlowBody*>(f.body);
            return body.kind == kind && lost++ < 3 ? Fate::kLose : Fate::kPass;
        };
        ASSERT_EQ(fill(w, 0, 1, 7, "x"), 7);
        std::size_t got = 0;
        const Nanos end = w.now + 10 * kSecond;
        w.run_for(kMillisecond);
        while (got < 7 && w.now < end) {
            got += w.receive(1, 0).size();
            w.run_for(kMillisecond);
        }
        EXPECT_EQ(got, 7U) << static_cast<int>(kind);
        EXPECT_GE(lost, 1) << static_cast<int>(kind);
    }
}

//
TEST(Optimistic, longer_messages_reserve_and_a_page_behind_a_head_does_not) {
    World w(2, {}, {}, 1, 0, "optimistic");
    PacketMeta meta{.stream = 1, .message_length = 4160};
    meta.last = false;
    EXPECT_EQ(w.send(0, meta, kLong), Admission::kYes);
    meta.first = false;
    meta.last = true;
    EXPECT_EQ(w.send(0, meta, kLong), Admission::kYes);
    PacketMeta longer{.stream = 1, .message_length = 4161};
    longer.last = false;
    EXPECT_EQ(w.send(0, longer, kLong), Admission::kWindow);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.count(0, Counter::reserve_sent), 1U);
    EXPECT_EQ(w.send(0, longer, kLong), Admission::kYes);
}

//
TEST(Optimistic, lets_go_of_accepted_messages_lazily) {
    World w(2, {}, {}, 1, 0, "optimistic");
    ASSERT_EQ(fill(w, 0, 1, 6, "x"), 6);
    w.run_for(20 * kMicrosecond);
    (void)w.receive(1, 0);
    ASSERT_EQ(w.send(1, 0, "brings the number of accepted messages"), Admission::kYes);
    ASSERT_EQ(w.send(0, 1, "y"), Admission::kYes);
    w.run_for(20 * kMicrosecond);
    (void)w.receive(0, 1);
    EXPECT_GE(w.pool.live(), 7U) << "six accepted ones are still here: not all are";
    w.run_for(50 * kMillisecond);
    (void)w.receive(1, 0);
    EXPECT_EQ(w.pool.live(), 0U) << "all are accepted";
}

//
TEST(Flow, numbers_far_ahead_are_dropped) {
    Params params;
    params.window = 64;
    World w(2, params, {}, 1, 0, "conservative");
    ASSERT_EQ(w.send(1, 0, "s"), Admission::kYes);
    ASSERT_EQ(w.send(0, 1, "s"), Admission::kYes);
    w.run_for(kMillisecond);
    std::uint64_t dropped = 0;
    const auto inject = [&](wire::FlowKind kind, std::uint32_t first, std::uint16_t count) {
        const bool reserve = kind == wire::FlowKind::kReserve;
        const wire::FlowBody body{reserve ? 0U : 1U, first, count, kind, 0};
        wire::FrameHead head;
        head.destination = mac_of(0);
        head.source = mac_of(1);
        head.type = wire::FrameType::kFlow;
        head.handle = handle_of(0);
        head.rank = 1;
        Segment* segment = w.pool.table().get();
        segment->length = static_cast<std::uint32_t>(wire::build_flow(segment->frame, head, body));
        wire::FrameView view;
        ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        w.members[0]->on_frame(view, segment, w.now);
        const std::uint64_t before = dropped;
        dropped = w.count(0, Counter::drop_ack_range);
        EXPECT_LE(dropped - before, 1U);
    };
    using wire::FlowKind;
    inject(FlowKind::kReserve, 1 + 64, 64);  // next is 1: just within two windows
    EXPECT_EQ(dropped, 0U);
    inject(FlowKind::kReserve, 1 + 65, 64);
    EXPECT_EQ(dropped, 1U);
    inject(FlowKind::kReserve, 1, 65);
    EXPECT_EQ(dropped, 2U);
    inject(FlowKind::kGrant, 1 + 64, 64);
    EXPECT_EQ(dropped, 2U);
    inject(FlowKind::kGrant, 1 + 65, 64);
    EXPECT_EQ(dropped, 3U);
    inject(FlowKind::kRefuse, 0, 2);
    EXPECT_EQ(dropped, 4U) << "1 was not sent";
    inject(FlowKind::kRefuse, 0, 1);
    EXPECT_EQ(dropped, 4U);
}

// F-10
TEST(Flow, frames_are_counted_where_no_policy_speaks_them) {
    World w(2, {}, {}, 1, 0, "urtp");
    wire::FlowBody body{0U, 0U, std::uint16_t{1}, wire::FlowKind::kReserve, 0};
    wire::FrameHead head;
    head.destination = mac_of(0);
    head.source = mac_of(1);
    head.type = wire::FrameType::kFlow;
    head.handle = handle_of(0);
    head.rank = 1;
    Segment* segment = w.pool.table().get();
    segment->length = static_cast<std::uint32_t>(wire::build_flow(segment->frame, head, body));
    wire::FrameView view;
    ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    w.members[0]->on_frame(view, segment, w.now);
    EXPECT_EQ(w.count(0, Counter::drop_type), 1U);
}

}  // namespace
}  // namespace ulc::urtp::test
