// SPDX-License-Identifier: BSD-3-Clause
// Tests the profile detect (GAMMA §4.5.5): nothing is retransmitted, and every loss is reported.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/urtp/world.h"
#include "wire/build.h"

namespace ulc::urtp::test {
namespace {

/// Returns the losses that were reported to a member: packets lost, by source.
std::map<Rank, std::uint32_t> losses(World& w, Rank rank) {
    std::map<Rank, std::uint32_t> all;
    Event event;
    while (w.members[rank]->poll_event(event)) {
        EXPECT_EQ(event.kind, EventKind::kLost);
        all[event.rank] += event.count;
    }
    return all;
}

// D-1, D-2
TEST(Detect, sends_no_frame_but_the_messages_and_keeps_none) {
    World w(3, {}, {}, 1, 0, "detect");
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(w.send(0, i % 2 == 0 ? StreamId{1} : StreamId{kWorld}, "x"), Admission::kYes);
        w.run_for(10 * kMicrosecond);
        EXPECT_TRUE(w.members[0]->drained());
        (void)w.receive(1, 0);
        (void)w.receive(2, 0);
        EXPECT_EQ(w.pool.live(), 0U);
    }
    w.run_for(10 * kSecond);
    EXPECT_EQ(w.frames, 100U);
    EXPECT_TRUE(losses(w, 1).empty());
}

// D-3, D-5
TEST(Detect, a_lost_packet_is_told_when_the_next_one_comes) {
    World w(3, {}, {}, 1, 0, "detect");
    w.hook = [](const wire::FrameView& f, Rank to) {
        return to == 2 && f.seq.value >= 3 && f.seq.value < 6 ? Fate::kLose : Fate::kPass;
    };
    for (int i = 0; i < 8; ++i)
        ASSERT_EQ(w.send(0, kWorld, std::to_string(i)), Admission::kYes);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.receive(1, 0).size(), 8U);
    EXPECT_TRUE(losses(w, 1).empty());
    ReadyPacket packet;
    std::vector<std::string> got;
    while (w.members[2]->front(0, packet)) {
        got.emplace_back(reinterpret_cast<const char*>(packet.payload), packet.length);
        EXPECT_EQ(packet.after_loss, got.back() == "6");
        w.members[2]->pop(0, w.now);
    }
    EXPECT_EQ(got, (std::vector<std::string>{"0", "1", "2", "6", "7"}));
    EXPECT_EQ(losses(w, 2), (std::map<Rank, std::uint32_t>{{0, 3}}));
    EXPECT_TRUE(losses(w, 2).empty()) << "told once";
}

// D-4, D-5
TEST(Detect, a_full_receiver_loses_and_tells) {
    Params params;
    params.rx_pool_packets = 4;
    World w(2, params, {}, 1, 0xfffffffeU, "detect");
    for (int i = 0; i < 10; ++i)
        ASSERT_EQ(w.send(0, 1, std::to_string(i)), Admission::kYes);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.receive(1, 0), (std::vector<std::string>{"0", "1", "2", "3", "4"}))
        << "the pool and the reserved packet";
    EXPECT_EQ(losses(w, 1), (std::map<Rank, std::uint32_t>{{0, 5}}));
    ASSERT_EQ(w.send(0, 1, "10"), Admission::kYes);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.receive(1, 0), std::vector<std::string>{"10"});
    EXPECT_TRUE(losses(w, 1).empty());
}

// D-5
TEST(Detect, a_failed_send_is_told) {
    World w(2, {}, {}, 1, 0, "detect");
    w.members[0]->send_failed();
    w.members[0]->send_failed();
    Event event;
    ASSERT_TRUE(w.members[0]->poll_event(event));
    EXPECT_EQ(event.kind, EventKind::kSendFailed);
    EXPECT_EQ(event.count, 2U);
    EXPECT_FALSE(w.members[0]->poll_event(event));
    ASSERT_EQ(submit(*w.members[0], w.pool.table(), {.stream = 1}, "x", w.now), Admission::kYes);
    Segment* frame = w.members[0]->next_tx(w.now);
    ASSERT_NE(frame, nullptr);
    wire::FrameView view;
    ASSERT_EQ(wire::parse(frame->frame, frame->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    EXPECT_FALSE(w.members[1]->send_failed(view, w.now)) << "another's";
    EXPECT_TRUE(w.members[0]->send_failed(view, w.now));
    w.pool.table().drop(frame);
    ASSERT_TRUE(w.members[0]->poll_event(event));
    EXPECT_EQ(event.kind, EventKind::kSendFailed);
    EXPECT_EQ(event.count, 1U);
    EXPECT_EQ(w.members[0]->next_tx(w.now), nullptr) << "not again";
    World other(2, {}, {}, 1, 0, "urtp");
    other.members[0]->send_failed();
    EXPECT_FALSE(other.members[0]->poll_event(event)) << "it repairs";
}

// D-1, D-2
TEST(Detect, nobodys_acknowledgement_holds_it_back) {
    World w(2, {}, {}, 1, 0, "detect");
    ASSERT_EQ(w.send(0, 1, "x"), Admission::kYes);
    w.run_for(kMillisecond);
    const wire::AckEntry entry{1U, 1U, std::uint16_t{0}, std::uint16_t{0}};
    wire::FrameHead head;
    head.destination = mac_of(0);
    head.source = mac_of(1);
    head.type = wire::FrameType::kAck;
    head.handle = handle_of(0);
    head.rank = 1;
    Segment* segment = w.pool.table().get();
    segment->length =
        static_cast<std::uint32_t>(wire::build_ack(segment->frame, head, std::span(&entry, 1)));
    wire::FrameView view;
    ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    w.members[0]->on_frame(view, segment, w.now);
    EXPECT_EQ(w.count(0, Counter::drop_ack_stream), 1U);
    EXPECT_EQ(w.send(0, 1, "y"), Admission::kYes);
}

// D-3
TEST(Detect, a_number_that_is_far_ahead_leaves_the_stream_whole) {
    World w(2, {}, {}, 1, 0, "detect");
    wire::FrameHead head;
    head.source = mac_of(0);
    head.destination = mac_of(1);
    head.type = wire::FrameType::kData;
    head.flags = wire::kFlagFirst | wire::kFlagLast;
    head.handle = handle_of(1);
    Seq seq{0};
    for (int n = 0; n < 4; ++n) {
        seq = seq + INT32_MAX;
        head.seq = seq;
        Segment* segment = w.pool.table().get();
        segment->length = static_cast<std::uint32_t>(wire::build_data(segment->frame, head, {}, 4));
        wire::FrameView view;
        ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        w.members[1]->on_frame(view, segment, w.now);
        w.members[1]->check_invariants();
        EXPECT_EQ(w.receive(1, 0).size(), 1U);
        ++seq;
    }
    EXPECT_GT(losses(w, 1)[0], 0U);
}

// D-4
TEST(Detect, every_packet_arrives_in_order_or_is_told) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        World w(2, {}, {.loss = 0.1, .duplicate = 0.05, .reorder = 0.1}, seed, 0, "detect");
        int next = 0;
        std::uint32_t told = 0;
        std::uint32_t arrived = 0;
        for (int i = 0; i < 500; ++i) {
            ASSERT_EQ(w.send(0, 1, std::to_string(i)), Admission::kYes);
            w.run_for(3 * kMicrosecond);
            for (const std::string& text : w.receive(1, 0)) {
                EXPECT_GE(std::stoi(text), next) << "in order, seed " << seed;
                next = std::stoi(text) + 1;
                ++arrived;
            }
            for (const auto& [rank, count] : losses(w, 1))
                told += count;
            EXPECT_EQ(static_cast<std::uint32_t>(next), arrived + told) << "seed " << seed;
        }
    }
}

}  // namespace
}  // namespace ulc::urtp::test
