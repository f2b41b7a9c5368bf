// SPDX-License-Identifier: BSD-3-Clause
// Tests the three protocols of PCODE on a group's streams, each by its specific behaviour (PCODE
// §3-§5). The conformance list tests that they deliver under every fault.
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/urtp/world.h"
#include "wire/build.h"

namespace ulc::urtp::test {
namespace {

using wire::FrameType;
using wire::NackKind;

/// Loses the first `times` COUNTED frames with that number from `source` to `to`.
auto lose(Rank source, std::uint32_t seq, Rank to, int times = 1) {
    return [=, left = times](const wire::FrameView& f, Rank receiver) mutable {
        const bool hit = f.type == FrameType::kCounted && f.rank == source && f.seq.value == seq &&
                         receiver == to && left > 0;
        if (hit) --left;
        return hit ? Fate::kLose : Fate::kPass;
    };
}

/// Number of NACKs of each kind that a member received.
struct Nacks {
    int request = 0;
    int personal = 0;
    int global = 0;
    int named = 0;  ///< copies, one at each member that hears it
    Nanos first_request = 0;
};
void count_nacks(World& w, Nacks& nacks,
                 const std::function<Fate(const wire::FrameView&, Rank)>& then) {
    w.hook = [&w, &nacks, then](const wire::FrameView& f, Rank to) mutable {
        if (f.type == FrameType::kNack) {
            const auto& body = *reinterpret_cast<const wire::NackBody*>(f.body);
            if (body.kind == NackKind::kRequest && nacks.request++ == 0)
                nacks.first_request = w.now;
            if (body.kind == NackKind::kPersonal) ++nacks.personal;
            if (body.kind == NackKind::kGlobal) ++nacks.global;
            if (body.kind == NackKind::kNamed) ++nacks.named;
        }
        return then ? then(f, to) : Fate::kPass;
    };
}

std::vector<std::string> texts(int from, int to) {
    std::vector<std::string> all;
    for (int i = from; i < to; ++i)
        all.push_back(std::to_string(i));
    return all;
}

// K-1, K-5, K-14, K-20, K-24
TEST(P0, ignores_what_comes_early_and_gets_all_after_it_again_on_request) {
    World w(3, {}, {}, 1, 0, "p0");
    Nacks nacks;
    count_nacks(w, nacks, lose(0, 1, 2));
    for (const std::string& text : texts(0, 6))
        ASSERT_EQ(w.send(0, kWorld, text), Admission::kYes);
    w.run_for(50 * kMicrosecond);
    EXPECT_EQ(w.receive(2, 0), texts(0, 1));
    EXPECT_EQ(w.count(2, Counter::drop_out_of_order), 4U);
    EXPECT_EQ(nacks.personal + nacks.global + nacks.named, 0) << "not yet requested";
    w.members[2]->expect(0, w.now);
    w.run_for(100 * kMicrosecond);
    EXPECT_GE(nacks.named, 2) << "to all";
    EXPECT_EQ(nacks.request + nacks.personal, 0);
    EXPECT_EQ(w.count(0, Counter::nack_received), 1U);
    EXPECT_EQ(w.count(1, Counter::nack_received), 0U) << "it names another source";
    EXPECT_EQ(w.count(1, Counter::req_unsent), 0U);
    EXPECT_EQ(w.receive(2, 0), texts(1, 6));
    EXPECT_EQ(w.count(0, Counter::repair_multicast), 5U) << "every one above LastRcvd, to all";
}

// K-25
TEST(P0Slot, keeps_one_message_of_a_source_until_a_receive_names_it) {
    World w(3, {}, {}, 1, 0, "p0-slot");
    for (const std::string& text : texts(0, 3))
        ASSERT_EQ(w.send(0, kWorld, text), Admission::kYes);
    ASSERT_EQ(w.send(1, kWorld, "other"), Admission::kYes);
    w.run_for(50 * kMicrosecond);
    EXPECT_EQ(w.receive(2, 0), texts(0, 0)) << "no receive names it";
    EXPECT_EQ(w.count(2, Counter::drop_no_room), 1U) << "the slot is not free";
    EXPECT_EQ(w.count(2, Counter::drop_out_of_order), 1U) << "and the one before is not here";
    EXPECT_TRUE(w.members[2]->expect(0, w.now)) << "it is ready";
    EXPECT_EQ(w.receive(2, 0), texts(0, 1)) << "and the other source's waits still";
    EXPECT_FALSE(w.members[2]->expect(0, w.now));
    w.run_for(100 * kMicrosecond);
    EXPECT_EQ(w.receive(2, 0), texts(1, 2)) << "asked for, and all after it resent";
    EXPECT_EQ(w.count(2, Counter::drop_no_room), 2U) << "of which one has a place";
    EXPECT_FALSE(w.members[2]->expect(0, w.now));
    w.run_for(5 * kMillisecond);
    EXPECT_EQ(w.receive(2, 0), texts(2, 3));
    EXPECT_TRUE(w.members[2]->expect(1, w.now));
    EXPECT_EQ(w.receive(2, 1), std::vector<std::string>{"other"});
}

// A receive from any source names none.
// K-25
TEST(P0Slot, a_message_that_no_receive_names_is_delivered_after_the_longest_wait) {
    Params params;
    params.max_recv_wait = 10 * kMillisecond;
    World w(3, params, {}, 1, 0, "p0-slot");
    ASSERT_EQ(w.send(0, kWorld, "x"), Admission::kYes);
    w.run_for(9 * kMillisecond);
    EXPECT_EQ(w.receive(2, 0), texts(0, 0));
    w.run_for(2 * kMillisecond);
    EXPECT_EQ(w.receive(2, 0), std::vector<std::string>{"x"});
}

// Seeds 593 and 6992: receivers that were outrun lost the one message they lacked among the
// retransmissions of all messages behind it.
// K-6
TEST(P0, what_is_repeated_in_vain_becomes_less_and_rarer) {
    Params params;
    params.max_recv_wait = kMillisecond;  // a NACK each
    World w(3, params, {}, 1, 0, "p0");
    bool overrun = true;
    w.hook = [&](const wire::FrameView& f, Rank to) {
        const bool first = f.type == FrameType::kCounted && f.seq.value == 0;
        return overrun && first && to == 2 ? Fate::kLose : Fate::kPass;
    };
    for (const std::string& text : texts(0, 200))
        ASSERT_EQ(w.send(0, kWorld, text), Admission::kYes);
    w.members[2]->expect(0, w.now);
    w.run_for(500 * kMillisecond);
    const std::uint64_t begun = w.count(0, Counter::repair_multicast);
    w.run_for(500 * kMillisecond);
    EXPECT_LE(begun, 1400U) << "seven windows";
    EXPECT_LE(w.count(0, Counter::repair_multicast) - begun, 20U) << "one each 50 ms";
    EXPECT_GE(w.count(0, Counter::repair_multicast) - begun, 5U) << "and never none";
    overrun = false;
    w.run_for(kSecond);
    EXPECT_EQ(w.receive(2, 0), texts(0, 200));
}

// K-11, K-15, K-17, K-18
TEST(P1, asks_for_status_when_its_buffer_is_full_and_not_before) {
    Params params;
    params.window = 32;
    World w(3, params, {.gap = 1000}, 1, 0, "p1");
    int sent = 0;
    while (w.send(0, kWorld, std::to_string(sent)) == Admission::kYes)
        ++sent;
    EXPECT_EQ(sent, 32);
    EXPECT_EQ(w.count(1, Counter::status_sent), 0U);
    w.run_for(100 * kMicrosecond);
    EXPECT_EQ(w.send(0, kWorld, "x"), Admission::kWindow);
    w.run_for(100 * kMicrosecond);
    EXPECT_GE(w.count(0, Counter::status_sent), 1U) << "which wants the others'";
    EXPECT_EQ(w.count(1, Counter::status_sent), 1U);
    EXPECT_EQ(w.send(0, kWorld, "x"), Admission::kYes);
    EXPECT_EQ(w.count(1, Counter::ack_sent), 0U);
}

// K-16
TEST(Pcode, tells_its_status_as_the_global_counter_grows) {
    World w(4, {}, {}, 1, 0, "pcode");
    for (int i = 0; i < 640; ++i) {
        ASSERT_EQ(w.send(0, kWorld, std::to_string(i)), Admission::kYes) << i;
        w.run_for(10 * kMicrosecond);
        for (Rank r = 1; r < 4; ++r)
            ASSERT_EQ(w.receive(r, 0), texts(i, i + 1));
    }
    for (Rank r = 1; r < 4; ++r) {
        EXPECT_GE(w.count(r, Counter::status_sent), 9U);
        EXPECT_LE(w.count(r, Counter::status_sent), 12U) << "one each 64 counts";
        EXPECT_EQ(w.count(r, Counter::ack_sent), 0U);
    }
    EXPECT_EQ(w.count(0, Counter::probe_sent), 0U);
}

// An earlier version had up to 256 entries with any MTU, and the port dropped longer frames.
// K-2, K-3
TEST(Pcode, a_status_keeps_to_the_mtu_and_its_parts_name_every_member) {
    constexpr std::uint16_t kMembers = 700;
    for (const std::uint16_t mtu : {256, 576, 1500}) {
        for (const bool crc : {false, true}) {
            CountingPool pool;
            Counters counters;
            TransportConfig config = config_of(0, {}, 0, "pcode");
            config.mtu = mtu;
            config.crc = crc;
            Transport member(config, roster_of(kMembers), pool.table(), counters);
            wire::FrameHead head;
            head.destination = kBroadcastMac;
            head.source = mac_of(1);
            head.type = FrameType::kStatus;
            head.handle = kWorld;
            head.rank = 1;
            const wire::StatusBody wanted{.count = 1, .flags = wire::kStatusWanted};
            const std::array<Be32, 1> none{};
            Segment* asks = pool.table().get();
            asks->length =
                static_cast<std::uint32_t>(wire::build_status(asks->frame, head, wanted, none));
            wire::FrameView view;
            ASSERT_EQ(wire::parse(asks->frame, asks->length, wire::kEtherTypeDefault, view),
                      Counter::kCount);
            member.on_frame(view, asks, 0);
            member.on_timer(kSecond);
            std::uint32_t named = 0;
            while (Segment* segment = member.next_tx(kSecond)) {
                EXPECT_LE(segment->length, sizeof(wire::EthernetHeader) + mtu);
                ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault,
                                      view, crc),
                          Counter::kCount);
                ASSERT_EQ(view.type, FrameType::kStatus);
                const auto& body = *reinterpret_cast<const wire::StatusBody*>(view.body);
                EXPECT_EQ(body.first, named);
                named += body.count;
                pool.table().drop(segment);
            }
            EXPECT_EQ(named, kMembers) << "mtu " << mtu;
        }
    }
}

// K-14, K-21
TEST(Pcode, finds_a_loss_by_the_personal_counter_and_saves_what_came_early) {
    World w(3, {}, {}, 1, 0, "pcode");
    Nacks nacks;
    count_nacks(w, nacks, lose(0, 1, 2));
    for (const std::string& text : texts(0, 6))
        ASSERT_EQ(w.send(0, kWorld, text), Admission::kYes);
    w.run_for(200 * kMicrosecond);
    EXPECT_EQ(w.receive(2, 0), texts(0, 6)) << "without a request";
    EXPECT_EQ(nacks.personal, 1);
    EXPECT_EQ(w.count(0, Counter::repair_multicast), 1U) << "the early ones are not sent again";
    EXPECT_EQ(w.count(1, Counter::drop_duplicate), 1U) << "to resend is to broadcast";
}

// A NACK asks up to the first message saved. In an earlier version, the holes behind it waited for
// the timer, which doubled as long as there were any.
// K-21
TEST(Pcode, asks_for_the_next_hole_as_soon_as_one_is_closed) {
    World w(3, {}, {}, 1, 0, "pcode");
    Nacks nacks;
    count_nacks(w, nacks, [seen = 0U](const wire::FrameView& f, Rank to) mutable {
        const bool odd = f.type == FrameType::kCounted && to == 2 && f.seq.value % 2 == 1;
        if (!odd || f.seq.value < seen) return Fate::kPass;
        seen = f.seq.value + 1;
        return Fate::kLose;
    });
    for (const std::string& text : texts(0, 21))
        ASSERT_EQ(w.send(0, kWorld, text), Admission::kYes);
    w.run_for(10 * 25 * kMicrosecond);
    EXPECT_EQ(w.receive(2, 0), texts(0, 21)) << "ten holes, each a round trip and its spread";
    EXPECT_EQ(nacks.personal, 10);
}

// K-22
TEST(Pcode, finds_a_loss_by_the_global_counter_though_the_sender_is_silent) {
    World w(3, {}, {}, 1, 0, "pcode");
    Nacks nacks;
    count_nacks(w, nacks, lose(1, 0, 2));
    ASSERT_EQ(w.send(1, kWorld, "lost"), Admission::kYes);
    w.run_for(20 * kMicrosecond);
    ASSERT_EQ(w.send(0, kWorld, "later"), Admission::kYes);
    w.run_for(20 * kMicrosecond);
    EXPECT_EQ(w.receive(2, 0), std::vector<std::string>{"later"}) << "at once, despite the gap";
    w.run_for(60 * kMicrosecond);
    EXPECT_GE(nacks.global, 1);
    EXPECT_EQ(nacks.personal, 0);
    EXPECT_EQ(w.receive(2, 1), std::vector<std::string>{"lost"});
    EXPECT_EQ(w.count(1, Counter::repair_multicast), 1U);
    EXPECT_EQ(w.count(0, Counter::repair_multicast), 0U) << "each resends its own";
}

// K-20
TEST(Pcode, a_pending_request_waits_its_first_delay_before_it_asks) {
    for (const Nanos delay : {200 * kMicrosecond, 5 * kMillisecond}) {
        Params params;
        params.first_recv_wait = delay;
        World w(2, params, {}, 1, 0, "pcode");
        Nacks nacks;
        count_nacks(w, nacks, {});
        const Nanos begin = w.now;
        w.members[1]->expect(0, w.now);
        w.run_for(delay - kMicrosecond);
        EXPECT_EQ(nacks.request, 0);
        w.run_for(kMillisecond);
        EXPECT_GE(nacks.request, 1);
        EXPECT_GE(nacks.first_request, begin + delay);
        EXPECT_LE(nacks.first_request, begin + delay + params.req_spread + kMicrosecond);
    }
}

// K-12, K-13
TEST(Pcode, a_member_that_does_not_tell_holds_the_senders_at_the_flow_window) {
    Params params;
    params.window = 1024;
    params.flow_window = 100;
    World w(3, params, {}, 1, 0, "pcode");
    bool deaf = true;
    w.hook = [&](const wire::FrameView& f, Rank) {
        return deaf && f.type == FrameType::kStatus && f.rank == 2 ? Fate::kLose : Fate::kPass;
    };
    int sent = 0;
    for (int i = 0; i < 300; ++i) {
        if (w.send(0, kWorld, std::to_string(sent)) == Admission::kYes) ++sent;
        w.run_for(5 * kMicrosecond);
        (void)w.receive(1, 0);
        (void)w.receive(2, 0);
    }
    EXPECT_EQ(sent, 101);
    deaf = false;
    w.run_for(100 * kMillisecond);
    EXPECT_EQ(w.send(0, kWorld, "x"), Admission::kYes) << "asked again for progress";
}

// K-22
TEST(Pcode, goes_on_when_a_sender_dies_whose_message_some_lack) {
    Params params;
    params.peer_dead = 200 * kMillisecond;
    params.flow_window = 50;
    World w(4, params, {}, 1, 0, "pcode");
    w.hook = lose(3, 0, 2, 1000);
    ASSERT_EQ(w.send(3, kWorld, "last words"), Admission::kYes);
    w.run_for(20 * kMicrosecond);
    EXPECT_EQ(w.receive(0, 3).size(), 1U);
    w.dead[3] = true;
    int got = 0;
    int sent = 0;
    const Nanos end = w.now + 30 * kSecond;
    while (got < 400 && w.now < end) {
        if (sent < 400 && w.send(0, kWorld, std::to_string(sent)) == Admission::kYes) ++sent;
        w.run_for(200 * kMicrosecond);
        got += static_cast<int>(w.receive(2, 0).size());
        (void)w.receive(1, 0);
    }
    EXPECT_EQ(got, 400);
}

// K-19
TEST(P1, a_status_shows_a_lost_tail_only_where_it_was_wanted) {
    for (const std::string profile : {"p0", "p1", "pcode"}) {
        for (const bool wanted : {false, true}) {
            World w(3, {}, {}, 1, 0, profile);
            Nacks nacks;
            count_nacks(w, nacks, lose(0, 1, 2, 2));
            ASSERT_EQ(w.send(0, kWorld, "0"), Admission::kYes);
            ASSERT_EQ(w.send(0, kWorld, "1"), Admission::kYes);
            w.run_for(50 * kMicrosecond);
            ASSERT_EQ(nacks.personal, 0);
            wire::StatusBody body{};
            body.count = std::uint16_t{3};
            body.flags = wanted ? wire::kStatusWanted : std::uint8_t{0};
            const std::array<Be32, 3> next = {Be32{2}, Be32{0}, Be32{0}};  // of 0: it has sent two
            wire::FrameHead head;
            head.destination = mac_of(2);
            head.source = mac_of(0);
            head.type = FrameType::kStatus;
            head.handle = kWorld;
            Segment* segment = w.pool.table().get();
            segment->length =
                static_cast<std::uint32_t>(wire::build_status(segment->frame, head, body, next));
            wire::FrameView view;
            ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
                      Counter::kCount);
            w.members[2]->on_frame(view, segment, w.now);
            w.run_for(50 * kMicrosecond);
            EXPECT_EQ(nacks.personal + nacks.named > 0, wanted || profile == "pcode")
                << profile << wanted;
        }
    }
}

TEST(Pcode, unicast_takes_the_point_to_point_path) {
    World w(3, {}, {}, 1, 0, "pcode");
    int counted = 0;
    w.hook = [&](const wire::FrameView& f, Rank) {
        counted += f.type == FrameType::kCounted;
        return Fate::kPass;
    };
    ASSERT_EQ(w.send(0, 1, "x"), Admission::kYes);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.receive(1, 0), std::vector<std::string>{"x"});
    EXPECT_EQ(counted, 0);
    EXPECT_EQ(w.count(1, Counter::status_sent), 0U);
    EXPECT_GE(w.count(1, Counter::ack_sent), 1U);
}

// K-10
TEST(Pcode, counters_out_of_range_are_counted_and_the_message_is_taken) {
    World w(3, {}, {}, 1, 0, "pcode");
    Segment* segment = w.pool.table().get();
    wire::FrameHead head;
    head.destination = kBroadcastMac;
    head.source = mac_of(1);
    head.type = FrameType::kCounted;
    head.handle = kWorld;
    head.rank = 1;
    head.flags = wire::kFlagFirst | wire::kFlagLast;
    wire::Extensions extensions;
    extensions.global = 0x40000000U;
    segment->length =
        static_cast<std::uint32_t>(wire::build_data(segment->frame, head, extensions, 4));
    wire::FrameView view;
    ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    w.members[0]->on_frame(view, segment, w.now);
    EXPECT_EQ(w.count(0, Counter::drop_counter_range), 1U);
    EXPECT_EQ(w.receive(0, 1).size(), 1U);
    EXPECT_EQ(w.send(0, kWorld, "goes on"), Admission::kYes);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.receive(2, 0).size(), 1U);
}

}  // namespace
}  // namespace ulc::urtp::test
