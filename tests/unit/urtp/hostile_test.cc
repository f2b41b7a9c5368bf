// SPDX-License-Identifier: BSD-3-Clause
// Well-formed frames with ill-chosen values, from peers that lie: the engine must not crash, leak
// or stop honest traffic.
#include <gtest/gtest.h>

#include "tests/unit/urtp/world.h"
#include "urtp/policy.h"
#include "wire/build.h"

namespace ulc::urtp::test {
namespace {

constexpr GroupHandle kPair = kGroupBit | 7;

class Liar {
public:
    explicit Liar(std::uint64_t seed, std::uint32_t first) : random_(seed), first_(first) {}

    /// Makes a frame of any type with numbers near, at and far from the honest ones.
    Segment* frame(const SegmentPool& pool) {
        Segment* segment = pool.get();
        wire::FrameHead head;
        head.destination = random_.chance(0.5) ? mac_of(0) : kBroadcastMac;
        const auto from = static_cast<Rank>(random_.below(5));
        head.source = mac_of(from);
        head.rank = from;
        head.handle = handle_of(0);
        std::byte bitmap[wire::kReqBitmapOctetsMax];
        for (auto& octet : bitmap)
            octet = static_cast<std::byte>(random_.next());
        switch (random_.below(8)) {
            case 0:
            case 1:
                segment->length = data(head, segment);
                break;
            case 2: {
                head.type = wire::FrameType::kAck;
                std::vector<wire::AckEntry> entries(1 + random_.below(16));
                for (auto& e : entries)
                    e = entry();
                segment->length =
                    static_cast<std::uint32_t>(wire::build_ack(segment->frame, head, entries));
                break;
            }
            case 3:
                head.type = wire::FrameType::kReq;
                segment->length = static_cast<std::uint32_t>(
                    wire::build_req(segment->frame, head, entry(),
                                    std::span(bitmap).first(random_.below(sizeof bitmap + 1))));
                break;
            case 5:
                write_status(head, segment);
                break;
            case 6:
                write_nack(head, segment);
                break;
            case 4: {
                head.type = wire::FrameType::kFlow;
                wire::FlowBody body{};
                body.stream = stream();
                body.first = number().value;
                body.count = static_cast<std::uint16_t>(
                    1 + random_.below(random_.chance(0.8) ? 40 : UINT16_MAX));
                body.kind = static_cast<wire::FlowKind>(1 + random_.below(3));
                if (is_group(body.stream) && random_.chance(0.3)) head.handle = body.stream;
                segment->length =
                    static_cast<std::uint32_t>(wire::build_flow(segment->frame, head, body));
                break;
            }
            default:
                head.type = wire::FrameType::kProbe;
                head.seq = number();
                const StreamId id = stream();
                if (is_group(id) && random_.chance(0.5)) head.handle = id;
                segment->length =
                    static_cast<std::uint32_t>(wire::build_probe(segment->frame, head, id));
        }
        return segment;
    }

private:
    void write_status(wire::FrameHead& head, Segment* segment) {
        head.type = wire::FrameType::kStatus;
        head.handle = random_.chance(0.7) ? kWorld : kPair;
        wire::StatusBody body{};
        body.global = global();
        body.first = static_cast<std::uint16_t>(random_.chance(0.8) ? 0 : random_.below(8));
        body.count = static_cast<std::uint16_t>(1 + random_.below(6));
        body.flags = static_cast<std::uint8_t>(random_.below(2));
        Be32 next[6];
        for (auto& one : next)
            one = number().value;
        segment->length = static_cast<std::uint32_t>(
            wire::build_status(segment->frame, head, body, std::span(next).first(body.count)));
    }
    void write_nack(wire::FrameHead& head, Segment* segment) {
        head.type = wire::FrameType::kNack;
        wire::NackBody body{};
        body.kind = static_cast<wire::NackKind>(1 + random_.below(4));
        body.group = random_.chance(0.7) ? kWorld : kPair;
        const bool all = body.kind == wire::NackKind::kGlobal;
        const bool named = body.kind == wire::NackKind::kNamed;
        if (all || named) head.handle = body.group;
        if (named) body.target = static_cast<std::uint16_t>(random_.below(8));
        body.from = all ? global() : number().value;
        body.to = all ? global() : named ? std::uint32_t{body.from} : number().value;
        segment->length = static_cast<std::uint32_t>(wire::build_nack(segment->frame, head, body));
    }
    Seq number() {
        constexpr std::uint32_t kSpans[] = {4, 40, 300, 2000, UINT32_MAX};
        const auto span = kSpans[random_.below(5)];
        return Seq{first_ - (random_.chance(0.2) ? 3U : 0U) +
                   static_cast<std::uint32_t>(random_.below(span))};
    }
    std::uint32_t global() {
        constexpr std::uint32_t kSpans[] = {4, 40, 300, 5000, UINT32_MAX};
        return static_cast<std::uint32_t>(random_.below(kSpans[random_.below(5)]));
    }
    StreamId stream() {
        const StreamId all[] = {0, 1, 2, 3, 4, kWorld, kPair, kGroupBit | 99, 77};
        return all[random_.below(9)];
    }
    wire::AckEntry entry() {
        return {stream(), number().value, static_cast<std::uint16_t>(random_.below(300)),
                static_cast<std::uint16_t>(random_.next())};
    }
    std::uint32_t data(wire::FrameHead& head, Segment* segment) {
        wire::Extensions ext;
        head.type = random_.chance(0.5) ? wire::FrameType::kData : wire::FrameType::kMcast;
        const bool group = head.type == wire::FrameType::kMcast;
        if (group && random_.chance(0.5)) head.type = wire::FrameType::kCounted;
        ext.global = global();
        head.seq = number();
        head.flags = static_cast<std::uint8_t>(random_.next()) &
                     (wire::kFlagFirst | wire::kFlagLast | wire::kFlagAckNow);
        if (group) head.handle = random_.chance(0.7) ? kWorld : kPair;
        if (group && random_.chance(0.3)) {
            head.flags |= wire::kFlagSubset;
            ext.subset = random_.next() | 1ULL << 63;
        }
        if (!group && random_.chance(0.3)) {
            head.flags |= wire::kFlagAck;
            ext.ack = entry();
        }
        if (random_.chance(0.5)) {
            head.flags |= wire::kFlagAfter;
            ext.after_count = static_cast<std::uint8_t>(1 + random_.below(4));
            for (int i = 0; i < ext.after_count; ++i)
                ext.after[i] = {stream(), number().value};
        }
        ext.message_length = 5000;
        return static_cast<std::uint32_t>(
            wire::build_data(segment->frame, head, ext, random_.below(64)));
    }

    Prng random_;
    std::uint32_t first_;
};

TEST(HostilePeers, can_neither_crash_nor_leak) {
    for (std::uint64_t seed = 1; seed <= 160; ++seed) {
        CountingPool pool;
        Counters counters;
        Prng random(seed);
        Params params;
        params.window = 32;
        params.rx_pool_packets = 16;
        params.peer_dead = random.chance(0.3) ? 20 * kMillisecond : 100 * kSecond;
        const std::uint32_t first = random.chance(0.5) ? 0xffffffe0U : 0;
        {
            TransportConfig config = config_of(0, params, first);
            config.profile = policies()[seed % policies().size()]->word;
            Policy policy;
            Params tuned = params;
            ASSERT_EQ(resolve(config.profile, policy, tuned), Err::kOk);
            Transport member(config, roster_of(5), pool.table(), counters);
            const Rank pair[] = {0, 2};
            ASSERT_EQ(member.add_group(kPair, pair), Err::kOk);
            Liar liar(seed, first);
            Nanos now = kSecond;
            for (int i = 0; i < 4000; ++i) {
                now += static_cast<Nanos>(random.below(300 * kMicrosecond));
                Segment* segment = liar.frame(pool.table());
                wire::FrameView view;
                if (wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view) ==
                    Counter::kCount) {
                    member.on_frame(view, segment, now);
                } else {
                    pool.table().drop(segment);
                }
                const StreamId streams[] = {1, 2, 3, 4, kWorld, kPair};
                if (random.chance(0.3)) {
                    PacketMeta meta{.stream = streams[random.below(6)]};
                    if (random.chance(0.3)) meta.message_length = 40'000;
                    (void)submit(member, pool.table(), meta, "x", now);
                }
                if (random.chance(0.05)) member.expect(static_cast<Rank>(random.below(5)), now);
                if (random.chance(0.8)) {
                    while (Segment* out = member.next_tx(now))
                        pool.table().drop(out);
                }
                if (member.next_timer() <= now) member.on_timer(now);
                for (Rank source = member.next_source(); source != kNoRank && random.chance(0.7);
                     source = member.next_source()) {
                    member.pop(source, now);
                }
                // The bound: six streams' windows, of which P0's two groups have larger ones, the
                // receive pool, a packet of each peer, and copied retransmissions.
                const std::uint32_t group_window = std::max(32U, tuned.group_window_min);
                ASSERT_LE(pool.live(), 4U * 32U + 2U * group_window + 64U) << "seed " << seed;
                if (random.chance(0.0005))
                    member.peer_gone(static_cast<Rank>(random.below(5)), EventKind::kPeerLeft, now);
            }
        }
        ASSERT_EQ(pool.live(), 0U) << "seed " << seed;
    }
}

TEST(HostilePeers, do_not_disturb_the_traffic_of_others) {
    World w(3);
    Liar liar(3, 0);
    for (int i = 0; i < 200; ++i) {
        // Rank 2 lies to rank 0 about everything, while 1 sends to 0.
        ASSERT_EQ(w.send(1, 0, std::to_string(i)), Admission::kYes);
        for (int k = 0; k < 5; ++k) {
            Segment* segment = liar.frame(w.pool.table());
            wire::FrameView view;
            if (wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view) ==
                    Counter::kCount &&
                view.rank == 2) {
                w.members[0]->on_frame(view, segment, w.now);
            } else {
                w.pool.table().drop(segment);
            }
        }
        w.run_for(50 * kMicrosecond);
        ASSERT_EQ(w.receive(0, 1), std::vector<std::string>{std::to_string(i)});
    }
}

TEST(UrtpTransport, copies_a_frame_that_the_port_still_holds_before_it_readdresses_it) {
    CountingPool pool;
    Counters counters;
    Transport member(config_of(0), roster_of(3), pool.table(), counters);
    Nanos now = kSecond;
    ASSERT_EQ(submit(member, pool.table(), {.stream = kWorld}, "a", now), Admission::kYes);
    Segment* first = member.next_tx(now);  // not released, as if the NIC still sent it
    now += kMillisecond;
    Segment* request = pool.table().get();
    wire::FrameHead head;
    head.destination = mac_of(0);
    head.source = mac_of(1);
    head.type = wire::FrameType::kReq;
    head.handle = handle_of(0);
    head.rank = 1;
    const std::byte want_first[] = {std::byte{0xfe}};
    request->length = static_cast<std::uint32_t>(
        wire::build_req(request->frame, head, {kWorld, 0, 256, 0}, want_first));
    wire::FrameView view;
    ASSERT_EQ(wire::parse(request->frame, request->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    member.on_frame(view, request, now);
    now += kMillisecond;
    member.on_timer(now);
    Segment* repair = nullptr;
    while (Segment* out = member.next_tx(now)) {
        ASSERT_EQ(wire::parse(out->frame, out->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        if (view.type == wire::FrameType::kMcast) {
            repair = out;
        } else {
            pool.table().drop(out);  // the tail probe
        }
    }
    ASSERT_NE(repair, nullptr);
    EXPECT_NE(repair, first);
    EXPECT_EQ(view.type, wire::FrameType::kMcast);
    EXPECT_EQ(std::memcmp(repair->frame + 6, first->frame + 6, first->length - 6), 0)
        << "all but the address";
    EXPECT_EQ(reinterpret_cast<wire::EthernetHeader*>(repair->frame)->destination, mac_of(1));
    EXPECT_EQ(reinterpret_cast<wire::EthernetHeader*>(first->frame)->destination, kBroadcastMac);
    pool.table().drop(repair);
    pool.table().drop(first);
}

TEST(UrtpTransport, keeps_a_control_frame_due_until_the_pool_has_room) {
    CountingPool pool;
    Counters counters;
    Transport member(config_of(0), roster_of(2), pool.table(), counters);
    Segment* packet = pool.table().get();
    wire::FrameHead head;
    head.destination = mac_of(0);
    head.source = mac_of(1);
    head.type = wire::FrameType::kData;
    head.flags = wire::kFlagFirst | wire::kFlagLast | wire::kFlagAckNow;
    head.handle = handle_of(0);
    head.rank = 1;
    packet->length = static_cast<std::uint32_t>(wire::build_data(packet->frame, head, {}, 4));
    wire::FrameView view;
    ASSERT_EQ(wire::parse(packet->frame, packet->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    member.on_frame(view, packet, kSecond);
    pool.set_limit(1);
    EXPECT_EQ(member.next_tx(kSecond), nullptr);
    EXPECT_TRUE(member.has_tx());
    EXPECT_EQ(counters.get(Counter::no_segment), 1U);
    pool.set_limit(2);
    Segment* ack = member.next_tx(kSecond);
    ASSERT_NE(ack, nullptr);
    pool.table().drop(ack);
    EXPECT_EQ(counters.get(Counter::ack_sent), 1U);
}

TEST(UrtpTransport, removes_a_group_once_it_is_drained) {
    World w(3);
    const Rank pair[] = {2, 0};
    ASSERT_EQ(w.members[0]->add_group(kPair, pair), Err::kOk);
    ASSERT_EQ(w.members[2]->add_group(kPair, pair), Err::kOk);
    EXPECT_EQ(w.members[0]->add_group(kPair, pair), Err::kMismatch);
    const Rank others[] = {1, 2};
    EXPECT_EQ(w.members[0]->add_group(kGroupBit | 8, others), Err::kInvalid)
        << "not a member itself";
    ASSERT_EQ(w.send(0, kPair, "a"), Admission::kYes);
    EXPECT_EQ(w.members[0]->remove_group(kPair), Err::kAgain);
    w.run_for(20 * kMillisecond);
    EXPECT_EQ(w.receive(2, 0), std::vector<std::string>{"a"});
    EXPECT_EQ(w.members[0]->remove_group(kPair), Err::kOk);
    EXPECT_EQ(w.members[2]->remove_group(kPair), Err::kOk);
    EXPECT_TRUE(w.members[0]->members(kPair).empty());
    EXPECT_EQ(w.send(0, kPair, "b"), Admission::kUnknown);
    EXPECT_EQ(w.send(0, kWorld, "c"), Admission::kYes);
    w.run_for(20 * kMillisecond);
    EXPECT_TRUE(w.drained());
}

TEST(UrtpTransport, alone_in_its_world_sends_to_nobody) {
    World w(1);
    EXPECT_EQ(w.send(0, kWorld, "a"), Admission::kYes);
    EXPECT_EQ(w.send(0, 0, "to itself"), Admission::kUnknown);
    EXPECT_TRUE(w.drained());
    EXPECT_EQ(w.frames, 0U);
}

TEST(UrtpTransport, reports_a_dead_peer_to_each_and_the_group_goes_on) {
    Params params;
    params.peer_dead = 100 * kMillisecond;
    World w(4, params);
    w.dead[2] = true;
    ASSERT_EQ(w.send(0, kWorld, "a"), Admission::kYes);
    w.run_for(kSecond);
    Event event;
    ASSERT_TRUE(w.members[0]->poll_event(event));
    EXPECT_EQ(event.kind, EventKind::kPeerDied);
    EXPECT_EQ(event.rank, 2);
    EXPECT_FALSE(w.members[0]->poll_event(event));
    EXPECT_EQ(w.receive(1, 0), std::vector<std::string>{"a"});
    EXPECT_EQ(w.receive(3, 0), std::vector<std::string>{"a"});
    EXPECT_TRUE(w.members[0]->drained());
    EXPECT_EQ(w.send(0, 2, "x"), Admission::kPeerGone);
    EXPECT_EQ(w.send(0, kWorld, "b"), Admission::kYes);
    w.run_for(100 * kMillisecond);
    EXPECT_EQ(w.receive(3, 0), std::vector<std::string>{"b"});
}

TEST(UrtpTransport, never_takes_silence_for_death) {
    Params params;
    params.peer_dead = 100 * kMillisecond;
    World w(3, params);
    ASSERT_EQ(w.send(0, kWorld, "a"), Admission::kYes);
    w.run_for(100 * kMillisecond);
    w.run_for(3600 * kSecond);
    Event event;
    EXPECT_FALSE(w.members[0]->poll_event(event));
    EXPECT_EQ(w.send(1, 0, "b"), Admission::kYes);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.receive(0, 1), std::vector<std::string>{"b"});
}

}  // namespace
}  // namespace ulc::urtp::test
