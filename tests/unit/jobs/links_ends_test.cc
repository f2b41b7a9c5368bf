// SPDX-License-Identifier: BSD-3-Clause
// Ends of links, and calls that are old, refused, too many or random.
#include "tests/unit/jobs/linked.h"

namespace ulc::jobs {
namespace {

// L-27
TEST(Links, end_when_the_peer_is_another_life) {
    Linked w(8);
    w.link_two();
    BusNode& a = w.bus.node(0);
    BusNode& b = w.bus.node(1);
    const wire::LinkAddress stale = Linked::address(b, Linked::endpoint(1));
    w.bus.restart(b);
    Linked::open(b, 4711, 8);
    ASSERT_TRUE(w.run(4 * kSecond, [&] { return Linked::told(a, LinkEventKind::kPeerDied) == 1; }));
    Linked::release_all(a);
    (void)w.call(a, Linked::endpoint(0), stale);
    ASSERT_TRUE(w.run(kSecond, [&] { return Linked::failed(a) != Err::kOk; }));
    EXPECT_EQ(Linked::failed(a), Err::kPeerDied);
    (void)w.call(a, Linked::endpoint(0), Linked::address(b, 4711));
    EXPECT_TRUE(
        w.run(kSecond, [&] { return Linked::up(a, Linked::endpoint(0), 4711) != nullptr; }));
}

TEST(Links, end_at_both_ends_when_the_nodes_do_not_hear_each_other) {
    Linked w(9);
    w.link_two();
    w.bus.cut = &w.bus.node(1);
    ASSERT_TRUE(w.run(5 * kSecond, [&] {
        return Linked::told(w.bus.node(0), LinkEventKind::kPeerDied) == 1 &&
               Linked::told(w.bus.node(1), LinkEventKind::kPeerDied) == 1;
    }));
}

// A node stops for longer than node_dead: the other has ended the link, and says so when asked.
// L-26
TEST(Links, end_at_a_node_that_comes_back_after_it_was_held_for_dead) {
    Linked w(10);
    w.link_two();
    BusNode& a = w.bus.node(0);
    BusNode& b = w.bus.node(1);
    b.running = false;
    ASSERT_TRUE(w.run(4 * kSecond, [&] { return Linked::told(a, LinkEventKind::kPeerDied) == 1; }));
    b.running = true;
    EXPECT_TRUE(w.run(4 * kSecond, [&] { return Linked::told(b, LinkEventKind::kPeerDied) == 1; }));
}

// L-25, L-28
TEST(Links, an_unlink_that_is_lost_to_the_end_is_found_by_a_question) {
    Linked w(11);
    w.link_two();
    BusNode& a = w.bus.node(0);
    BusNode& b = w.bus.node(1);
    w.bus.cut = &b;
    a.jobs->links().unlink(Linked::endpoint(0),
                           Linked::slot_of(a, Linked::endpoint(0), Linked::endpoint(1)), w.bus.now);
    ASSERT_TRUE(w.run(3 * kSecond, [&] { return Linked::told(a, LinkEventKind::kUnlinked) == 1; }));
    w.bus.cut = nullptr;
    Linked::release_all(a);
    ASSERT_TRUE(w.run(4 * kSecond, [&] { return Linked::told(b, LinkEventKind::kPeerDied) == 1; }));
    Linked::release_all(b);
    EXPECT_EQ(Linked::used(b, Linked::endpoint(1)), 0U);
}

// The peer has not noticed the end of the earlier link when it is called again.
// L-20
TEST(Links, a_new_call_takes_the_place_of_a_link_that_only_the_peer_holds) {
    Linked w(12);
    w.link_two();
    BusNode& a = w.bus.node(0);
    BusNode& b = w.bus.node(1);
    const wire::LinkId old = Linked::up(b, Linked::endpoint(1), Linked::endpoint(0))->ours;
    w.bus.cut = &b;
    a.jobs->links().unlink(Linked::endpoint(0),
                           Linked::slot_of(a, Linked::endpoint(0), Linked::endpoint(1)), w.bus.now);
    ASSERT_TRUE(w.run(3 * kSecond, [&] { return Linked::told(a, LinkEventKind::kUnlinked) == 1; }));
    Linked::release_all(a);
    ASSERT_NE(Linked::up(b, Linked::endpoint(1), Linked::endpoint(0)), nullptr);
    (void)w.call(a, Linked::endpoint(0), Linked::address(b, Linked::endpoint(1)));
    w.bus.cut = nullptr;
    ASSERT_TRUE(w.run(kSecond, [&] {
        const LinkEnd* end = Linked::up(b, Linked::endpoint(1), Linked::endpoint(0));
        return end != nullptr && end->ours != old &&
               Linked::up(a, Linked::endpoint(0), Linked::endpoint(1)) != nullptr;
    }));
    EXPECT_EQ(Linked::told(b, LinkEventKind::kPeerDied), 1U);
    EXPECT_EQ(Linked::told(b, LinkEventKind::kConfirmed), 2U);
}

// L-13, L-20
TEST(Links, old_frames_make_and_end_nothing) {
    Linked w(13);
    w.bus.logs = true;
    w.link_two();
    BusNode& a = w.bus.node(0);
    BusNode& b = w.bus.node(1);
    const auto replay = [&] {
        const std::vector<std::vector<std::byte>> old = w.bus.log;
        for (const auto& octets : old) {
            wire::FrameView view;
            ASSERT_EQ(wire::parse(octets.data(), octets.size(), wire::kEtherTypeDefault, view),
                      Counter::kCount);
            if (view.type != wire::FrameType::kLink) continue;
            BusNode& to = view.destination == a.config.mac ? a : b;
            to.jobs->on_frame(view, w.bus.now);
            w.run(10 * kMillisecond);
        }
    };
    replay();
    ASSERT_TRUE(w.both_up());
    a.jobs->links().unlink(Linked::endpoint(0),
                           Linked::slot_of(a, Linked::endpoint(0), Linked::endpoint(1)), w.bus.now);
    ASSERT_TRUE(w.run(kSecond, [&] { return Linked::told(b, LinkEventKind::kPeerLeft) == 1; }));
    w.run(kSecond);
    Linked::release_all(a);
    Linked::release_all(b);
    replay();
    w.run(100 * kMillisecond);
    Linked::release_all(b);  // dropped, and never confirmed
    EXPECT_EQ(Linked::used(a, Linked::endpoint(0)), 0U);
    EXPECT_EQ(Linked::used(b, Linked::endpoint(1)), 0U);
    EXPECT_EQ(Linked::told(b, LinkEventKind::kConfirmed), 1U);
    EXPECT_GE(Linked::told(b, LinkEventKind::kDropped), 1U);
    // A new link is not ended by what ended the old one.
    (void)w.call(a, Linked::endpoint(0), Linked::address(b, Linked::endpoint(1)));
    ASSERT_TRUE(w.run(kSecond, [&] { return w.both_up(); }));
    replay();
    w.run(kSecond);
    EXPECT_TRUE(w.both_up());
}

// L-18, L-32
TEST(Links, a_slot_whose_caller_never_confirms_is_vacant_after_a_while) {
    Linked w(14);
    BusNode& b = w.add(1);
    wire::LinkBody request{};
    request.kind = wire::LinkKind::kRequest;
    request.version = wire::kProtocolVersion;
    request.incarnation = 5U;
    request.ours = 6U;
    request.from = 7U;
    request.to = Linked::endpoint(1);
    std::array<std::byte, wire::kLinkOctetsMax> body;
    const Mac stranger{{2, 0, 0, 0, 9, 9}};
    const std::size_t octets =
        wire::put_link(body.data(), request, "urtp", key_of(Linked::endpoint(1)), stranger);
    w.bus.inject(b, stranger, wire::FrameType::kLink, std::span(body).first(octets));
    EXPECT_EQ(Linked::used(b, Linked::endpoint(1)), 1U);
    ASSERT_TRUE(w.run(5 * kSecond, [&] { return Linked::told(b, LinkEventKind::kDropped) == 1; }));
    EXPECT_LE(w.bus.sent_octets, 3 * w.bus.injected_octets);
    Linked::release_all(b);
    EXPECT_EQ(Linked::used(b, Linked::endpoint(1)), 0U);
    EXPECT_EQ(Linked::told(b, LinkEventKind::kConfirmed), 0U);
}

// L-31, L-32
TEST(Links, refusals_are_limited_in_rate_and_short) {
    Linked w(18);
    BusNode& b = w.add(1);
    wire::LinkBody request{};
    request.kind = wire::LinkKind::kRequest;
    request.version = wire::kProtocolVersion;
    request.incarnation = 5U;
    request.ours = 6U;
    request.from = 7U;
    request.to = Linked::endpoint(1);
    std::array<std::byte, wire::kLinkOctetsMax> body;
    const Mac stranger{{2, 0, 0, 0, 9, 9}};
    const std::size_t octets =
        wire::put_link(body.data(), request, "gbn", key_of(Linked::endpoint(1)), stranger);
    for (int n = 0; n < 10'000; ++n) {
        w.bus.inject(b, stranger, wire::FrameType::kLink, std::span(body).first(octets));
        w.run(100 * kMicrosecond);
    }
    EXPECT_LE(w.bus.frames_sent(), 1000U + 100U) << "in a second, and a burst";
    EXPECT_GE(w.bus.frames_sent(), 900U);
    EXPECT_LE(w.bus.sent_octets, w.bus.injected_octets);
}

// L-15
TEST(Links, are_refused_without_a_slot_and_with_another_profile) {
    Linked w(15);
    BusNode& a = w.add(0, 1);
    BusNode& b = w.add(1);
    BusNode& c = w.add(2, 8, "gbn");
    (void)w.call(b, Linked::endpoint(1), Linked::address(a, Linked::endpoint(0)));
    w.run(kSecond);
    Linked::open(b, 999, 4);
    (void)w.call(b, 999, Linked::address(a, Linked::endpoint(0)));
    ASSERT_TRUE(w.run(100 * kMillisecond, [&] { return Linked::failed(b) != Err::kOk; }));
    EXPECT_EQ(Linked::failed(b), Err::kLimit);
    EXPECT_EQ(a.counters.get(Counter::refused_links), 1U);
    EXPECT_EQ(
        a.jobs->links()
            .call(Linked::endpoint(0), Linked::address(c, Linked::endpoint(2)), kNever, w.bus.now)
            .error(),
        Err::kLimit);
    (void)w.call(c, Linked::endpoint(2), Linked::address(b, Linked::endpoint(1)));
    ASSERT_TRUE(w.run(100 * kMillisecond, [&] { return Linked::failed(c) != Err::kOk; }));
    EXPECT_EQ(Linked::failed(c), Err::kProfile);
}

TEST(Links, refuse_addresses_that_lead_nowhere) {
    Linked w(16);
    BusNode& a = w.add(0);
    wire::LinkAddress address = Linked::address(a, Linked::endpoint(0));
    const auto error = [&] {
        return a.jobs->links().call(Linked::endpoint(0), address, kNever, w.bus.now).error();
    };
    EXPECT_EQ(error(), Err::kInvalid) << "itself";
    address.version = 9;
    EXPECT_EQ(error(), Err::kVersion);
    address.version = 0;
    EXPECT_EQ(error(), Err::kInvalid);
}

TEST(Links, join_endpoints_of_one_engine_without_a_frame) {
    Linked w(17);
    BusNode& a = w.add(0);
    Linked::open(a, 11, 4);
    (void)w.call(a, Linked::endpoint(0), Linked::address(a, 11));
    w.run(kMillisecond);
    ASSERT_NE(Linked::up(a, Linked::endpoint(0), 11), nullptr);
    ASSERT_NE(Linked::up(a, 11, Linked::endpoint(0)), nullptr);
    EXPECT_EQ(w.bus.frames_sent(), 0U);
    a.jobs->links().unlink(11, Linked::slot_of(a, 11, Linked::endpoint(0)), w.bus.now);
    w.run(kMillisecond);
    EXPECT_EQ(Linked::told(a, LinkEventKind::kUnlinked), 1U);
    EXPECT_EQ(Linked::told(a, LinkEventKind::kPeerLeft), 1U);
    Linked::release_all(a);
    EXPECT_EQ(Linked::used(a, 11), 0U);
    (void)w.call(a, Linked::endpoint(0), Linked::address(a, 12));
    w.run(kMillisecond);
    EXPECT_EQ(Linked::failed(a), Err::kClosed) << "no such endpoint";
}

// L-24
TEST(Links, of_an_endpoint_that_ends_end_at_all_peers) {
    for (const auto reason : {wire::LeaveReason::kLeft, wire::LeaveReason::kDied}) {
        Linked w(18, 0.1);
        w.link_two();
        BusNode& a = w.bus.node(0);
        BusNode& b = w.bus.node(1);
        a.jobs->links().close(Linked::endpoint(0), reason, w.bus.now);
        EXPECT_FALSE(a.jobs->drained());
        const auto kind = reason == wire::LeaveReason::kLeft ? LinkEventKind::kPeerLeft
                                                             : LinkEventKind::kPeerDied;
        ASSERT_TRUE(w.run(kSecond, [&] { return Linked::told(b, kind) == 1; }));
        w.run(kSecond);
        EXPECT_TRUE(a.jobs->drained());
        EXPECT_EQ(a.jobs->links().at(Linked::endpoint(0), 0), nullptr) << "forgotten";
        EXPECT_EQ(Linked::told(a, LinkEventKind::kUnlinked), 0U) << "the endpoint has ended";
    }
}

// L-25
TEST(Links, of_an_endpoint_that_ended_unheard_are_found_by_a_question) {
    Linked w(19);
    w.link_two();
    BusNode& a = w.bus.node(0);
    BusNode& b = w.bus.node(1);
    w.bus.cut = &a;
    a.jobs->links().close(Linked::endpoint(0), wire::LeaveReason::kLeft, w.bus.now);
    w.run(kSecond);
    EXPECT_TRUE(a.jobs->drained());
    w.bus.cut = nullptr;
    EXPECT_TRUE(w.run(4 * kSecond, [&] { return Linked::told(b, LinkEventKind::kPeerLeft) == 1; }));
}

// L-29
TEST(Links, a_hint_makes_its_receiver_ask) {
    Linked w(20);
    w.link_two();
    BusNode& a = w.bus.node(0);
    BusNode& b = w.bus.node(1);
    const LinkEnd* at_a = Linked::up(a, Linked::endpoint(0), Linked::endpoint(1));
    const std::uint64_t before = w.bus.frames_sent();
    b.jobs->links().unknown_slot(Linked::endpoint(1), at_a->self, a.config.mac, w.bus.now);
    w.run(kMillisecond);
    EXPECT_EQ(w.bus.frames_sent(), before + 2) << "the hint, and CONFIRM";
    EXPECT_TRUE(w.both_up()) << "a hint ends nothing";
}

TEST(Links, a_thousand_at_one_endpoint_then_none) {
    constexpr std::uint16_t kNodes = 10;
    constexpr std::uint16_t kEach = 100;
    Linked w(21, 0.02, 0.01);
    BusNode& server = w.add(0, 1000);
    for (unsigned n = 1; n <= kNodes; ++n) {
        BusNode& node = w.bus.add(n);
        for (Handle e = 0; e < kEach; ++e) {
            Linked::open(node, 10'000 * n + e, 2);
            (void)w.call(node, 10'000 * n + e, Linked::address(server, Linked::endpoint(0)));
        }
    }
    ASSERT_TRUE(w.bus.run(5 * kSecond, [&] {
        return Linked::told(server, LinkEventKind::kConfirmed) == std::size_t{kNodes} * kEach;
    }));
    Linked::open(w.bus.node(1), 99'999, 2);
    (void)w.call(w.bus.node(1), 99'999, Linked::address(server, Linked::endpoint(0)));
    ASSERT_TRUE(w.bus.run(kSecond, [&] { return Linked::failed(w.bus.node(1)) != Err::kOk; }));
    EXPECT_EQ(Linked::failed(w.bus.node(1)), Err::kLimit);
    server.jobs->links().check_invariants();
    for (Rank slot = 0; slot < 1000; ++slot)
        server.jobs->links().unlink(Linked::endpoint(0), slot, w.bus.now);
    ASSERT_TRUE(w.bus.run(5 * kSecond, [&] {
        return Linked::told(server, LinkEventKind::kUnlinked) == std::size_t{kNodes} * kEach;
    }));
    Linked::release_all(server);
    EXPECT_EQ(Linked::used(server, Linked::endpoint(0)), 0U);
    server.jobs->links().check_invariants();
}

TEST(Links, calls_beyond_the_limit_wait_their_turn) {
    Linked w(22);
    BusNode& a = w.add(0, 300);
    for (unsigned n = 1; n <= 3; ++n)
        w.bus.add(n);
    for (unsigned n = 1; n <= 3; ++n) {
        BusNode& node = w.bus.node(n);
        for (Handle e = 0; e < 100; ++e) {
            Linked::open(node, 10'000 * n + e, 2);
            (void)w.call(a, Linked::endpoint(0), Linked::address(node, 10'000 * n + e));
        }
    }
    ASSERT_TRUE(w.run(kSecond, [&] { return Linked::told(a, LinkEventKind::kConfirmed) == 300; }));
}

// Bodies that parse, with names that are right now and then: nothing breaks, and no slot is lost.
TEST(Links, stand_random_frames) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Linked w(seed);
        w.link_two();
        BusNode& a = w.bus.node(0);
        BusNode& b = w.bus.node(1);
        Prng random(seed);
        for (int n = 0; n < 2000; ++n) {
            const LinkEnd* end = Linked::up(b, Linked::endpoint(1), Linked::endpoint(0));
            const auto guess = [&](wire::LinkId right) {
                return random.chance(0.5) ? right : wire::LinkId{random.below(3)};
            };
            wire::LinkBody body{};
            body.kind = static_cast<wire::LinkKind>(1 + random.below(6));
            body.version = random.chance(0.9) ? wire::kProtocolVersion : std::uint8_t{3};
            body.incarnation = 1 + static_cast<std::uint32_t>(random.below(3));
            body.ours = guess(end == nullptr ? 1 : end->theirs);
            body.theirs = guess(end == nullptr ? 1 : end->ours);
            body.from = random.chance(0.8) ? Linked::endpoint(0) : Handle{3};
            body.to = random.chance(0.9) ? Linked::endpoint(1) : Handle{0};
            body.slot = static_cast<std::uint16_t>(random.below(3));
            body.reason = static_cast<std::uint8_t>(random.below(3));
            std::array<std::byte, wire::kLinkOctetsMax> octets;
            const Mac source = random.chance(0.7) ? a.config.mac : mac_of(7);
            const std::size_t count =
                wire::put_link(octets.data(), body, "urtp", key_of(Linked::endpoint(1)), source);
            w.bus.inject(b, source, wire::FrameType::kLink, std::span(octets).first(count));
            b.jobs->links().check_invariants();
            if (random.chance(0.05)) {
                w.run(static_cast<Nanos>(random.below(kSecond)));
                Linked::release_all(a);
                Linked::release_all(b);
                a.link_events.clear();
                b.link_events.clear();
            }
            if (random.chance(0.05))
                (void)a.jobs->links().call(Linked::endpoint(0),
                                           Linked::address(b, Linked::endpoint(1)),
                                           w.bus.now + kSecond, w.bus.now);
        }
        w.run(20 * kSecond);
        Linked::release_all(a);
        Linked::release_all(b);
        EXPECT_LE(Linked::used(b, Linked::endpoint(1)), 1U);
        EXPECT_EQ(Linked::used(b, Linked::endpoint(1)), Linked::used(a, Linked::endpoint(0)));
    }
}

}  // namespace
}  // namespace ulc::jobs
