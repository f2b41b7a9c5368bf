// SPDX-License-Identifier: BSD-3-Clause
// Fast path and general path give the same frames at the same times, and the same counters: random
// traffic runs in two worlds that differ in nothing else. Also under loss, in small windows and in
// other profiles. Each byte of a head that a prediction leaves open is judged.
#include "tests/unit/urtp/world.h"

namespace ulc::urtp {
namespace {

using test::Faults;
using test::World;

struct Traffic {
    std::uint64_t seed = 1;
    Params params;
    Faults faults;
    std::string_view profile = kDefaultProfile;
    std::uint64_t multicasts = 0;  ///< the least that take the fast path
};

struct Outcome {
    std::uint64_t digest = 0;
    std::uint64_t frames = 0;
    std::vector<std::uint64_t> counters;
    std::vector<std::string> received;
    std::uint64_t transmitted = 0;  ///< messages that the fast path gave to the port at once
    std::uint64_t fast = 0;         ///< messages that it queued
    std::uint64_t taken = 0;        ///< messages that it received
    std::uint64_t multicasts = 0;   ///< the same, to all ranks
    std::uint64_t multicasts_sent = 0;
    std::uint64_t put_off = 0;
    std::uint64_t sent_by_prediction = 0;
    std::uint64_t taken_by_prediction = 0;

    bool operator==(const Outcome& other) const {
        return digest == other.digest && frames == other.frames && counters == other.counters &&
               received == other.received;
    }
};

constexpr Rank kRanks = 4;

/// Messages of all kinds between four ranks, each step at random.
Outcome play(const Traffic& traffic, bool fast) {
    World world(kRanks, traffic.params, traffic.faults, traffic.seed, 0xfffffff0, traffic.profile);
    world.takes_at_once = true;
    world.by_fast_path = fast;
    Prng random(traffic.seed);
    Outcome out;
    for (int step = 0; step < 600; ++step) {
        const auto from = static_cast<Rank>(random.below(kRanks));
        const auto to = static_cast<Rank>(random.below(kRanks));
        const bool multicast = random.chance(0.1);
        const auto octets =
            static_cast<std::uint32_t>(random.chance(0.9) ? random.below(60) : random.below(1400));
        const std::uint64_t tag = random.next();
        const bool tagged = random.chance(0.5);
        const bool at_once = random.chance(0.7);
        const std::string payload(octets, static_cast<char>(step));
        const Nanos span = static_cast<Nanos>(random.below(3)) * kMicrosecond;
        if (from != to || multicast) {
            PacketMeta meta{.stream = multicast ? test::kWorld : to,
                            .has_tag = tagged,
                            .tag = tag,
                            .message_length = octets};
            const ShortMessage message{meta.stream, octets, payload.data(), tag, tagged};
            const bool is_short = octets <= world.members[from]->short_octets_max();
            if (fast && is_short && at_once && world.transmit_short(from, message)) {
                ++(multicast ? out.multicasts_sent : out.transmitted);
            } else if (fast && is_short && world.queue_short(from, message)) {
                ++out.fast;
            } else {
                (void)world.send(from, meta, payload);
            }
            world.members[from]->check_invariants();
        }
        world.run_for(span);
        for (Rank rank = 0; rank < kRanks; ++rank) {
            for (Rank source = 0; random.chance(0.7) && source < kRanks; ++source) {
                for (std::string& one : world.receive(rank, source))
                    out.received.push_back(std::move(one));
            }
        }
    }
    world.run_for(kSecond);
    for (Rank rank = 0; rank < kRanks; ++rank) {
        for (std::size_t id = 0; id < static_cast<std::size_t>(Counter::kCount); ++id)
            out.counters.push_back(world.count(rank, static_cast<Counter>(id)));
    }
    out.digest = world.digest;
    out.frames = world.frames;
    out.taken = world.taken_at_once;
    out.multicasts = world.multicasts_taken_at_once;
    out.put_off = world.put_off;
    out.sent_by_prediction = world.sent_by_prediction;
    out.taken_by_prediction = world.taken_by_prediction;
    return out;
}

void compare(const Traffic& traffic) {
    std::uint64_t transmitted = 0;
    std::uint64_t fast = 0;
    std::uint64_t taken = 0;
    std::uint64_t multicasts = 0;
    std::uint64_t multicasts_sent = 0;
    std::uint64_t put_off = 0;
    std::uint64_t sent_by_prediction = 0;
    std::uint64_t taken_by_prediction = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Traffic one = traffic;
        one.seed = seed;
        const Outcome by_fast = play(one, true);
        const Outcome by_general = play(one, false);
        ASSERT_TRUE(by_fast == by_general)
            << "seed " << seed << ": " << by_fast.frames << " frames, " << by_general.frames
            << " by the general path";
        transmitted += by_fast.transmitted;
        fast += by_fast.fast;
        taken += by_fast.taken;
        multicasts += by_fast.multicasts;
        multicasts_sent += by_fast.multicasts_sent;
        put_off += by_fast.put_off;
        sent_by_prediction += by_fast.sent_by_prediction;
        taken_by_prediction += by_fast.taken_by_prediction;
    }
    EXPECT_GE(multicasts, traffic.multicasts) << "multicasts hardly took the fast path";
    EXPECT_GE(multicasts_sent, traffic.multicasts / 4) << "it was hardly taken when sending";
    EXPECT_GT(transmitted, 40U * 10U) << "the fast path was hardly taken";
    EXPECT_GT(fast, 0U) << "no frame had to wait";
    EXPECT_GT(put_off, 40U) << "hardly a timer fired for nothing";
    EXPECT_GT(taken, 40U * 5U) << "the fast path was hardly taken";
    EXPECT_GT(sent_by_prediction, 10U) << "hardly a message was predicted";
    EXPECT_GT(taken_by_prediction, 10U) << "hardly a frame was predicted";
}

TEST(UrtpFastPath, gives_the_frames_of_the_general_path) { compare({.multicasts = 40}); }

TEST(UrtpFastPath, gives_them_where_frames_are_lost_and_overtake) {
    compare({.faults = {.loss = 0.05, .duplicate = 0.02, .reorder = 0.1}, .multicasts = 10});
}

TEST(UrtpFastPath, gives_them_in_a_small_window_with_a_small_store) {
    Params params;
    params.window = 8;
    params.rx_pool_packets = 4;
    compare({.params = params, .faults = {.loss = 0.02}});
}

TEST(UrtpFastPath, gives_them_in_other_profiles) {
    for (const std::string_view profile : {"gbn", "aimd", "delay", "urtp-1997", "eager"})
        compare({.faults = {.loss = 0.02}, .profile = profile});
}

TEST(UrtpFastPath, leaves_what_it_may_not_decide_to_the_general_path) {
    World world(3);
    const ShortMessage message{.stream = 1, .octets = 1, .payload = "x"};
    EXPECT_FALSE(world.queue_short(0, message)) << "the first makes the stream";
    EXPECT_EQ(world.send(0, 1, "x"), Admission::kYes);
    EXPECT_TRUE(world.queue_short(0, message));
    EXPECT_EQ(world.send(0, test::kWorld, "to all"), Admission::kYes);
    EXPECT_FALSE(world.queue_short(0, message)) << "it must name the multicast";
    world.run_for(10 * kMillisecond);
    EXPECT_TRUE(world.queue_short(0, message));
    EXPECT_FALSE(world.queue_short(0, {.stream = 3, .payload = ""}));
    EXPECT_FALSE(world.queue_short(0, {.stream = test::kWorld, .payload = ""}));
    world.members[0]->peer_gone(1, EventKind::kPeerDied, world.now);
    EXPECT_FALSE(world.queue_short(0, message)) << "no receiver";
}

/// Frames from rank 1 to rank 0, given to rank 0 in any order.
class Receiving {
public:
    explicit Receiving(std::string_view profile = kDefaultProfile)
        : world_(3, {}, {}, 1, 0, profile) {}
    ~Receiving() {
        for (Segment* segment : frames_)
            world_.pool.table().drop(segment);
    }
    Receiving(const Receiving&) = delete;
    Receiving& operator=(const Receiving&) = delete;

    World& world() { return world_; }
    Transport& receiver() { return *world_.members[0]; }
    /// Makes the next frame of rank 1, and returns its place in the list.
    std::size_t make(const std::string& payload, StreamId to = 0) {
        EXPECT_EQ(world_.send(1, to, payload), Admission::kYes);
        frames_.push_back(world_.members[1]->next_tx(world_.now));
        return frames_.size() - 1;
    }
    wire::FrameView view(std::size_t n) {
        wire::FrameView view;
        EXPECT_EQ(wire::parse(frames_[n]->frame, frames_[n]->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        return view;
    }
    bool has_short_head(std::size_t n) {
        return wire::has_short_head(frames_[n]->frame, wire::kEtherTypeDefault);
    }
    bool predict(std::size_t n, RxPrediction& out) {
        return receiver().predict(frames_[n]->frame, out);
    }
    bool may_predict(std::size_t n) {
        RxPrediction out;
        return predict(n, out);
    }
    bool take_short(std::size_t n) {
        RxPrediction prediction;
        EXPECT_TRUE(has_short_head(n));
        wire::ShortBody body;
        const bool takes =
            predict(n, prediction) &&
            receiver().is_next(prediction, frames_[n]->frame, frames_[n]->length, body);
        if (takes) (void)receiver().take_next(prediction, body, world_.now);
        receiver().check_invariants();
        return takes;
    }
    /// Takes frame n by take_short(). Returns what the frames of its stream are judged by.
    RxPrediction predict_after(std::size_t n) {
        RxPrediction prediction;
        EXPECT_TRUE(predict(n, prediction));
        EXPECT_TRUE(take_short(n));
        return prediction;
    }
    Segment& segment(std::size_t n) { return *frames_[n]; }
    /// Returns the header of frame n, for a test to change.
    wire::Header& header(std::size_t n) {
        return *reinterpret_cast<wire::Header*>(frames_[n]->frame + sizeof(wire::EthernetHeader));
    }
    bool is_next(const RxPrediction& prediction, std::size_t n) {
        wire::ShortBody frame;
        return prediction.head.matches(frames_[n]->frame) &&
               receiver().is_next(prediction, frames_[n]->frame, frames_[n]->length, frame);
    }
    void take_general(std::size_t n) {
        const SegmentPool pool = world_.pool.table();
        pool.hold(frames_[n]);
        receiver().on_frame(view(n), frames_[n], world_.now);
    }

private:
    World world_;
    std::vector<Segment*> frames_;
};

TEST(UrtpFastPath, takes_a_packet_only_if_nothing_waits) {
    Receiving r;
    const std::size_t a = r.make("a");
    const std::size_t b = r.make("b");
    const std::size_t c = r.make("c");
    EXPECT_FALSE(r.take_short(a)) << "the first makes the session";
    r.take_general(a);
    EXPECT_FALSE(r.take_short(b)) << "it would overtake the one that is ready";
    EXPECT_EQ(r.world().receive(0, 1).size(), 1U);
    EXPECT_FALSE(r.take_short(c)) << "not the next";
    EXPECT_TRUE(r.take_short(b));
    EXPECT_FALSE(r.take_short(b)) << "a duplicate";
    EXPECT_TRUE(r.take_short(c));
}

TEST(UrtpFastPath, leaves_a_packet_that_fills_a_hole_to_the_general_path) {
    Receiving r;
    const std::size_t a = r.make("a");
    const std::size_t b = r.make("b");
    r.take_general(b);
    EXPECT_FALSE(r.take_short(a)) << "another is held behind it";
    r.take_general(a);
    EXPECT_EQ(r.world().receive(0, 1).size(), 2U);
}

TEST(UrtpFastPath, takes_a_multicast_only_if_nothing_waits) {
    Receiving r;
    const std::size_t a = r.make("a", test::kWorld);
    const std::size_t b = r.make("b", test::kWorld);
    const std::size_t c = r.make("c", test::kWorld);
    EXPECT_FALSE(r.take_short(a)) << "the first makes the stream";
    r.take_general(a);
    EXPECT_FALSE(r.take_short(b)) << "it would overtake the one that is ready";
    EXPECT_EQ(r.world().receive(0, 1), std::vector<std::string>{"a"});
    EXPECT_FALSE(r.take_short(c)) << "not the next";
    EXPECT_TRUE(r.take_short(b));
    EXPECT_FALSE(r.take_short(b)) << "a duplicate";
    EXPECT_TRUE(r.take_short(c));
    const std::size_t d = r.make("d", test::kWorld);
    EXPECT_TRUE(r.may_predict(d));
    r.header(d).handle = test::kWorld + 1;
    EXPECT_FALSE(r.may_predict(d)) << "no group of ours";
}

TEST(UrtpFastPath, predicts_each_octet_of_a_head_but_flags_length_and_number) {
    Receiving r;
    r.take_general(r.make("a"));
    EXPECT_EQ(r.world().receive(0, 1).size(), 1U);
    const RxPrediction prediction = r.predict_after(r.make("b"));
    const std::size_t c = r.make("c");
    EXPECT_TRUE(r.is_next(prediction, c));
    std::byte* frame = r.segment(c).frame;
    const auto differs = [&](std::size_t at, unsigned bits) {
        frame[at] ^= std::byte(bits);
        const bool matches = prediction.head.matches(frame);
        frame[at] ^= std::byte(bits);
        return !matches;
    };
    constexpr std::size_t kFlagsAt = sizeof(wire::EthernetHeader) + 1;
    constexpr std::size_t kSeqAt = sizeof(wire::EthernetHeader) + offsetof(wire::Header, seq);
    for (std::size_t at = sizeof(Mac); at < kSeqAt; ++at) {
        for (unsigned bit = 1; bit < 0x100; bit <<= 1U) {
            const bool is_length = at == kFlagsAt + 1 || at == kFlagsAt + 2;
            const bool is_free = at == kFlagsAt && (bit & wire::ShortWord::kFlagsFree) != 0;
            EXPECT_EQ(differs(at, bit), !is_length && !is_free) << "octet " << at << ", " << bit;
        }
    }
}

TEST(UrtpFastPath, judges_what_a_prediction_leaves_open) {
    Receiving r;
    r.take_general(r.make("a"));
    EXPECT_EQ(r.world().receive(0, 1).size(), 1U);
    const RxPrediction prediction = r.predict_after(r.make("b"));
    const std::size_t c = r.make(std::string(40, 'c'));
    const std::size_t d = r.make("d");
    EXPECT_FALSE(r.is_next(prediction, d)) << "not the next number";
    wire::Header& header = r.header(c);
    const std::uint16_t length = header.length;
    header.length = static_cast<std::uint16_t>(length + 1);
    EXPECT_FALSE(r.is_next(prediction, c)) << "longer than the frame";
    header.length = length;
    --r.segment(c).length;
    EXPECT_FALSE(r.is_next(prediction, c)) << "longer than the frame";
    ++r.segment(c).length;
    EXPECT_TRUE(r.is_next(prediction, c));
}

TEST(UrtpFastPath, believes_no_predicted_acknowledgement_of_what_was_not_sent) {
    Params params;
    params.window = 8;  // soon open
    World world(2, params);
    world.takes_at_once = world.by_fast_path = true;
    const auto exchange = [&](Rank from) {
        ASSERT_EQ(world.send(from, static_cast<Rank>(1 - from), "x"), Admission::kYes);
        world.run_for(10 * kMicrosecond);
    };
    exchange(0);
    exchange(1);
    Session* session = world.members[0]->find_session(1);
    ASSERT_NE(session, nullptr);
    TxStream& tx = *session->tx;
    const Nanos soon = 50 * kMicrosecond;
    for (int n = 0; n < 100 && tx.wants_sample(4, world.now + soon); ++n) {
        exchange(0);
        exchange(1);
    }
    ASSERT_FALSE(tx.wants_sample(4, world.now + soon)) << "else the general step takes it";
    exchange(0);
    ASSERT_EQ(world.send(1, 0, "y"), Admission::kYes);
    Segment* segment = world.members[1]->next_tx(world.now);
    ASSERT_NE(segment, nullptr);
    wire::ShortBody frame;
    RxPrediction next;
    ASSERT_TRUE(world.members[0]->predict(segment->frame, next));
    ASSERT_TRUE(world.members[0]->is_next(next, segment->frame, segment->length, frame));
    ASSERT_NE(frame.ack, nullptr);
    wire::AckEntry entry = *frame.ack;
    entry.next = (tx.sent + 1).value;
    entry.delay_us = std::uint16_t{0};
    frame.ack = &entry;
    const Seq base = tx.base;
    EXPECT_TRUE(world.members[0]->take_next(next, frame, world.now)) << "the general step judges";
    EXPECT_EQ(tx.base, base);
    EXPECT_EQ(world.count(0, Counter::drop_ack_range), 1U);
    world.members[0]->check_invariants();
    world.pool.table().drop(segment);
}

// O-1
TEST(UrtpFastPath, predicts_no_message_behind_a_multicast_under_way) {
    World world(2);
    world.takes_at_once = world.by_fast_path = true;
    const ShortMessage there{.stream = 1, .octets = 1, .payload = "x"};
    const ShortMessage back{.stream = 0, .octets = 1, .payload = "x"};
    const ShortMessage to_all{.stream = test::kWorld, .octets = 1, .payload = "x"};
    ASSERT_EQ(world.send(0, 1, "x"), Admission::kYes);
    ASSERT_EQ(world.send(1, 0, "x"), Admission::kYes);
    ASSERT_EQ(world.send(0, test::kWorld, "x"), Admission::kYes);
    world.run_for(10 * kMillisecond);
    ASSERT_TRUE(world.transmit_short(0, there));
    world.run_for(10 * kMicrosecond);
    ASSERT_TRUE(world.transmit_short(1, back));
    world.run_for(10 * kMicrosecond);
    ASSERT_TRUE(world.transmit_short(0, there));
    EXPECT_EQ(world.sent_by_prediction, 1U);
    world.run_for(10 * kMicrosecond);
    ASSERT_TRUE(world.transmit_short(1, back));
    world.run_for(10 * kMicrosecond);
    ASSERT_TRUE(world.transmit_short(0, to_all));
    world.run_for(kMicrosecond);
    EXPECT_FALSE(world.transmit_short(0, there)) << "it must name the multicast";
}

TEST(UrtpFastPath, predicts_no_acknowledgement_in_a_multicast) {
    Receiving r;
    r.take_general(r.make("a", test::kWorld));
    EXPECT_EQ(r.world().receive(0, 1).size(), 1U);
    const RxPrediction prediction = r.predict_after(r.make("b", test::kWorld));
    const std::size_t c = r.make("c", test::kWorld);
    EXPECT_TRUE(r.is_next(prediction, c));
    r.segment(c).frame[sizeof(wire::EthernetHeader) + 1] |= std::byte{wire::kFlagAck};
    EXPECT_FALSE(r.is_next(prediction, c));
}

TEST(UrtpFastPath, leaves_a_counted_group_to_its_rules) {
    Receiving r("pcode");
    r.take_general(r.make("a", test::kWorld));
    EXPECT_EQ(r.world().receive(0, 1), std::vector<std::string>{"a"});
    const std::size_t b = r.make("b", test::kWorld);
    ASSERT_EQ(r.view(b).type, wire::FrameType::kCounted);
    EXPECT_FALSE(r.has_short_head(b));
    EXPECT_FALSE(r.may_predict(b)) << "nor as one of an impostor that leaves the count out";
}

TEST(UrtpFastPath, takes_nothing_from_a_stranger_or_a_rank_that_is_gone) {
    Receiving r;
    r.take_general(r.make("a"));
    EXPECT_EQ(r.world().receive(0, 1).size(), 1U);
    const std::size_t b = r.make("b");
    EXPECT_TRUE(r.may_predict(b));
    auto& source = reinterpret_cast<wire::EthernetHeader*>(r.segment(b).frame)->source;
    const Mac own = std::exchange(source, test::mac_of(2));
    EXPECT_FALSE(r.may_predict(b)) << "another's address";
    source = own;
    r.header(b).rank = std::uint16_t{7};
    EXPECT_FALSE(r.may_predict(b)) << "no such rank";
    r.header(b).rank = std::uint16_t{2};
    EXPECT_FALSE(r.may_predict(b)) << "nothing was heard of it";
    r.header(b).rank = std::uint16_t{0};
    EXPECT_FALSE(r.may_predict(b)) << "itself";
    r.header(b).rank = std::uint16_t{1};
    EXPECT_TRUE(r.may_predict(b));
    r.receiver().peer_gone(1, EventKind::kPeerLeft, r.world().now);
    EXPECT_FALSE(r.take_short(b));
}

// S-15
TEST(UrtpFastPath, acknowledges_what_it_takes) {
    World world(2);
    world.takes_at_once = world.by_fast_path = true;
    for (int n = 0; n < 100; ++n) {
        ASSERT_EQ(world.send(0, 1, "x"), Admission::kYes);
        world.run_for(10 * kMicrosecond);
    }
    world.run_for(10 * kMillisecond);
    EXPECT_EQ(world.taken_at_once, 99U) << "all but the first";
    EXPECT_EQ(world.receive(1, 0).size(), 100U);
    EXPECT_TRUE(world.drained());
    EXPECT_EQ(world.count(0, Counter::probe_sent), 0U) << "every number was acknowledged in time";
}

}  // namespace
}  // namespace ulc::urtp
