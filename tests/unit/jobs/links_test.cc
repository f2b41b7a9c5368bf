// SPDX-License-Identifier: BSD-3-Clause
// The handshake of links, and their ends: jobs/links.h, docs/PROTOCOL.md §13.
#include "tests/unit/jobs/linked.h"

namespace ulc::jobs {
namespace {

// L-5, L-6
TEST(Links, come_up_at_both_ends_with_the_names_that_the_other_chose) {
    Linked w(1);
    w.link_two();
    expect_one_link(w);
    EXPECT_LE(w.bus.frames_sent(), 4U) << "REQUEST, ACCEPT, CONFIRM and at most one repeated";
}

// L-14, L-17, L-22
TEST(Links, come_up_and_end_whatever_is_lost_or_doubled) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        Linked w(seed, 0.3, 0.2);
        w.link_two();
        if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
        expect_one_link(w);
        BusNode& a = w.bus.node(0);
        BusNode& b = w.bus.node(1);
        w.bus.now += kSecond;
        a.jobs->links().unlink(Linked::endpoint(0),
                               Linked::slot_of(a, Linked::endpoint(0), Linked::endpoint(1)),
                               w.bus.now);
        ASSERT_TRUE(w.run(10 * kSecond,
                          [&] {
                              return Linked::told(a, LinkEventKind::kUnlinked) == 1 &&
                                     Linked::told(b, LinkEventKind::kPeerLeft) +
                                             Linked::told(b, LinkEventKind::kPeerDied) ==
                                         1;
                          }))
            << "seed " << seed;
        EXPECT_EQ(Linked::told(b, LinkEventKind::kPeerLeft), 1U) << "seed " << seed;
        Linked::release_all(a);
        Linked::release_all(b);
        EXPECT_EQ(Linked::used(a, Linked::endpoint(0)), 0U);
        EXPECT_EQ(Linked::used(b, Linked::endpoint(1)), 0U);
        w.run(5 * kSecond);  // late copies change nothing
        EXPECT_EQ(Linked::used(a, Linked::endpoint(0)), 0U) << "seed " << seed;
        EXPECT_EQ(Linked::used(b, Linked::endpoint(1)), 0U) << "seed " << seed;
    }
}

// L-1, L-21
TEST(Links, are_one_where_both_call_at_once) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        Linked w(seed, seed % 3 == 0 ? 0.3 : 0, 0.1);
        BusNode& a = w.add(0);
        BusNode& b = w.add(1);
        (void)w.call(a, Linked::endpoint(0), Linked::address(b, Linked::endpoint(1)));
        w.run(static_cast<Nanos>(seed % 5) * 50 * kMicrosecond);
        (void)w.call(b, Linked::endpoint(1), Linked::address(a, Linked::endpoint(0)));
        ASSERT_TRUE(w.run(5 * kSecond, [&] { return w.both_up(); })) << "seed " << seed;
        w.run(kSecond);
        expect_one_link(w);
        EXPECT_EQ(Linked::failed(a), Err::kOk);
        EXPECT_EQ(Linked::failed(b), Err::kOk);
    }
}

// L-1, L-19
TEST(Links, a_second_call_gives_the_link_that_is_there) {
    Linked w(3);
    w.link_two();
    BusNode& a = w.bus.node(0);
    BusNode& b = w.bus.node(1);
    const Rank there = Linked::slot_of(b, Linked::endpoint(1), Linked::endpoint(0));
    EXPECT_EQ(w.call(b, Linked::endpoint(1), Linked::address(a, Linked::endpoint(0))), there);
    w.run(kSecond);
    expect_one_link(w);
}

// L-12
TEST(Links, with_a_wrong_key_are_dropped_and_counted) {
    Linked w(4);
    BusNode& a = w.add(0);
    BusNode& b = w.add(1);
    wire::LinkAddress address = Linked::address(b, Linked::endpoint(1));
    address.key.octets[7] ^= 1;
    (void)w.call(a, Linked::endpoint(0), address, kSecond);
    ASSERT_TRUE(w.run(2 * kSecond, [&] { return Linked::failed(a) != Err::kOk; }));
    EXPECT_EQ(Linked::failed(a), Err::kTimeout);
    EXPECT_GT(b.counters.get(Counter::drop_link_key), 5U);
    EXPECT_EQ(Linked::used(b, Linked::endpoint(1)), 0U);
    EXPECT_EQ(Linked::used(a, Linked::endpoint(0)), 0U);
    EXPECT_TRUE(b.link_events.empty());
}

// An address with the key of another endpoint, of its engine or of the caller's, opens nothing.
// L-3, L-12
TEST(Links, with_the_key_of_another_endpoint_are_dropped_and_counted) {
    Linked w(15);
    BusNode& a = w.add(0);
    BusNode& b = w.add(1);
    const Handle neighbour = Linked::endpoint(1) + 1;
    Linked::open(b, neighbour, 8);
    wire::LinkAddress address = Linked::address(b, neighbour);
    for (const Handle owner : {Linked::endpoint(1), Linked::endpoint(0)}) {
        a.link_events.clear();
        const std::uint64_t dropped = b.counters.get(Counter::drop_link_key);
        address.key = key_of(owner);
        (void)w.call(a, Linked::endpoint(0), address, 200 * kMillisecond);
        ASSERT_TRUE(w.run(kSecond, [&] { return Linked::failed(a) != Err::kOk; }));
        EXPECT_EQ(Linked::failed(a), Err::kTimeout);
        EXPECT_GT(b.counters.get(Counter::drop_link_key), dropped + 3);
        EXPECT_EQ(Linked::used(b, neighbour), 0U);
        EXPECT_EQ(Linked::used(b, Linked::endpoint(1)), 0U);
    }
    EXPECT_TRUE(b.link_events.empty());
    address.key = key_of(neighbour);
    (void)w.call(a, Linked::endpoint(0), address);
    EXPECT_TRUE(
        w.run(kSecond, [&] { return Linked::up(a, Linked::endpoint(0), neighbour) != nullptr; }));
}

// Two endpoints of a node are linked to the same peer.
// L-7, L-23
TEST(Links, of_two_endpoints_to_one_peer_are_apart) {
    Linked w(16);
    w.link_two();
    BusNode& a = w.bus.node(0);
    BusNode& b = w.bus.node(1);
    const Handle neighbour = Linked::endpoint(1) + 1;
    Linked::open(b, neighbour, 8);
    (void)w.call(a, Linked::endpoint(0), Linked::address(b, neighbour));
    ASSERT_TRUE(
        w.run(kSecond, [&] { return Linked::up(b, neighbour, Linked::endpoint(0)) != nullptr; }));
    const LinkEnd* first = Linked::up(b, Linked::endpoint(1), Linked::endpoint(0));
    const LinkEnd* second = Linked::up(b, neighbour, Linked::endpoint(0));
    ASSERT_NE(first, nullptr);
    EXPECT_NE(first->ours, second->ours);
    EXPECT_NE(first->self, second->self) << "one slot of the peer for each";
    a.jobs->links().unlink(Linked::endpoint(0),
                           Linked::slot_of(a, Linked::endpoint(0), Linked::endpoint(1)), w.bus.now);
    ASSERT_TRUE(w.run(kSecond, [&] { return Linked::told(b, LinkEventKind::kPeerLeft) == 1; }));
    EXPECT_EQ(Linked::up(b, Linked::endpoint(1), Linked::endpoint(0)), nullptr);
    EXPECT_NE(Linked::up(b, neighbour, Linked::endpoint(0)), nullptr);
    EXPECT_NE(Linked::up(a, Linked::endpoint(0), neighbour), nullptr);
}

// An endpoint that plays the callee without its key is not believed.
// L-12
TEST(Links, an_accept_without_the_key_is_dropped_and_counted) {
    Linked w(5);
    BusNode& a = w.add(0);
    BusNode& b = w.add(1);
    b.jobs->links().close(Linked::endpoint(1), wire::LeaveReason::kLeft, w.bus.now);
    const wire::LinkAddress address = Linked::address(b, Linked::endpoint(1));
    const Rank slot = w.call(a, Linked::endpoint(0), address);
    wire::LinkBody accept{};
    accept.kind = wire::LinkKind::kAccept;
    accept.version = wire::kProtocolVersion;
    accept.incarnation = b.config.incarnation;
    accept.ours = 99U;
    accept.theirs = a.jobs->links().at(Linked::endpoint(0), slot)->ours;
    accept.from = Linked::endpoint(1);
    accept.to = Linked::endpoint(0);
    std::array<std::byte, wire::kLinkOctetsMax> body;
    const auto give = [&](const wire::LinkKey& key) {
        const std::size_t octets = wire::put_link(body.data(), accept, "urtp", key, b.config.mac);
        w.bus.inject(a, b.config.mac, wire::FrameType::kLink, std::span(body).first(octets));
    };
    give(key_of(77));
    EXPECT_EQ(a.counters.get(Counter::drop_link_key), 1U);
    EXPECT_EQ(Linked::up(a, Linked::endpoint(0), Linked::endpoint(1)), nullptr);
    give(address.key);
    EXPECT_NE(Linked::up(a, Linked::endpoint(0), Linked::endpoint(1)), nullptr);
}

// L-16
TEST(Links, to_an_endpoint_that_is_not_there_fail_at_once) {
    Linked w(6);
    BusNode& a = w.add(0);
    BusNode& b = w.add(1);
    (void)w.call(a, Linked::endpoint(0), Linked::address(b, 7777));
    ASSERT_TRUE(w.run(100 * kMillisecond, [&] { return Linked::failed(a) != Err::kOk; }));
    EXPECT_EQ(Linked::failed(a), Err::kPeerDied);
}

// L-14
TEST(Links, to_a_node_that_is_not_there_fail_when_it_is_dead) {
    Linked w(7);
    BusNode& a = w.add(0);
    BusNode& b = w.add(1);
    b.running = false;
    (void)w.call(a, Linked::endpoint(0), Linked::address(b, Linked::endpoint(1)));
    ASSERT_TRUE(w.run(4 * kSecond, [&] { return Linked::failed(a) != Err::kOk; }));
    EXPECT_EQ(Linked::failed(a), Err::kPeerDied);
}

}  // namespace
}  // namespace ulc::jobs
