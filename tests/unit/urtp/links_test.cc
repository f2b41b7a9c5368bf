// SPDX-License-Identifier: BSD-3-Clause
// Members that are open for links: each end chooses a slot for the other.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/urtp/world.h"

namespace ulc::urtp::test {
namespace {

using Strings = std::vector<std::string>;

/// Endpoints that link to each other on a lossy wire. Two endpoints share each node.
class LinkWorld {
public:
    LinkWorld(std::size_t endpoints, std::uint16_t slots, double loss, std::uint64_t seed)
        : loss_(loss), random_(seed), used_(endpoints), slots_(slots) {
        for (std::size_t at = 0; at < endpoints; ++at) {
            TransportConfig config = config_of(0);
            config.rank = kNoRank;
            config.mac = mac(at);
            config.seed = seed + at;
            counters.push_back(std::make_unique<Counters>());
            members.push_back(std::make_unique<Transport>(config, std::vector<Peer>(slots),
                                                          pool.table(), *counters[at]));
        }
    }
    ~LinkWorld() {
        members.clear();
        for (const auto& [at, flight] : flights_)
            pool.table().drop(flight);
    }
    LinkWorld(const LinkWorld&) = delete;
    LinkWorld& operator=(const LinkWorld&) = delete;

    static Mac mac(std::size_t at) { return mac_of(static_cast<Rank>(at / 2)); }
    static Peer peer(std::size_t at) { return {mac(at), handle_of(static_cast<Rank>(at)), 1}; }
    /// A slot that no link of this endpoint has; they are not handed out in order.
    Rank vacant(std::size_t at) {
        Rank slot = static_cast<Rank>(random_.below(slots_));
        while (used_[at].contains(slot))
            slot = static_cast<Rank>((slot + 1) % slots_);
        return slot;
    }
    /// Returns the slots: the second's at the first, the first's at the second.
    std::pair<Rank, Rank> link(std::size_t a, std::size_t b) {
        const std::pair<Rank, Rank> slots{vacant(a), vacant(b)};
        const Seq to_a{static_cast<std::uint32_t>(random_.next())};
        const Seq to_b{static_cast<std::uint32_t>(random_.next())};
        EXPECT_EQ(members[a]->link(slots.first, peer(b), {slots.second, to_a, to_b}), Err::kOk);
        EXPECT_EQ(members[b]->link(slots.second, peer(a), {slots.first, to_b, to_a}), Err::kOk);
        used_[a][slots.first] = b;
        used_[b][slots.second] = a;
        return slots;
    }
    void end(std::size_t at, Rank slot) {
        members[at]->peer_gone(slot, EventKind::kPeerLeft, now);
        Event event;
        while (members[at]->poll_event(event)) {
        }
        EXPECT_EQ(members[at]->unlink(slot), Err::kOk);
        used_[at].erase(slot);
    }
    Admission send(std::size_t from, StreamId stream, const std::string& text) {
        return submit(*members[from], pool.table(),
                      PacketMeta{.stream = stream, .message_length = text.size()}, text, now);
    }
    Strings receive(std::size_t at, Rank source) {
        Strings out;
        ReadyPacket packet;
        while (members[at]->front(source, packet)) {
            out.emplace_back(reinterpret_cast<const char*>(packet.payload), packet.length);
            members[at]->pop(source, now);
        }
        return out;
    }
    void give(std::size_t to, const std::byte* frame, std::uint32_t length) {
        Segment* copy = pool.table().get();
        std::memcpy(copy->frame, frame, length);
        copy->length = length;
        wire::FrameView view;
        ASSERT_EQ(wire::parse(copy->frame, length, wire::kEtherTypeDefault, view), Counter::kCount);
        members[to]->on_frame(view, copy, now);
    }
    void run_for(Nanos span) {
        const Nanos until = now + span;
        while (now < until) {
            for (std::size_t at = 0; at < members.size(); ++at)
                transmit(at);
            Nanos next = flights_.empty() ? until : flights_.begin()->first;
            for (const auto& member : members)
                next = std::min(next, member->next_timer());
            now = std::min(until, std::max(next, now + 100));
            while (!flights_.empty() && flights_.begin()->first <= now) {
                Segment* segment = flights_.begin()->second;
                flights_.erase(flights_.begin());
                deliver(segment);
            }
            for (const auto& member : members) {
                if (member->next_timer() <= now) member->on_timer(now);
            }
        }
    }
    [[nodiscard]] bool drained() const {
        return std::all_of(members.begin(), members.end(),
                           [](const auto& member) { return member->drained(); });
    }

    CountingPool pool;
    std::vector<std::unique_ptr<Counters>> counters;
    std::vector<std::unique_ptr<Transport>> members;
    Nanos now = kMillisecond;

private:
    void transmit(std::size_t from) {
        while (Segment* segment = members[from]->next_tx(now)) {
            if (!random_.chance(loss_)) {
                const auto late = static_cast<Nanos>(random_.below(20'000));
                flights_.emplace(now + 5 * kMicrosecond + late, segment);
            } else {
                pool.table().drop(segment);
            }
        }
    }
    /// Every frame names its sender as its receiver does.
    void deliver(Segment* segment) {
        wire::FrameView view;
        ASSERT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        const std::size_t to = view.handle - handle_of(0);
        ASSERT_LT(to, members.size());
        EXPECT_EQ(view.destination, mac(to));
        const auto named = used_[to].find(view.rank);
        if (named != used_[to].end()) {
            EXPECT_EQ(view.source, mac(named->second));
        }
        Segment* copy = pool.table().get();  // the port's: the sender goes on reading its own
        copy_frame(copy->frame, *segment);
        copy->length = segment->length;
        pool.table().drop(segment);
        ASSERT_EQ(wire::parse(copy->frame, copy->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        members[to]->on_frame(view, copy, now);
    }

    double loss_;
    Prng random_;
    std::vector<std::map<Rank, std::size_t>> used_;
    std::uint16_t slots_;
    std::multimap<Nanos, Segment*> flights_;
};

/// Every pair of endpoints is linked, and sends in both directions.
void exchange(std::uint64_t seed, double loss) {
    constexpr std::size_t kEndpoints = 6;
    constexpr int kPackets = 200;
    LinkWorld w(kEndpoints, 16, loss, seed);
    std::vector<std::tuple<std::size_t, std::size_t, Rank, Rank>> flows;
    for (std::size_t a = 0; a < kEndpoints; ++a) {
        for (std::size_t b = a + 1; b < kEndpoints; ++b) {
            const auto [at_a, at_b] = w.link(a, b);
            flows.emplace_back(a, b, at_a, at_b);
            flows.emplace_back(b, a, at_b, at_a);
        }
    }
    std::vector<int> sent(flows.size());
    std::vector<Strings> came(flows.size());
    const Nanos deadline = w.now + 5 * kSecond;
    for (bool done = false; !done; done = done && w.drained()) {
        ASSERT_LT(w.now, deadline) << "stuck";
        done = true;
        for (std::size_t f = 0; f < flows.size(); ++f) {
            const auto& [from, to, slot, source] = flows[f];
            const std::string head = std::to_string(from) + '>' + std::to_string(to) + ':';
            if (sent[f] < kPackets &&
                w.send(from, slot, head + std::to_string(sent[f])) == Admission::kYes)
                ++sent[f];
            for (std::string& text : w.receive(to, source)) {
                EXPECT_EQ(text, head + std::to_string(came[f].size()));
                came[f].push_back(std::move(text));
            }
            done = done && came[f].size() == kPackets;
        }
        w.run_for(20 * kMicrosecond);
    }
    for (const auto& counters : w.counters) {
        for (const Counter id :
             {Counter::drop_wrong_source, Counter::drop_ack_stream, Counter::drop_ack_range,
              Counter::drop_own_echo, Counter::drop_beyond_window, Counter::drop_unknown_handle})
            EXPECT_EQ(counters->get(id), 0U) << static_cast<int>(id);
    }
}

// H-8, H-9
TEST(Links, deliver_in_order_whatever_the_slots_are) {
    for (std::uint64_t seed = 1; seed <= 5 && !::testing::Test::HasFatalFailure(); ++seed)
        exchange(seed, 0);
}

TEST(Links, deliver_in_order_where_a_tenth_is_lost) {
    for (std::uint64_t seed = 1; seed <= 5 && !::testing::Test::HasFatalFailure(); ++seed)
        exchange(seed, 0.1);
}

// H-10
TEST(Links, refuse_what_is_no_peer_and_no_slot) {
    LinkWorld w(2, 4, 0, 1);
    Transport& member = *w.members[0];
    const Peer good = LinkWorld::peer(1);
    EXPECT_EQ(member.link(4, good, {0, {}, {}}), Err::kInvalid) << "no such slot";
    EXPECT_EQ(member.link(0, good, {}), Err::kInvalid) << "the peer has no name for us";
    EXPECT_EQ(member.link(0, {kBroadcastMac, good.handle, 1}, {0, {}, {}}), Err::kInvalid);
    EXPECT_EQ(member.link(0, {Mac{}, good.handle, 1}, {0, {}, {}}), Err::kInvalid);
    EXPECT_EQ(member.link(0, {good.mac, kWorld, 1}, {0, {}, {}}), Err::kInvalid);
    EXPECT_EQ(member.link(0, {good.mac, 0, 1}, {0, {}, {}}), Err::kInvalid);
    EXPECT_EQ(member.unlink(0), Err::kInvalid) << "vacant";
    EXPECT_EQ(member.unlink(4), Err::kInvalid);
    EXPECT_EQ(member.link(0, good, {3, {}, {}}), Err::kOk);
    EXPECT_EQ(member.link(0, good, {3, {}, {}}), Err::kMismatch) << "taken";
    const std::vector<Rank> ranks{0};
    EXPECT_EQ(member.add_group(kWorld, ranks), Err::kInvalid) << "links have no groups";
    EXPECT_EQ(w.send(0, 1, "x"), Admission::kUnknown) << "vacant";
    EXPECT_EQ(w.send(0, 4, "x"), Admission::kUnknown);
    EXPECT_EQ(w.send(0, kWorld, "x"), Admission::kUnknown);
    World job(2);
    EXPECT_EQ(job.members[0]->link(1, good, {3, {}, {}}), Err::kInvalid) << "a job's roster stands";
    EXPECT_EQ(job.members[0]->unlink(1), Err::kInvalid);
}

// H-11
TEST(Links, take_no_frame_under_a_vacant_slot_or_from_another_node) {
    LinkWorld w(4, 4, 0, 1);
    const auto [at_0, at_2] = w.link(0, 2);
    ASSERT_EQ(w.send(2, at_2, "x"), Admission::kYes);
    Segment* frame = w.members[2]->next_tx(w.now);
    ASSERT_NE(frame, nullptr);
    const auto at = [frame](std::size_t octet) -> std::byte& { return frame->frame[octet]; };
    const std::size_t source = offsetof(wire::EthernetHeader, source);
    const std::size_t rank = sizeof(wire::EthernetHeader) + offsetof(wire::Header, rank) + 1;
    const std::byte right = at(rank);
    const std::byte node = at(source + 5);

    at(rank) = static_cast<std::byte>((at_0 + 1) % 4);  // vacant, and no address is there
    w.give(0, frame->frame, frame->length);
    EXPECT_EQ(w.counters[0]->get(Counter::drop_wrong_source), 1U);
    std::memset(&at(source), 0, 6);  // the address of a vacant slot
    w.give(0, frame->frame, frame->length);
    EXPECT_EQ(w.counters[0]->get(Counter::drop_unknown_handle), 1U);
    at(rank) = right;
    w.give(0, frame->frame, frame->length);
    EXPECT_EQ(w.counters[0]->get(Counter::drop_wrong_source), 2U);
    EXPECT_EQ(w.members[0]->next_source(), kNoRank);

    const Mac peer = LinkWorld::mac(2);
    std::memcpy(&at(source), peer.octets.data(), 6);
    ASSERT_EQ(at(source + 5), node);
    w.give(0, frame->frame, frame->length);
    EXPECT_EQ(w.receive(0, at_0), Strings{"x"});
    w.pool.table().drop(frame);
}

TEST(Links, repair_what_the_port_gave_up) {
    LinkWorld w(4, 8, 0, 3);
    const auto [at_0, at_2] = w.link(0, 2);
    ASSERT_EQ(w.send(0, at_0, "x"), Admission::kYes);
    Segment* frame = w.members[0]->next_tx(w.now);
    ASSERT_NE(frame, nullptr);
    wire::FrameView view;
    ASSERT_EQ(wire::parse(frame->frame, frame->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    EXPECT_EQ(view.rank, at_2);
    EXPECT_TRUE(w.members[0]->send_failed(view, w.now));
    w.pool.table().drop(frame);
    EXPECT_TRUE(w.members[0]->has_tx());
    w.run_for(kMillisecond);
    EXPECT_EQ(w.receive(2, at_2), Strings{"x"});
}

// H-12
TEST(Links, give_a_slot_to_the_next_peer) {
    LinkWorld w(6, 1, 0.05, 5);  // one slot, so each link takes that of the one before
    for (int turn = 0; turn < 500; ++turn) {
        const std::size_t other = 2 + static_cast<std::size_t>(turn) % 4;
        const auto [here, there] = w.link(0, other);
        for (int i = 0; i < 5; ++i) {
            ASSERT_EQ(w.send(0, here, std::to_string(turn)), Admission::kYes);
            ASSERT_EQ(w.send(other, there, std::to_string(turn)), Admission::kYes);
        }
        if (turn % 2 == 0) w.run_for(5 * kMillisecond);  // else the frames come to a vacant slot
        for (const std::string& text : w.receive(0, here))
            EXPECT_EQ(text, std::to_string(turn));
        for (const std::string& text : w.receive(other, there))
            EXPECT_EQ(text, std::to_string(turn));
        w.end(0, here);
        w.end(other, there);
        EXPECT_TRUE(w.drained());
        EXPECT_EQ(w.send(0, here, "late"), Admission::kUnknown);
    }
    w.run_for(kSecond);
    EXPECT_EQ(w.pool.live(), 0U);
}

// H-12
TEST(Links, keep_a_slot_until_all_of_its_peer_was_taken) {
    LinkWorld w(4, 2, 0, 7);
    const auto [here, there] = w.link(0, 2);
    ASSERT_EQ(w.send(2, there, "last"), Admission::kYes);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.members[0]->unlink(here), Err::kAgain) << "the peer is there";
    w.members[0]->peer_gone(here, EventKind::kPeerDied, w.now);
    EXPECT_EQ(w.members[0]->unlink(here), Err::kAgain) << "the end was not told";
    Event event;
    ASSERT_TRUE(w.members[0]->poll_event(event));
    EXPECT_EQ(event.kind, EventKind::kPeerDied);
    EXPECT_EQ(event.rank, here);
    EXPECT_EQ(w.members[0]->unlink(here), Err::kAgain) << "a packet is ready";
    EXPECT_EQ(w.receive(0, here), Strings{"last"});
    EXPECT_EQ(w.members[0]->unlink(here), Err::kOk);
}

TEST(Links, number_a_thousand_at_one_endpoint) {
    constexpr std::uint16_t kLinks = 1000;
    LinkWorld w(1 + kLinks, kLinks, 0, 9);
    std::vector<std::pair<Rank, Rank>> slots;
    for (std::size_t other = 1; other <= kLinks; ++other)
        slots.push_back(w.link(0, other));
    for (std::size_t i = 0; i < kLinks; ++i)
        ASSERT_EQ(w.send(1 + i, slots[i].second, std::to_string(i)), Admission::kYes);
    w.run_for(100 * kMicrosecond);
    for (std::size_t i = 0; i < kLinks; ++i) {
        EXPECT_EQ(w.receive(0, slots[i].first), Strings{std::to_string(i)});
        ASSERT_EQ(w.send(0, slots[i].first, "answer"), Admission::kYes);
    }
    w.run_for(100 * kMicrosecond);
    for (std::size_t i = 0; i < kLinks; ++i)
        EXPECT_EQ(w.receive(1 + i, slots[i].second), Strings{"answer"});
}

}  // namespace
}  // namespace ulc::urtp::test
