// SPDX-License-Identifier: BSD-3-Clause
// Leaving, death and restart: jobs/jobs.h, jobs/liveness.h, docs/PROTOCOL.md §7, §8.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "tests/unit/jobs/formed.h"
#include "wire/build.h"

namespace ulc::jobs {
namespace {

INSTANTIATE_TEST_SUITE_P(Seeds, Formed, testing::Range<std::uint64_t>(1, 11));

// J-23, J-24
TEST_P(Formed, leaving_is_told_once_to_every_peer_under_loss) {
    JobBus bus(GetParam(), 0.2, 0.2);
    form(bus, 4);
    bus.leave(bus.node(2), kFirstEndpoint + 2, wire::LeaveReason::kLeft);
    bus.run(kSecond);
    for (unsigned i : {0U, 1U, 3U}) {
        // At most one BYE of four may get through; GONE is the engine's to ask for (below).
        EXPECT_LE(bus.node(i).count(JobEventKind::kPeerLeft, 2), 1U);
        EXPECT_EQ(bus.node(i).count(JobEventKind::kPeerDied, 2), 0U);
        if (bus.node(i).count(JobEventKind::kPeerLeft, 2) == 0) {
            bus.node(2).jobs->unknown_handle(mac_of(i), kFirstEndpoint + 2, bus.now);
        }
    }
    bus.set_loss(0);
    for (unsigned i : {0U, 1U, 3U}) {
        if (bus.node(i).count(JobEventKind::kPeerLeft, 2) == 0) {
            bus.node(2).jobs->unknown_handle(mac_of(i), kFirstEndpoint + 2, bus.now);
        }
    }
    bus.run(100 * kMillisecond);
    for (unsigned i : {0U, 1U, 3U})
        EXPECT_EQ(bus.node(i).count(JobEventKind::kPeerLeft, 2), 1U);
    EXPECT_TRUE(bus.node(2).jobs->drained());
}

TEST_P(Formed, a_killed_client_is_a_death_to_its_peers_remote_and_local) {
    JobBus bus(GetParam());
    bus.add(0);
    bus.add(1);
    bus.must_join(bus.node(0), 0, 3, 10);
    bus.must_join(bus.node(1), 1, 3, 11);
    bus.must_join(bus.node(1), 2, 3, 12);
    bus.run(kSecond);
    bus.leave(bus.node(1), 12, wire::LeaveReason::kDied);
    bus.run(100 * kMillisecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 2), 1U);
    EXPECT_EQ(bus.node(1).count(JobEventKind::kPeerDied, 2), 1U);
    EXPECT_EQ(bus.node(0).events.size(), 2U);
}

// N-4, N-5
TEST_P(Formed, a_minute_of_silence_is_not_death_even_under_loss) {
    JobBus bus(GetParam(), 0.2);
    form(bus, 4);
    const auto before = bus.frames_sent();
    bus.run(60 * kSecond);
    for (unsigned i = 0; i < 4; ++i)
        EXPECT_EQ(bus.node(i).events.size(), 1U) << "node " << i;
    EXPECT_GT(bus.frames_sent(), before);
}

// N-9
TEST_P(Formed, a_dead_node_is_noticed_within_the_configured_time) {
    JobBus bus(GetParam(), 0.1);
    form(bus, 4);
    bus.run(kSecond);
    bus.node(3).running = false;
    const Nanos died = bus.now;
    ASSERT_TRUE(bus.run(10 * kSecond, [&] {
        return bus.node(0).count(JobEventKind::kPeerDied, 3) == 1 &&
               bus.node(1).count(JobEventKind::kPeerDied, 3) == 1 &&
               bus.node(2).count(JobEventKind::kPeerDied, 3) == 1;
    }));
    EXPECT_GE(bus.now - died, kSecond);
    EXPECT_LE(bus.now - died, 2 * kSecond + 500 * kMillisecond);
    EXPECT_EQ(bus.node(0).counters.get(Counter::peers_dead), 1U);
    bus.run(10 * kSecond);
    EXPECT_EQ(bus.node(0).events.size(), 2U) << "once, and no other node";
}

// N-10
TEST_P(Formed, an_engine_that_was_not_scheduled_kills_nobody) {
    JobBus bus(GetParam());
    form(bus, 3);
    bus.run(kSecond);
    bus.node(0).running = false;  // stopped by the scheduler; frames to it are lost
    bus.run(kSecond);
    bus.now += 500 * kMillisecond;
    bus.node(0).running = true;
    bus.run(5 * kSecond);
    for (unsigned i = 0; i < 3; ++i)
        EXPECT_EQ(bus.node(i).events.size(), 1U) << "node " << i;
}

// N-6
TEST_P(Formed, frames_heard_by_the_engine_spare_the_pings) {
    JobBus bus(GetParam());
    form(bus, 2);
    bus.run(kSecond);
    const NodeIndex peer[2] = {bus.node(0).jobs->node_of(mac_of(1)),
                               bus.node(1).jobs->node_of(mac_of(0))};
    ASSERT_NE(peer[0], kNoNode);
    const auto before = bus.frames_sent();
    for (int i = 0; i < 100; ++i) {
        for (unsigned n = 0; n < 2; ++n)
            bus.node(n).jobs->heard(peer[n], bus.now);
        bus.run(100 * kMillisecond);
    }
    // Ten seconds: each asks the other every second, which is answered.
    EXPECT_LE(bus.frames_sent() - before, 44U);
    EXPECT_EQ(bus.node(0).jobs->node_of(mac_of(0)), kNoNode);
    EXPECT_EQ(bus.node(0).jobs->node_of(mac_of(9)), kNoNode);
}

// H-1, N-9
TEST_P(Formed, a_restarted_engine_means_that_its_ranks_died) {
    JobBus bus(GetParam(), 0.2);
    form(bus, 3);
    bus.run(kSecond);
    bus.restart(bus.node(1));
    const Nanos restarted = bus.now;
    ASSERT_TRUE(bus.run(10 * kSecond, [&] {
        return bus.node(0).count(JobEventKind::kPeerDied, 1) == 1 &&
               bus.node(2).count(JobEventKind::kPeerDied, 1) == 1;
    }));
    EXPECT_LE(bus.now - restarted, 2 * kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 2), 0U);
}

// J-18
TEST_P(Formed, a_restarted_rank_may_not_slip_into_the_old_job_but_forms_the_next) {
    JobBus bus(GetParam(), 0.1);
    form(bus, 2);
    bus.restart(bus.node(1));
    bus.must_join(bus.node(1), 1, 2, 50);
    bus.run(3 * kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 1U);
    EXPECT_FALSE(bus.node(1).formed(50));
    bus.leave(bus.node(0), kFirstEndpoint, wire::LeaveReason::kLeft);
    bus.must_join(bus.node(0), 0, 2, 51);
    if (bus.node(1).event_of(50) != nullptr) bus.must_join(bus.node(1), 1, 2, 52);
    EXPECT_TRUE(bus.run(3 * kSecond, [&] { return bus.node(0).formed(51); }));
}

// J-18
TEST_P(Formed, the_same_name_serves_run_after_run) {
    JobBus bus(GetParam(), 0.2);
    for (unsigned n = 0; n < 3; ++n)
        bus.add(n);
    for (Handle run = 0; run < 10; ++run) {
        for (unsigned n = 0; n < 3; ++n) {
            ASSERT_EQ(bus.join(bus.node(n), static_cast<Rank>(n), 3, 100 + run * 10 + n), Err::kOk);
        }
        ASSERT_TRUE(bus.run(3 * kSecond,
                            [&] {
                                return bus.node(0).formed(100 + run * 10) &&
                                       bus.node(1).formed(101 + run * 10) &&
                                       bus.node(2).formed(102 + run * 10);
                            }))
            << "run " << run << ": " << bus.describe();
        // Ranks leave in any order, and the others' next run starts before rank 0 has left.
        for (unsigned n : {1U, 2U, 0U}) {
            bus.leave(bus.node(n), 100 + run * 10 + n, wire::LeaveReason::kLeft);
            bus.run(30 * kMillisecond);
        }
    }
    bus.set_loss(0);
    bus.run(10 * kSecond);
    for (unsigned n = 0; n < 3; ++n)
        EXPECT_TRUE(bus.node(n).jobs->drained());
}

// N-2
TEST_P(Formed, an_engine_that_the_others_gave_up_is_told_when_it_comes_back) {
    JobBus bus(GetParam(), 0.1);
    form(bus, 3);
    bus.run(kSecond);
    bus.node(0).running = false;
    bus.run(4 * kSecond);
    ASSERT_EQ(bus.node(1).count(JobEventKind::kPeerDied, 0), 1U);
    bus.node(0).running = true;
    EXPECT_TRUE(bus.run(4 * kSecond, [&] {
        return bus.node(0).count(JobEventKind::kPeerDied, 1) == 1 &&
               bus.node(0).count(JobEventKind::kPeerDied, 2) == 1;
    })) << bus.describe();
    EXPECT_EQ(bus.node(1).count(JobEventKind::kPeerDied, 2), 0U);
    EXPECT_EQ(bus.node(0).counters.get(Counter::expelled), 2U);
}

// Rank 1 holds up a group of rank 0. Rank 2 shares its node, and rank 3 has another.
// N-24, N-25
TEST_P(Formed, an_excluded_rank_is_told_under_loss_and_its_neighbour_is_not_touched) {
    JobBus bus(GetParam(), 0.2, 0.2);
    const unsigned place[] = {0, 1, 1, 2};
    for (unsigned node = 0; node < 3; ++node)
        bus.add(node);
    for (Rank rank = 0; rank < 4; ++rank)
        bus.must_join(bus.node(place[rank]), rank, std::uint16_t{4}, kFirstEndpoint + rank);
    ASSERT_TRUE(bus.run(5 * kSecond, [&] {
        for (Rank rank = 0; rank < 4; ++rank)
            if (!bus.node(place[rank]).formed(kFirstEndpoint + rank)) return false;
        return true;
    })) << bus.describe();
    BusNode& there = bus.node(1);
    const auto excluded = [&] {
        return std::ranges::count(there.events, JobEventKind::kExcluded, &JobEvent::kind);
    };
    for (int times = 0; times < 2; ++times)
        bus.node(0).jobs->exclude(bus.node(0).ids[kFirstEndpoint], 1, bus.now);
    EXPECT_TRUE(bus.run(4 * kSecond, [&] { return excluded() == 1; })) << bus.describe();
    EXPECT_EQ(there.events.back().endpoint, kFirstEndpoint + 1);
    EXPECT_EQ(there.events.back().first, mac_of(0));
    bus.run(10 * kSecond);
    EXPECT_EQ(there.events.size(), 3U) << bus.describe();
    EXPECT_EQ(there.counters.get(Counter::expelled), 1U);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerExcluded, 1), 1U);
    EXPECT_EQ(bus.node(0).events.size(), 2U) << bus.describe();
    EXPECT_EQ(bus.node(2).events.size(), 1U) << bus.describe();
}

// All BYEs of rank 1 are lost. Rank 2 shares its node.
// N-9
TEST_P(Formed, gone_ends_the_rank_that_it_names_alone) {
    JobBus bus(GetParam());
    const unsigned place[] = {0, 1, 1};
    for (unsigned node = 0; node < 2; ++node)
        bus.add(node);
    for (Rank rank = 0; rank < 3; ++rank)
        bus.must_join(bus.node(place[rank]), rank, std::uint16_t{3}, kFirstEndpoint + rank);
    bus.run(kSecond);
    ASSERT_TRUE(bus.node(0).formed(kFirstEndpoint)) << bus.describe();
    bus.set_loss(1);
    bus.leave(bus.node(1), kFirstEndpoint + 1, wire::LeaveReason::kLeft);
    bus.run(200 * kMillisecond);
    bus.set_loss(0);
    bus.run(5 * kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerLeft, 1), 1U) << bus.describe();
    EXPECT_EQ(bus.node(0).events.size(), 2U) << bus.describe();
}

// N-9
TEST_P(Formed, expelled_ends_the_job_of_the_endpoint_that_it_names_alone) {
    JobBus bus(GetParam());
    const char* const jobs[] = {"a", "b"};
    for (unsigned node = 0; node < 2; ++node) {
        bus.add(node);
        for (unsigned job = 0; job < 2; ++job)
            bus.must_join(bus.node(node), static_cast<Rank>(node), std::uint16_t{2},
                          kFirstEndpoint + 10 * job + node, std::string(jobs[job]));
    }
    bus.run(kSecond);
    BusNode& there = bus.node(1);
    ASSERT_EQ(there.events.size(), 2U) << bus.describe();
    bus.node(0).jobs->peer_died(bus.node(0).ids[kFirstEndpoint], 1, bus.now);
    bus.run(5 * kSecond);
    ASSERT_EQ(there.count(JobEventKind::kPeerDied, 0), 1U) << bus.describe();
    EXPECT_EQ(there.events.back().job, there.ids[kFirstEndpoint + 1]);
    EXPECT_EQ(bus.node(0).events.size(), 3U) << bus.describe();
}

// N-16
TEST_P(Formed, hints_to_a_peer_are_limited_in_rate) {
    JobBus bus(GetParam());
    form(bus, 2);
    for (unsigned millisecond = 0; millisecond < 100; ++millisecond) {
        for (unsigned n = 0; n < 100; ++n)
            bus.node(0).jobs->unknown_handle(mac_of(1), 5000 + 100 * millisecond + n, bus.now);
        bus.run(kMillisecond);
    }
    EXPECT_GT(bus.node(0).counters.get(Counter::gone_sent), 50U);
    EXPECT_LE(bus.node(0).counters.get(Counter::gone_sent), 64U + 100U + 10U);
}

// N-16
TEST(Watch, searches_no_ends_for_hints_beyond_their_rate) {
    Counters counters;
    Liveness liveness({}, mac_of(0), 1, 1, counters);
    for (Handle handle = 1; handle <= 2000; ++handle)
        liveness.ended(handle, wire::LeaveReason::kLeft);
    const std::uint64_t before = liveness.steps();
    for (Handle handle = 1; handle <= 10'000; ++handle)
        liveness.unknown_handle(mac_of(9), handle, 1);
    EXPECT_LT(liveness.steps() - before, 10U * kAnswersMax);
    EXPECT_GT(liveness.steps(), before);
}

TEST(Watch, has_a_limit) {
    Counters counters;
    LivenessConfig config;
    config.nodes_max = 2;
    Liveness liveness(config, mac_of(0), 1, 1, counters);
    EXPECT_TRUE(liveness.watch(mac_of(1), 1, 0));
    EXPECT_TRUE(liveness.watch(mac_of(2), 1, 0));
    EXPECT_FALSE(liveness.watch(mac_of(3), 1, 0));
    EXPECT_TRUE(liveness.watch(mac_of(2), 1, 0)) << "a node that is watched already";
    liveness.unwatch(mac_of(1));
    EXPECT_TRUE(liveness.watch(mac_of(3), 1, 0));
}

// The index of a node is kept by endpoints. Its generation has 16 bits.
TEST(Watch, gives_an_index_that_names_nobody_later_across_the_wrap_of_generations) {
    Counters counters;
    Liveness liveness({}, mac_of(0), 1, 1, counters);
    NodeIndex earlier = kNoNode;
    for (unsigned n = 0; n < 0x10000 + 10; ++n) {
        const Nanos now = n + 1;
        ASSERT_TRUE(liveness.watch(mac_of(1 + n % 2), 1, now));
        const NodeIndex index = liveness.find(mac_of(1 + n % 2));
        ASSERT_NE(index, kNoNode) << n;
        ASSERT_NE(index, earlier) << n;
        liveness.heard(earlier, now + 1000);
        ASSERT_NE(liveness.place_of_heard(index), nullptr) << n;
        ASSERT_EQ(*liveness.place_of_heard(index), now) << n << ": a frame of another node counted";
        ASSERT_EQ(liveness.place_of_heard(earlier), nullptr) << n;
        liveness.unwatch(mac_of(1 + n % 2));
        earlier = index;
    }
}

/// A NODE frame that an attacker makes, as it comes at `to`.
void spoof(JobBus& bus, BusNode& to, unsigned from, const wire::NodeBody& node) {
    std::byte frame[128]{};
    wire::FrameHead head;
    head.destination = to.config.mac;
    head.source = mac_of(from);
    head.type = wire::FrameType::kNode;
    const std::size_t octets = wire::put_node(frame + wire::kHeadOctets, node);
    wire::FrameView view;
    ASSERT_EQ(wire::parse(frame, wire::build_control(frame, head, octets), head.ether_type, view),
              Counter::kCount);
    to.jobs->on_frame(view, bus.now);
}

// Only the answer to a question that was asked just now ends a rank, never a frame alone.
// N-8, N-13
TEST_P(Formed, gone_and_expelled_from_a_spoofed_source_end_nothing) {
    JobBus bus(GetParam());
    form(bus, 3);
    bus.run(kSecond);
    constexpr std::size_t kKinds = 5;
    for (std::size_t round = 0; round < 4 * kKinds; ++round) {
        for (const unsigned from : {1U, 2U, 9U}) {
            for (const std::uint64_t token : {std::uint64_t{0}, std::uint64_t{77}}) {
                std::array<wire::NodeBody, kKinds> nodes{};
                for (wire::NodeBody& node : nodes) {
                    node.incarnation = 1000 + from;
                    node.token = token;
                    node.kind = wire::NodeKind::kExpelled;
                    node.theirs = kFirstEndpoint;
                }
                nodes[0].kind = wire::NodeKind::kGone;
                nodes[0].reason = wire::LeaveReason::kLeft;
                nodes[0].ours = kFirstEndpoint + from;
                nodes[0].theirs = 0;
                nodes[2].reason = wire::LeaveReason::kExcluded;
                nodes[3].incarnation = 1001 + from;
                nodes[4].kind = wire::NodeKind::kPong;
                nodes[4].token = 77;
                nodes[4].theirs = 0;
                // The first hint of a round makes the node ask; those after it wait behind that.
                std::rotate(nodes.begin(), nodes.begin() + std::ptrdiff_t(round % kKinds),
                            nodes.end());
                for (const wire::NodeBody& node : nodes)
                    spoof(bus, bus.node(0), from, node);
            }
        }
        bus.run(20 * kMillisecond);
    }
    bus.run(5 * kSecond);
    for (unsigned i = 0; i < 3; ++i)
        EXPECT_EQ(bus.node(i).events.size(), 1U) << "node " << i << bus.describe();
}

// N-17
TEST_P(Formed, strangers_are_answered_at_a_limited_rate_and_never_more_than_they_sent) {
    JobBus bus(GetParam());
    form(bus, 2);
    bus.run(kSecond);
    wire::NodeBody node{};
    node.incarnation = 5;
    node.kind = wire::NodeKind::kPing;
    const auto before = bus.frames_sent();
    std::uint64_t asked = 0;
    for (int millisecond = 0; millisecond < 100; ++millisecond) {
        for (unsigned from = 100; from < 200; ++from, ++asked) {
            node.token = asked + 1;
            node.theirs = 4711;
            spoof(bus, bus.node(0), from, node);
        }
        bus.run(kMillisecond);
    }
    const auto answered = bus.frames_sent() - before;
    EXPECT_GT(answered, 50U);
    EXPECT_LE(answered, 64U + 100U + 20U) << "a burst, and 1000 a second; and what is asked here";
    EXPECT_GT(bus.node(0).counters.get(Counter::answers_limited), asked / 2);
    bus.run(5 * kSecond);
    EXPECT_EQ(bus.node(1).events.size(), 1U);
}

// N-14, N-16
TEST(JobsGone, is_rate_limited_and_never_sent_to_groups_or_oneself) {
    JobBus bus(1);
    BusNode& node = bus.add(1);
    node.jobs->unknown_handle(kBroadcastMac, 1, bus.now);
    node.jobs->unknown_handle(mac_of(1), 1, bus.now);
    bus.run(kMillisecond);
    EXPECT_EQ(node.counters.get(Counter::gone_sent), 0U);
    for (unsigned i = 0; i < 1000; ++i) {
        node.jobs->unknown_handle(mac_of(2), 1 + i, bus.now);
        node.jobs->unknown_handle(kBroadcastMac, 1 + i, bus.now);
        node.jobs->unknown_handle(mac_of(1), 1 + i, bus.now);
        node.jobs->unknown_handle(mac_of(2), kGroupBit | i, bus.now);
    }
    bus.run(kMillisecond);
    EXPECT_LE(node.counters.get(Counter::gone_sent), kAnswersMax);
    EXPECT_GT(node.counters.get(Counter::gone_sent), 0U);
}

// J-25, N-1
TEST(JobsInput, malformed_and_own_frames_are_counted) {
    JobBus bus(1);
    BusNode& node = bus.add(1);
    std::byte frame[256]{};
    wire::FrameHead head;
    head.destination = kBroadcastMac;
    head.source = mac_of(2);
    for (const auto type : {wire::FrameType::kJob, wire::FrameType::kNode}) {
        head.type = type;
        const std::size_t octets = wire::build_control(frame, head, 100);
        wire::FrameView view;
        ASSERT_EQ(wire::parse(frame, octets, head.ether_type, view), Counter::kCount);
        node.jobs->on_frame(view, bus.now);
    }
    EXPECT_EQ(node.counters.get(Counter::drop_job), 2U);
    wire::FrameView own;
    own.type = wire::FrameType::kJob;
    own.source = mac_of(1);
    node.jobs->on_frame(own, bus.now);
    EXPECT_EQ(node.counters.get(Counter::drop_own_echo), 1U);
}

// Only the answer to a question that was asked lately proves a restart: any other PONG may be
// an old frame, or a stranger's.
// N-8
TEST(LivenessTokens, a_pong_to_no_fresh_question_proves_nothing) {
    Counters counters;
    const Mac own = mac_of(0);
    const Mac peer = mac_of(1);
    Liveness liveness({}, own, 100, 1, counters);
    ASSERT_TRUE(liveness.watch(peer, 7, 0));
    liveness.hint(peer, 9, 0);
    Mac to;
    wire::NodeBody ping;
    ASSERT_TRUE(liveness.next_tx(to, ping, 0));
    EXPECT_EQ(to, peer);
    ASSERT_EQ(ping.kind, wire::NodeKind::kPing);

    wire::NodeView pong;
    pong.kind = wire::NodeKind::kPong;
    pong.incarnation = 9;
    NodeVerdict verdict;
    for (const std::uint64_t off : {std::uint64_t{1}, ~std::uint64_t{63}, std::uint64_t{1} << 40}) {
        pong.token = ping.token + off;
        EXPECT_FALSE(liveness.on_node(pong, peer, 0, verdict)) << "token off by " << off;
    }
    pong.token = ping.token;
    ASSERT_TRUE(liveness.on_node(pong, peer, 0, verdict));
    EXPECT_EQ(verdict.kind, NodeVerdict::Kind::kRestarted);
    EXPECT_EQ(verdict.incarnation, 9U);
}

}  // namespace
}  // namespace ulc::jobs
