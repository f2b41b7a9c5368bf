// SPDX-License-Identifier: BSD-3-Clause
// Forming jobs whose time runs out, and claimants that are replaced.
#include "tests/unit/jobs/forming.h"

namespace ulc::jobs {
namespace {

// ---------------------------------------------------------------------------- time and replacement

TEST(JobsForming, deadlines_say_who_is_missing) {
    JobBus bus(5);
    for (unsigned n = 0; n < 2; ++n)
        bus.add(n);
    bus.must_join(bus.node(0), 0, 8, 10, "job", 0, bus.now + kSecond);
    bus.must_join(bus.node(1), 3, 8, 11, "job", 0, bus.now + kSecond);
    bus.must_join(bus.node(1), 0, 2, 12, "lonely", 0, bus.now + kSecond);
    bus.must_join(bus.node(1), 1, 2, 13, "headless", 0, bus.now + kSecond);
    bus.run(2 * kSecond);
    EXPECT_EQ(bus.node(0).failed(10), Err::kTimeout);
    EXPECT_EQ(bus.node(1).failed(11), Err::kTimeout);
    EXPECT_STREQ(bus.node(0).event_of(10)->text.data(), "still missing of 8 ranks: 1-2, 4-7");
    EXPECT_STREQ(bus.node(1).event_of(11)->text.data(),
                 "rank 0 at 02:00:00:00:00:00 is still waiting for other ranks");
    EXPECT_STREQ(bus.node(1).event_of(12)->text.data(), "still missing of 2 ranks: 1");
    EXPECT_STREQ(bus.node(1).event_of(13)->text.data(), "rank 0 was not heard on this network");
    // The name is free again, also for another size.
    bus.must_join(bus.node(0), 0, 2, 20);
    bus.must_join(bus.node(1), 1, 2, 21);
    EXPECT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(20) && bus.node(1).formed(21); }));
}

// The rate at which a user may begin jobs rests on this (THREAT_MODEL).
TEST(JobsForming, a_short_job_of_two_nodes_costs_at_most_24_frames) {
    JobBus bus(5);
    for (unsigned n = 0; n < 2; ++n) {
        bus.add(n);
        bus.must_join(bus.node(n), static_cast<Rank>(n), 2, 10 + n);
    }
    ASSERT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(10) && bus.node(1).formed(11); }));
    for (unsigned n = 0; n < 2; ++n)
        bus.leave(bus.node(n), 10 + n, wire::LeaveReason::kLeft);
    bus.run(kSecond);
    EXPECT_LE(bus.frames_sent(), 24U);
    EXPECT_TRUE(bus.node(0).jobs->drained() && bus.node(1).jobs->drained());
}

// J-16
TEST(JobsForming, a_claimant_that_died_before_forming_is_replaced) {
    JobBus bus(6);
    for (unsigned n = 0; n < 4; ++n)
        bus.add(n);
    bus.must_join(bus.node(0), 0, 3, 10);
    bus.must_join(bus.node(1), 1, 3, 11);
    bus.run(100 * kMillisecond);
    bus.leave(bus.node(1), 11, wire::LeaveReason::kDied);
    bus.must_join(bus.node(1), 1, 3, 12);  // same node: no conflict, even at once
    bus.run(100 * kMillisecond);
    bus.node(1).running = false;  // the whole node disappears without a frame
    bus.run(2 * kSecond);
    bus.must_join(bus.node(2), 1, 3, 13);  // its claim is stale
    bus.must_join(bus.node(3), 2, 3, 14);
    ASSERT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(10) && bus.node(2).formed(13); }));
    JobView view;
    ASSERT_TRUE(bus.node(0).jobs->job(bus.node(0).ids[10], view));
    EXPECT_EQ(view.roster[1].mac, mac_of(2));
}

// J-22
TEST(JobsForming, a_claim_withdrawn_while_the_roster_is_under_way_is_taken_back) {
    for (const Nanos head_start : {100, 300, 400, 500, 700}) {
        JobBus bus(7);
        for (unsigned n = 0; n < 3; ++n)
            bus.add(n);
        bus.must_join(bus.node(1), 1, 3, 11);
        bus.must_join(bus.node(2), 2, 3, 12);
        bus.run(kSecond);
        bus.must_join(bus.node(0), 0, 3, 10);
        bus.run(head_start * kMicrosecond);
        bus.cut = &bus.node(1);
        if (bus.node(1).formed(11)) break;
        bus.leave(bus.node(1), 11, wire::LeaveReason::kDied);  // all its BYEs are lost
        bus.run(200 * kMillisecond);
        bus.cut = nullptr;
        bus.must_join(bus.node(1), 1, 3, 13);
        const auto done = [&] { return bus.node(0).formed(10) && bus.node(2).formed(12); };
        ASSERT_TRUE(bus.run(3 * kSecond, done)) << head_start;
        // If it had already acknowledged, the first frame for it reveals that it is gone.
        bus.node(1).jobs->unknown_handle(mac_of(0), 11, bus.now);
        bus.run(kSecond);
        const bool died = bus.node(0).count(JobEventKind::kPeerDied, 1) == 1;
        EXPECT_NE(bus.node(1).formed(13), died) << head_start;
    }
}

TEST(JobsForming, a_rank_0_that_ends_while_its_roster_is_under_way_leaves_nothing_behind) {
    JobBus bus(7);
    for (unsigned n = 0; n < 2; ++n)
        bus.add(n);
    bus.must_join(bus.node(1), 1, 2, 11);
    bus.run(kSecond);
    bus.must_join(bus.node(0), 0, 2, 10);
    // Its claims have arrived, but no acknowledgement comes.
    ASSERT_TRUE(bus.run(kSecond, [&] { return bus.kinds_sent[wire::JobKind::kRoster] > 0; }));
    bus.cut = &bus.node(1);
    bus.run(10 * kMillisecond);
    ASSERT_FALSE(bus.node(0).formed(10));
    bus.leave(bus.node(0), 10, wire::LeaveReason::kDied);
    bus.run(5 * kSecond);
    EXPECT_TRUE(bus.node(0).jobs->drained());
    bus.cut = nullptr;
    bus.must_join(bus.node(0), 0, 2, 12);
    EXPECT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(12) && bus.node(1).formed(11); }));
}

/// A job whose rank 0 has formed, and whose rank 1 holds the roster and gets no COMMIT.
class Uncommitted : public testing::Test {
protected:
    void form(std::uint8_t nonce) {
        for (unsigned n = 0; n < 2; ++n)
            bus.add(n);
        bus.must_join(bus.node(1), 1, 2, 11, "job", nonce, bus.now + 60 * kSecond);
        bus.must_join(bus.node(0), 0, 2, 10, "job", nonce);
        ASSERT_TRUE(
            bus.run(kSecond, [&] { return bus.kinds_sent[wire::JobKind::kRosterAck] > 0; }));
        bus.set_loss(1);
        ASSERT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(10); }));
    }
    void expect_failure(Err error, Nanos within) {
        EXPECT_TRUE(bus.run(within, [&] { return bus.node(1).failed(11) == error; }));
        const JobEvent* event = bus.node(1).event_of(11);
        ASSERT_NE(event, nullptr);
        EXPECT_NE(event->text.find("rank 0 at 02:00:00:00:00:00 ended"), std::string::npos)
            << event->text;
        bus.run(kSecond);
        const std::uint64_t before = bus.frames_sent();
        bus.run(3 * kSecond);
        EXPECT_EQ(bus.frames_sent(), before) << "no node is watched for a job that failed";
    }
    JobBus bus{17};
};

// J-46
TEST_F(Uncommitted, fails_soon_if_the_engine_of_rank_0_dies) {
    form(9);
    bus.node(0).running = false;
    bus.set_loss(0);
    expect_failure(Err::kPeerDied, 3 * kSecond);
}

// J-46
TEST_F(Uncommitted, fails_soon_if_the_engine_of_rank_0_is_restarted) {
    form(9);
    bus.restart(bus.node(0));
    bus.set_loss(0);
    EXPECT_TRUE(bus.run(3 * kSecond, [&] { return bus.node(1).failed(11) == Err::kPeerDied; }));
}

// J-24
TEST_F(Uncommitted, forms_and_hears_of_the_end_if_the_engine_of_rank_0_goes_on) {
    form(9);
    bus.leave(bus.node(0), 10, wire::LeaveReason::kLeft);
    bus.run(500 * kMillisecond);
    bus.set_loss(0);
    EXPECT_TRUE(bus.run(3 * kSecond, [&] {
        return bus.node(1).formed(11) && bus.node(1).count(JobEventKind::kPeerLeft, 0) == 1;
    })) << bus.describe();
}

// J-22, J-46
TEST_F(Uncommitted, fails_at_once_if_rank_0_says_that_it_ends) {
    form(9);
    bus.set_loss(0);
    bus.leave(bus.node(0), 10, wire::LeaveReason::kLeft);
    expect_failure(Err::kPeerLeft, 100 * kMillisecond);
}

// J-46
TEST_F(Uncommitted, awaits_another_rank_0_if_it_was_started_by_hand) {
    form(0);
    bus.node(0).running = false;
    bus.set_loss(0);
    bus.run(3 * kSecond);
    EXPECT_EQ(bus.node(1).event_of(11), nullptr);
    bus.restart(bus.node(0));
    bus.must_join(bus.node(0), 0, 2, 12);
    EXPECT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(12) && bus.node(1).formed(11); }))
        << bus.describe();
}

// J-46
TEST_F(Uncommitted, says_at_its_deadline_that_rank_0_ended) {
    form(0);
    bus.node(0).running = false;
    bus.set_loss(0);
    ASSERT_TRUE(bus.run(61 * kSecond, [&] { return bus.node(1).failed(11) == Err::kTimeout; }));
    EXPECT_NE(bus.node(1).event_of(11)->text.find(" ended before "), std::string::npos);
}

TEST(JobsForming, a_world_handle_in_use_here_is_not_chosen) {
    JobBus bus(8);
    JobsConfig config;
    config.mac = mac_of(1);
    static int refusals;
    refusals = 3;
    config.group_in_use = [](void*, GroupHandle) { return refusals-- > 0; };
    BusNode& node = bus.add(1, config);
    ASSERT_EQ(bus.join(node, 0, 1, 5), Err::kOk);
    EXPECT_EQ(refusals, -1);
}

// J-8, J-9
TEST(JobsForming, a_world_handle_in_use_elsewhere_is_chosen_anew) {
    JobBus bus(8);
    bus.add(0);
    static std::set<GroupHandle> refused;
    refused.clear();
    JobsConfig config;
    config.mac = mac_of(1);
    config.group_in_use = [](void*, GroupHandle handle) {
        if (refused.size() < 3) refused.insert(handle);
        return refused.contains(handle);
    };
    bus.add(1, config);
    bus.must_join(bus.node(0), 0, 2, 10);
    bus.must_join(bus.node(1), 1, 2, 11);
    ASSERT_TRUE(bus.run(kSecond, [&] { return all_formed(bus); }));
    EXPECT_EQ(refused.size(), 3U);
    expect_one_roster(bus, "job", 2);
    JobView view;
    ASSERT_TRUE(bus.node(0).jobs->job(bus.node(0).ids[10], view));
    EXPECT_FALSE(refused.contains(view.world));
}

// J-10, J-11
TEST_P(UnderLoss, two_publishers_never_form_two_halves) {
    JobBus bus(GetParam(), 0.3);
    for (unsigned n = 0; n < 4; ++n)
        bus.add(n);
    bus.must_join(bus.node(0), 0, 3, 10);
    bus.must_join(bus.node(1), 1, 3, 11);
    bus.must_join(bus.node(2), 2, 3, 12);
    bus.must_join(bus.node(3), 0, 3, 13);
    bus.run(3 * kSecond);
    // Either all of the first job formed before the second rank 0 was heard, or no rank did.
    const bool first = bus.node(0).formed(10);
    const bool second = bus.node(3).formed(13);
    EXPECT_FALSE(first && second);
    EXPECT_EQ(bus.node(1).formed(11), first || second);
    EXPECT_EQ(bus.node(2).formed(12), first || second);
    EXPECT_EQ(bus.node(0).failed(10), first ? Err::kOk : Err::kTwoRosters);
    EXPECT_EQ(bus.node(3).failed(13), second ? Err::kOk : Err::kTwoRosters);
}

TEST_P(UnderLoss, a_claimant_that_dies_before_it_holds_the_roster_is_replaced) {
    JobBus bus(GetParam(), 0.2);
    for (unsigned n = 0; n < 4; ++n)
        bus.add(n);
    bus.must_join(bus.node(1), 1, 3, 11);
    bus.must_join(bus.node(2), 2, 3, 12);
    bus.run(kSecond);
    bus.must_join(bus.node(0), 0, 3, 10);
    bus.run(300 * kMicrosecond);  // claims are in, or nearly so
    bus.node(2).running = false;
    bus.run(3 * kSecond);
    if (bus.node(0).formed(10)) return;  // it had already acknowledged; its death is an event
    EXPECT_FALSE(bus.node(1).formed(11)) << "half a job";
    bus.must_join(bus.node(3), 2, 3, 13);
    EXPECT_TRUE(bus.run(3 * kSecond, [&] {
        return bus.node(0).formed(10) && bus.node(1).formed(11) && bus.node(3).formed(13);
    }));
}

}  // namespace
}  // namespace ulc::jobs
