// SPDX-License-Identifier: BSD-3-Clause
// Endpoints that are found by their names: jobs/links/link_names.h, docs/protocol/LINKS.md §13.4.
// Questions and answers have limits of rate. Without the secret nothing is answered, and no answer
// is believed.
#include <vector>

#include "tests/unit/jobs/linked.h"

namespace ulc::jobs {
namespace {

wire::LinkName name_of(std::uint8_t number, std::uint8_t secret = 1) {
    wire::LinkName name;
    name.name[0] = number;
    name.name[5] = 1;
    name.secret.octets[7] = secret;
    return name;
}

/// Endpoints of the bus, of which some have names.
class Named : public Linked {
public:
    using Linked::Linked;

    /// Endpoint of that node, published as its number.
    BusNode& publish(unsigned number) { return publish(bus.add(number), number); }
    static BusNode& publish(BusNode& node, unsigned number) {
        open_named(node, endpoint(number), static_cast<std::uint8_t>(number));
        return node;
    }
    static void open_named(BusNode& node, Handle handle, std::uint8_t number) {
        const wire::LinkKey key = wire::key_of(name_of(number));
        node.jobs->links().open(handle, key, 8, "urtp");
        node.jobs->links().publish(handle);
    }
    void find(BusNode& from, Handle caller, const wire::LinkName& name, std::uint32_t cookie = 1,
              Nanos limit = 5 * kSecond) {
        EXPECT_EQ(from.jobs->links().find(caller, name, cookie, bus.now + limit, bus.now),
                  Err::kOk);
    }
    /// The end of the lookup with that cookie; nullptr: it goes on.
    static const LinkEvent* called(const BusNode& node, std::uint32_t cookie = 1) {
        for (const LinkEvent& event : node.link_events)
            if (event.kind == LinkEventKind::kCalled && event.cookie == cookie) return &event;
        return nullptr;
    }
    /// Frames of a kind among those that were sent.
    [[nodiscard]] std::vector<wire::LinkView> sent(wire::LinkKind kind) {
        std::vector<wire::LinkView> views;
        for (const std::vector<std::byte>& octets : bus.log) {
            wire::FrameView frame;
            wire::LinkView view;
            ULC_CHECK(wire::parse(octets.data(), octets.size(), wire::kEtherTypeDefault, frame) ==
                      Counter::kCount);
            if (frame.type == wire::FrameType::kLink &&
                wire::parse_link(frame.body, frame.length, view) && view.kind == kind)
                views.push_back(view);
        }
        return views;
    }
};

wire::LinkBody body_of(wire::LinkKind kind, wire::LinkId ours, wire::LinkId theirs, Handle from,
                       Handle to) {
    wire::LinkBody body{};
    body.kind = kind;
    body.version = wire::kProtocolVersion;
    body.incarnation = 1001U;
    body.ours = ours;
    body.theirs = theirs;
    body.from = from;
    body.to = to;
    return body;
}

void inject(Named& w, BusNode& to, const wire::LinkBody& body, const wire::LinkKey& key,
            const Mac& source) {
    std::array<std::byte, wire::kLinkOctetsMax> octets;
    const std::size_t length = wire::put_link(octets.data(), body, {}, key, source);
    w.bus.inject(to, source, wire::FrameType::kLink, std::span(octets).first(length));
}

// L-36, L-37
TEST(LinkNames, find_an_endpoint_wherever_it_is) {
    Named w(1);
    BusNode& a = w.add(0);
    BusNode& b = w.publish(1);
    w.publish(2);
    w.bus.logs = true;
    w.find(a, Linked::endpoint(0), name_of(1));
    ASSERT_TRUE(w.run(kSecond, [&] { return w.both_up(); }));
    expect_one_link(w);
    ASSERT_NE(Named::called(a), nullptr);
    EXPECT_EQ(Named::called(a)->error, Err::kOk);
    EXPECT_EQ(Named::called(a)->slot, Linked::slot_of(a, Linked::endpoint(0), Linked::endpoint(1)));
    EXPECT_EQ(w.sent(wire::LinkKind::kHere).size(), 1U) << "node 2 has no such name";
    EXPECT_EQ(b.counters.get(Counter::drop_link_key), 0U);
    EXPECT_LE(w.bus.frames_sent(), 7U);
}

// L-37
TEST(LinkNames, find_an_endpoint_whatever_is_lost_or_doubled) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Named w(seed, 0.3, 0.2);
        BusNode& a = w.add(0);
        w.publish(1);
        w.find(a, Linked::endpoint(0), name_of(1));
        ASSERT_TRUE(w.run(5 * kSecond, [&] { return w.both_up(); })) << "seed " << seed;
        w.run(kSecond);
        expect_one_link(w);
        EXPECT_EQ(Linked::told(a, LinkEventKind::kCalled), 1U) << "seed " << seed;
    }
}

// L-40
TEST(LinkNames, an_endpoint_of_another_version_ends_the_call) {
    Named w(3);
    BusNode& a = w.add(0);
    w.bus.logs = true;
    w.find(a, Linked::endpoint(0), name_of(1));
    w.run(kMillisecond);
    ASSERT_FALSE(w.sent(wire::LinkKind::kWhere).empty());
    const wire::LinkView asked = w.sent(wire::LinkKind::kWhere).front();
    wire::LinkBody here = body_of(wire::LinkKind::kHere, 0, asked.ours, 77, asked.from);
    here.version = wire::kProtocolVersion - 1;
    inject(w, a, here, wire::key_of(name_of(1)), mac_of(1));
    w.run(kMillisecond);
    ASSERT_NE(Named::called(a), nullptr);
    EXPECT_EQ(Named::called(a)->error, Err::kVersion);
    EXPECT_TRUE(w.sent(wire::LinkKind::kRequest).empty());
}

// L-37
TEST(LinkNames, find_an_endpoint_that_is_published_later) {
    Named w(3);
    BusNode& a = w.add(0);
    BusNode& b = w.bus.add(1);
    w.bus.logs = true;
    w.find(a, Linked::endpoint(0), name_of(1));
    w.run(kSecond);
    EXPECT_EQ(Named::called(a), nullptr);
    const std::size_t asked = w.sent(wire::LinkKind::kWhere).size();
    EXPECT_GE(asked, 15U) << "after 1 ms, doubling to 50";
    EXPECT_LE(asked, 30U);
    Named::publish(b, 1);
    ASSERT_TRUE(w.run(200 * kMillisecond, [&] { return w.both_up(); }));
}

TEST(LinkNames, find_an_endpoint_of_this_engine_without_a_frame) {
    Named w(4);
    BusNode& a = w.add(0);
    Named::open_named(a, 77, 5);
    w.find(a, Linked::endpoint(0), name_of(5));
    w.run(kMillisecond);
    EXPECT_NE(Linked::up(a, Linked::endpoint(0), 77), nullptr);
    EXPECT_NE(Linked::up(a, 77, Linked::endpoint(0)), nullptr);
    // One that is opened while others are asked.
    w.find(a, Linked::endpoint(0), name_of(6), 2);
    w.run(100 * kMillisecond);
    EXPECT_EQ(Named::called(a, 2), nullptr);
    Named::open_named(a, 78, 6);
    ASSERT_TRUE(w.run(100 * kMillisecond,
                      [&] { return Linked::up(a, Linked::endpoint(0), 78) != nullptr; }));
    w.find(a, 78, name_of(6), 3);  // itself
    w.run(kMillisecond);
    ASSERT_NE(Named::called(a, 3), nullptr);
    EXPECT_EQ(Named::called(a, 3)->error, Err::kInvalid);
    EXPECT_EQ(w.sent(wire::LinkKind::kWhere).size(), 0U);
}

// L-38
TEST(LinkNames, tell_nothing_to_one_without_the_secret) {
    Named w(5);
    BusNode& a = w.add(0);
    BusNode& b = w.publish(1);
    w.bus.logs = true;
    w.find(a, Linked::endpoint(0), name_of(1, 99), 1, kSecond);  // another user's
    w.find(a, Linked::endpoint(0), name_of(2), 2, kSecond);      // no such name
    ASSERT_TRUE(w.run(2 * kSecond, [&] {
        return Named::called(a, 1) != nullptr && Named::called(a, 2) != nullptr;
    }));
    EXPECT_EQ(Named::called(a, 1)->error, Err::kTimeout);
    EXPECT_EQ(Named::called(a, 1)->slot, kNoRank);
    EXPECT_EQ(Named::called(a, 2)->error, Err::kTimeout);
    // One that has seen a lookup on the wire asks by it.
    const wire::LinkId lookup = wire::lookup_of(wire::key_of(name_of(1)));
    const wire::LinkBody where = body_of(wire::LinkKind::kWhere, 5, lookup, 9, 0);
    inject(w, b, where, key_of(1), a.config.mac);
    w.run(kMillisecond);
    EXPECT_EQ(b.counters.get(Counter::drop_link_key), 1U);
    EXPECT_EQ(w.sent(wire::LinkKind::kHere).size(), 0U);
    inject(w, b, where, wire::key_of(name_of(1)), a.config.mac);
    w.run(kMillisecond);
    EXPECT_EQ(w.sent(wire::LinkKind::kHere).size(), 1U) << "the same with the key";
}

// L-38
TEST(LinkNames, believe_no_answer_without_the_secret) {
    Named w(6);
    BusNode& a = w.add(0);
    BusNode& b = w.add(1);  // not published
    w.bus.logs = true;
    w.find(a, Linked::endpoint(0), name_of(1));
    w.run(10 * kMillisecond);
    ASSERT_FALSE(w.sent(wire::LinkKind::kWhere).empty());
    const wire::LinkId id = w.sent(wire::LinkKind::kWhere)[0].ours;
    const wire::LinkKey key = wire::key_of(name_of(1));
    const auto here = [](wire::LinkId to, Handle endpoint) {
        return body_of(wire::LinkKind::kHere, 0, to, Linked::endpoint(1), endpoint);
    };
    inject(w, a, here(id, Linked::endpoint(0)), key_of(1), b.config.mac);
    EXPECT_EQ(a.counters.get(Counter::drop_link_key), 1U);
    inject(w, a, here(id + 1, Linked::endpoint(0)), key, b.config.mac);  // an old one
    inject(w, a, here(id, Linked::endpoint(0) + 1), key, b.config.mac);
    w.run(kMillisecond);
    EXPECT_EQ(Named::called(a), nullptr) << "the lookup goes on";
    inject(w, a, here(id, Linked::endpoint(0)), key, b.config.mac);
    w.run(kMillisecond);
    ASSERT_NE(Named::called(a), nullptr);
    EXPECT_EQ(Named::called(a)->error, Err::kOk);
    EXPECT_EQ(Linked::up(a, Linked::endpoint(0), Linked::endpoint(1)), nullptr)
        << "the endpoint has another key";
    EXPECT_GT(b.counters.get(Counter::drop_link_key), 0U);
}

// L-1, L-21
TEST(LinkNames, are_one_link_where_both_look_for_each_other) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Named w(seed, seed % 3 == 0 ? 0.3 : 0, 0.1);
        BusNode& a = w.publish(0);
        BusNode& b = w.publish(1);
        w.find(a, Linked::endpoint(0), name_of(1));
        w.run(static_cast<Nanos>(seed % 5) * 50 * kMicrosecond);
        w.find(b, Linked::endpoint(1), name_of(0));
        ASSERT_TRUE(w.run(5 * kSecond,
                          [&] {
                              return w.both_up() && Named::called(a) != nullptr &&
                                     Named::called(b) != nullptr;
                          }))
            << "seed " << seed;
        w.run(kSecond);
        expect_one_link(w);
        EXPECT_EQ(Linked::failed(a), Err::kOk);
        EXPECT_EQ(Linked::failed(b), Err::kOk);
    }
}

// L-31
TEST(LinkNames, answer_at_a_limited_rate) {
    Named w(8);
    BusNode& a = w.add(0);
    BusNode& b = w.publish(1);
    w.bus.logs = true;
    const wire::LinkKey key = wire::key_of(name_of(1));
    constexpr unsigned kAsked = 20'000;
    for (unsigned n = 0; n < kAsked; ++n) {
        inject(w, b, body_of(wire::LinkKind::kWhere, 1 + n, wire::lookup_of(key), 9, 0), key,
               a.config.mac);
        w.run(10 * kMicrosecond);
    }
    const std::size_t answers = w.sent(wire::LinkKind::kHere).size();
    EXPECT_GT(answers, 100U);
    EXPECT_LE(answers, 300U) << "1000 a second, in 0.2 s, and what the limit holds at once";
    EXPECT_EQ(b.counters.get(Counter::answers_limited), kAsked - answers);
    b.jobs->links().check_invariants();
}

// L-37
TEST(LinkNames, ask_at_a_limited_rate) {
    Named w(9);
    BusNode& a = w.bus.add(0);
    w.bus.logs = true;
    std::uint32_t cookie = 0;
    for (Handle caller = 10; caller < 20; ++caller) {
        Linked::open(a, caller, 8);
        for (std::size_t n = 0; n < kLookupsMax; ++n)
            w.find(a, caller, name_of(static_cast<std::uint8_t>(n + 1)), ++cookie, 2 * kSecond);
        EXPECT_EQ(a.jobs->links().find(caller, name_of(1), 0, kNever, w.bus.now), Err::kLimit);
    }
    w.run(kSecond);
    const std::size_t asked = w.sent(wire::LinkKind::kWhere).size();
    EXPECT_LE(asked, 1200U) << "640 lookups would ask 12,800 times";
    EXPECT_GT(asked, 800U);
    w.run(2 * kSecond);
    EXPECT_EQ(Linked::told(a, LinkEventKind::kCalled), 640U) << "each ends, by its time limit";
}

// L-39
TEST(LinkNames, are_free_again_when_the_endpoint_ends) {
    Named w(10);
    BusNode& a = w.add(0);
    BusNode& b = w.publish(1);
    const wire::LinkKey key = wire::key_of(name_of(1));
    EXPECT_TRUE(b.jobs->links().is_published(key));
    w.find(a, Linked::endpoint(0), name_of(9), 1);
    w.find(b, Linked::endpoint(1), name_of(9), 1);
    w.run(10 * kMillisecond);
    b.jobs->links().close(Linked::endpoint(1), wire::LeaveReason::kLeft, w.bus.now);
    EXPECT_FALSE(b.jobs->links().is_published(key));
    w.bus.logs = true;
    w.find(a, Linked::endpoint(0), name_of(1), 2, kSecond);
    w.run(500 * kMillisecond);
    for (const wire::LinkView& where : w.sent(wire::LinkKind::kWhere))
        EXPECT_EQ(where.from, Linked::endpoint(0)) << "lookups end with their endpoint";
    EXPECT_EQ(w.sent(wire::LinkKind::kHere).size(), 0U);
    Named::open_named(b, 500, 1);
    ASSERT_TRUE(w.run(200 * kMillisecond,
                      [&] { return Linked::up(a, Linked::endpoint(0), 500) != nullptr; }));
    EXPECT_EQ(b.counters.get(Counter::drop_link_key), 0U);
}

}  // namespace
}  // namespace ulc::jobs
