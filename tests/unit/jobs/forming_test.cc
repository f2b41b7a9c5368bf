// SPDX-License-Identifier: BSD-3-Clause
// Tests how jobs form over a lossy wire: jobs/jobs.h, docs/PROTOCOL.md §7.
#include "tests/unit/jobs/forming.h"

namespace ulc::jobs {
namespace {

TEST(JobsForming, a_job_of_one_forms_at_once_without_a_frame) {
    JobBus bus(1);
    BusNode& node = bus.add(1);
    ASSERT_EQ(bus.join(node, 0, 1, 77), Err::kOk);
    JobEvent event;
    ASSERT_TRUE(node.jobs->poll_event(event));
    EXPECT_EQ(event.kind, JobEventKind::kFormed);
    EXPECT_EQ(event.endpoint, 77U);
    bus.run(kSecond);
    EXPECT_EQ(bus.frames_sent(), 0U);
}

// J-11
TEST(JobsForming, local_ranks_meet_without_the_wire) {
    JobBus bus(1);
    BusNode& node = bus.add(1);
    for (Rank rank : {2, 0, 3, 1})
        ASSERT_EQ(bus.join(node, rank, 4, 100U + rank), Err::kOk);
    bus.run(kMillisecond);
    expect_one_roster(bus, "job", 4);
    EXPECT_TRUE(node.formed(100) && node.formed(103));
}

// An engine whose rounds take longer than the first waits finds its JOIN due each time it looks. An
// earlier version sent one JOIN each round without end, and a segment of such engines carried
// nothing else.
// J-4
TEST(JobsForming, a_slow_engine_backs_off_as_well) {
    JobsConfig config;
    config.mac = mac_of(1);
    config.incarnation = 1;
    Counters counters;
    Jobs jobs(config, counters);
    JoinRequest request;
    request.name = "job";
    request.rank = 1;
    request.size = 2;
    request.endpoint = 11;
    request.profile = urtp::kDefaultProfile;
    ASSERT_TRUE(jobs.join(request, 0).ok());
    std::byte frame[2048];
    unsigned joins = 0;
    for (Nanos now = 0; now < 2 * kSecond; now += kMillisecond) {  // an engine's round
        while (jobs.next_tx(frame, sizeof frame, now) != 0)
            ++joins;
        if (jobs.next_timer() <= now) jobs.on_timer(now);
    }
    EXPECT_LT(joins, 60U);  // 200 us, doubling to 50 ms: 48
    EXPECT_GT(joins, 30U);
}

// J-4, J-7
TEST(JobsForming, two_nodes_form_in_well_under_a_millisecond_when_both_are_there) {
    JobBus bus(1);
    BusNode& a = bus.add(1);
    BusNode& b = bus.add(2);
    ASSERT_EQ(bus.join(b, 1, 2, 11), Err::kOk);
    ASSERT_EQ(bus.join(a, 0, 2, 10), Err::kOk);
    EXPECT_TRUE(bus.run(kMillisecond, [&] { return all_formed(bus); }));
    expect_one_roster(bus, "job", 2);
}

// J-6
TEST(JobsForming, a_late_rank_0_is_answered_at_once) {
    JobBus bus(3);
    BusNode& a = bus.add(1);
    BusNode& b = bus.add(2);
    ASSERT_EQ(bus.join(b, 1, 2, 11), Err::kOk);
    bus.run(10 * kSecond);  // b's back-off is at its maximum
    ASSERT_EQ(bus.join(a, 0, 2, 10), Err::kOk);
    EXPECT_TRUE(bus.run(kMillisecond, [&] { return all_formed(bus); }));
}

INSTANTIATE_TEST_SUITE_P(Seeds, UnderLoss, testing::Range<std::uint64_t>(1, 21));

// J-7, J-8, J-11
TEST_P(UnderLoss, sixteen_nodes_form_at_30_percent) {
    JobBus bus(GetParam(), 0.3, 0.1);
    for (unsigned n = 0; n < 16; ++n) {
        BusNode& node = bus.add(n);
        const Rank rank = static_cast<Rank>((n * 7 + GetParam()) % 16);
        ASSERT_EQ(bus.join(node, rank, 16, 500 + n, "job", GetParam() % 2 == 0 ? 9 : 0), Err::kOk);
    }
    ASSERT_TRUE(bus.run(5 * kSecond, [&] { return all_formed(bus); }));
    expect_one_roster(bus, "job", 16);
    // Once all members have acknowledged, the only frames are those that ask which peers are alive.
    bus.set_loss(0);
    bus.run(kSecond);
    const auto before = bus.frames_sent();
    bus.run(200 * kMillisecond);
    EXPECT_LE(bus.frames_sent() - before, 16U * 15U * 2U);
}

// J-1
TEST_P(UnderLoss, several_ranks_a_node_and_several_jobs_at_once) {
    JobBus bus(GetParam(), 0.3);
    for (unsigned n = 0; n < 4; ++n)
        bus.add(n);
    for (Rank rank = 0; rank < 12; ++rank) {
        ASSERT_EQ(bus.join(bus.node(rank % 4U), rank, 12, 1000U + rank, "a"), Err::kOk);
        ASSERT_EQ(bus.join(bus.node(rank / 3U), rank, 12, 2000U + rank, "b", 5), Err::kOk);
        ASSERT_EQ(bus.join(bus.node(rank / 3U), rank, 12, 3000U + rank, "b", 6), Err::kOk);
    }
    ASSERT_TRUE(bus.run(5 * kSecond, [&] { return all_formed(bus); }));
    JobView a, b5, b6;
    ASSERT_TRUE(bus.node(0).jobs->job(bus.node(0).ids[1000], a));
    ASSERT_TRUE(bus.node(0).jobs->job(bus.node(0).ids[2000], b5));
    ASSERT_TRUE(bus.node(0).jobs->job(bus.node(0).ids[3000], b6));
    EXPECT_EQ(std::set<GroupHandle>({a.world, b5.world, b6.world}).size(), 3U);
    expect_one_roster(bus, "a", 12);
}

// J-7, J-8
TEST_P(UnderLoss, a_roster_of_many_parts_forms) {
    JobBus bus(GetParam(), 0.2);
    const std::uint16_t size = 4096;
    for (unsigned n = 0; n < 3; ++n)
        bus.add(n);
    for (Rank rank = 0; rank < size; ++rank) {
        ASSERT_EQ(bus.join(bus.node(rank % 3U), rank, size, 1U + rank), Err::kOk);
    }
    ASSERT_TRUE(bus.run(5 * kSecond, [&] { return all_formed(bus); }));
    JobView view;
    ASSERT_TRUE(bus.node(2).jobs->job(bus.node(2).ids[3], view));
    EXPECT_EQ(view.roster[4095].handle, 4096U);
    EXPECT_EQ(view.roster[4095].mac, mac_of(0));
}

// ------------------------------------------------------------------------------ refusals

TEST(JobsForming, refuses_bad_arguments_and_local_conflicts_at_once) {
    JobBus bus(1);
    BusNode& node = bus.add(1);
    EXPECT_EQ(bus.join(node, 0, 0, 1), Err::kInvalid);
    EXPECT_EQ(bus.join(node, 2, 2, 1), Err::kInvalid);
    EXPECT_EQ(bus.join(node, 0, 2, 0), Err::kInvalid);
    EXPECT_EQ(bus.join(node, 0, 2, kGroupBit | 1), Err::kInvalid);
    EXPECT_EQ(bus.join(node, 0, 2, 1, ""), Err::kInvalid);
    EXPECT_EQ(bus.join(node, 0, 2, 1, std::string(65, 'x')), Err::kInvalid);
    EXPECT_EQ(bus.join(node, 0, 2, 1, "a\nb"), Err::kInvalid);
    EXPECT_EQ(bus.join(node, 0, 65000, 1), Err::kLimit);
    ASSERT_EQ(bus.join(node, 1, 3, 1), Err::kOk);
    EXPECT_EQ(bus.join(node, 1, 3, 2), Err::kRankTaken);
    EXPECT_EQ(bus.join(node, 2, 4, 2), Err::kJobSize);
    EXPECT_EQ(bus.join(node, 2, 3, 1), Err::kInvalid) << "one endpoint, two claims";
}

TEST(JobsForming, refuses_more_jobs_than_its_limit) {
    JobBus bus(1);
    JobsConfig config;
    config.mac = mac_of(1);
    config.jobs_max = 2;
    BusNode& node = bus.add(1, config);
    EXPECT_EQ(bus.join(node, 0, 2, 1, "a"), Err::kOk);
    EXPECT_EQ(bus.join(node, 0, 2, 2, "b"), Err::kOk);
    EXPECT_EQ(bus.join(node, 0, 2, 3, "c"), Err::kLimit);
}

// A's refused join must not remove the record of B's failed job, which tells late claimants the
// reason.
TEST(JobsForming, a_refused_user_leaves_failed_jobs_of_others) {
    for (const bool greedy : {false, true}) {
        JobBus bus(1);
        JobsConfig config;
        config.mac = mac_of(1);
        config.incarnation = 1001;
        config.jobs_max = 3;
        config.user_share = 50;
        BusNode& node = bus.add(1, config);
        BusNode& second = bus.add(2);
        BusNode& late = bus.add(3);
        bus.must_join(node, 0, 3, 1, "b");  // user 0
        bus.must_join(late, 2, 3, 3, "b", 0, bus.now + 2 * kSecond);
        bus.run(20 * kMillisecond);
        late.running = false;
        bus.must_join(second, 1, 4, 2, "b");
        ASSERT_TRUE(bus.run(kSecond, [&] { return node.failed(1) == Err::kJobSize; }));
        bus.run(100 * kMillisecond);
        second.running = false;  // only the first node knows the reason
        const auto join_of_a = [&](const char* name, Handle endpoint) {
            JoinRequest request;
            request.name = name;
            request.size = 2;
            request.endpoint = endpoint;
            request.user = 7;
            const auto id = node.jobs->join(request, bus.now);
            return id.ok() ? Err::kOk : id.error();
        };
        EXPECT_EQ(join_of_a("a1", 11), Err::kOk);
        if (greedy) {
            EXPECT_EQ(join_of_a("a2", 12), Err::kLimit);
        }
        late.running = true;
        bus.run(2 * kSecond);
        EXPECT_EQ(late.failed(3), Err::kJobSize) << "greedy: " << greedy;
    }
}

// J-14
TEST_P(UnderLoss, a_rank_claimed_by_two_nodes_fails_the_forming_job_and_names_both) {
    JobBus bus(GetParam(), 0.3);
    for (unsigned n = 0; n < 4; ++n)
        bus.add(n);
    bus.must_join(bus.node(0), 0, 4, 10);
    bus.must_join(bus.node(1), 1, 4, 11);
    bus.must_join(bus.node(2), 2, 4, 12);
    bus.must_join(bus.node(3), 2, 4, 13);
    const auto all_failed = [&] {
        return bus.node(0).failed(10) == Err::kRankTaken &&
               bus.node(1).failed(11) == Err::kRankTaken &&
               bus.node(2).failed(12) == Err::kRankTaken &&
               bus.node(3).failed(13) == Err::kRankTaken;
    };
    ASSERT_TRUE(bus.run(3 * kSecond, all_failed));
    const JobEvent& event = *bus.node(3).event_of(13);
    EXPECT_EQ(std::set<Mac>({event.first, event.second}), std::set<Mac>({mac_of(2), mac_of(3)}));
    EXPECT_NE(event.text.find("02:00:00:00:00:03"), std::string::npos);
    bus.run(5 * kSecond);
    EXPECT_TRUE(bus.node(0).jobs->drained());
}

// J-14
TEST_P(UnderLoss, different_sizes_fail_the_forming_job) {
    JobBus bus(GetParam(), 0.3);
    for (unsigned n = 0; n < 3; ++n)
        bus.add(n);
    bus.must_join(bus.node(0), 0, 3, 10);
    bus.must_join(bus.node(1), 1, 3, 11);
    bus.must_join(bus.node(2), 2, 4, 12);
    EXPECT_TRUE(bus.run(3 * kSecond, [&] {
        return bus.node(0).failed(10) == Err::kJobSize && bus.node(1).failed(11) == Err::kJobSize &&
               bus.node(2).failed(12) == Err::kJobSize;
    }));
}

// J-14
TEST_P(UnderLoss, different_profiles_fail_the_forming_job) {
    JobBus bus(GetParam(), 0.3);
    for (unsigned n = 0; n < 3; ++n)
        bus.add(n);
    bus.must_join(bus.node(0), 0, 3, 10, "job", 0, kNever, "gbn");
    bus.must_join(bus.node(1), 1, 3, 11, "job", 0, kNever, "gbn");
    bus.must_join(bus.node(2), 2, 3, 12, "job", 0, kNever, "gbn+eager");
    EXPECT_TRUE(bus.run(3 * kSecond, [&] {
        return bus.node(0).failed(10) == Err::kProfile && bus.node(1).failed(11) == Err::kProfile &&
               bus.node(2).failed(12) == Err::kProfile;
    }));
}

TEST(JobsForming, tells_every_rank_the_profile_and_refuses_another_one_at_once) {
    JobBus bus(1);
    BusNode& a = bus.add(1);
    BusNode& b = bus.add(2);
    ASSERT_EQ(bus.join(a, 0, 3, 10, "job", 0, kNever, "gbn"), Err::kOk);
    EXPECT_EQ(bus.join(a, 1, 3, 11, "job", 0, kNever, "lazy"), Err::kProfile);
    EXPECT_EQ(bus.join(a, 1, 3, 11, "job", 0, kNever, "Not A Profile"), Err::kInvalid);
    ASSERT_EQ(bus.join(a, 1, 3, 11, "job", 0, kNever, "gbn"), Err::kOk);
    ASSERT_EQ(bus.join(b, 2, 3, 12, "job", 0, kNever, "gbn"), Err::kOk);
    ASSERT_TRUE(bus.run(kMillisecond * 10, [&] { return all_formed(bus); }));
    JobView view;
    ASSERT_TRUE(b.jobs->job(b.ids[12], view));
    EXPECT_EQ(view.profile, "gbn");
}

// J-15
TEST_P(UnderLoss, two_rank_0_of_one_name_both_fail) {
    JobBus bus(GetParam(), 0.3);
    for (unsigned n = 0; n < 2; ++n)
        bus.add(n);
    bus.must_join(bus.node(0), 0, 3, 10);
    bus.must_join(bus.node(1), 0, 3, 11);
    EXPECT_TRUE(bus.run(3 * kSecond, [&] {
        return bus.node(0).failed(10) == Err::kTwoRosters &&
               bus.node(1).failed(11) == Err::kTwoRosters;
    }));
}

// J-17
TEST_P(UnderLoss, a_formed_job_is_not_disturbed_by_later_claims) {
    JobBus bus(GetParam(), 0.3);
    for (unsigned n = 0; n < 3; ++n)
        bus.add(n);
    bus.must_join(bus.node(0), 0, 2, 10);
    bus.must_join(bus.node(1), 1, 2, 11);
    ASSERT_TRUE(bus.run(3 * kSecond, [&] { return all_formed(bus); }));
    bus.must_join(bus.node(2), 0, 2, 20);
    ASSERT_TRUE(bus.run(3 * kSecond, [&] { return bus.node(2).failed(20) == Err::kTwoRosters; }));
    bus.run(10 * kMillisecond);  // a rejection of the first attempt may still arrive
    bus.must_join(bus.node(2), 1, 2, 21);
    ASSERT_TRUE(bus.run(3 * kSecond, [&] { return bus.node(2).failed(21) == Err::kRankTaken; }));
    bus.run(10 * kMillisecond);
    bus.must_join(bus.node(2), 1, 5, 22);
    ASSERT_TRUE(bus.run(3 * kSecond, [&] { return bus.node(2).failed(22) == Err::kJobSize; }));
    EXPECT_EQ(bus.join(bus.node(0), 0, 2, 30), Err::kTwoRosters);
    EXPECT_EQ(bus.join(bus.node(1), 1, 2, 31), Err::kRankTaken);
    bus.must_join(bus.node(2), 0, 2, 23, "job", 1);
    bus.run(kSecond);
    EXPECT_EQ(bus.node(2).event_of(23), nullptr) << "another nonce is another job";
    EXPECT_EQ(bus.node(0).events.size(), 1U);
    EXPECT_EQ(bus.node(1).events.size(), 1U);
}

// H-13, H-14, J-16, J-17
TEST_P(UnderLoss, a_claimant_of_another_version_fails_alone_and_may_be_replaced) {
    JobBus bus(GetParam(), 0.3);
    bus.add(0);
    JobsConfig newer;
    newer.mac = mac_of(1);
    newer.version_min = wire::kProtocolVersion + 1;
    newer.version_max = wire::kProtocolVersion + 3;
    bus.add(1, newer);
    bus.add(2);
    bus.must_join(bus.node(0), 0, 2, 10);
    bus.must_join(bus.node(1), 1, 2, 11);
    ASSERT_TRUE(bus.run(3 * kSecond, [&] { return bus.node(1).failed(11) == Err::kVersion; }));
    EXPECT_EQ(bus.node(0).event_of(10), nullptr);
    bus.must_join(bus.node(2), 1, 2, 12);
    EXPECT_TRUE(bus.run(3 * kSecond, [&] { return bus.node(0).formed(10); }));
}

// J-4, J-39
TEST(JobsForming, a_job_has_the_least_mtu_of_its_nodes_and_no_frame_is_longer) {
    constexpr std::uint16_t kRanks = 300;  // of one node: claims and roster need several frames
    constexpr std::uint16_t kMtus[] = {9000, 576, 4000};
    for (const unsigned publisher : {0U, 1U, 2U}) {
        JobBus bus(publisher);
        for (unsigned n = 0; n < 3; ++n) {
            JobsConfig config;
            config.mac = mac_of(n);
            config.seed = n;
            config.mtu = kMtus[(n + publisher) % 3];
            bus.add(n, config);
        }
        bus.must_join(bus.node(0), 0, kRanks + 2, 10);
        bus.must_join(bus.node(1), 1, kRanks + 2, 11);
        for (Rank rank = 2; rank < kRanks + 2; ++rank)
            bus.must_join(bus.node(2), rank, kRanks + 2, Handle{100} + rank);
        ASSERT_TRUE(bus.run(5 * kSecond, [&] { return all_formed(bus); })) << bus.describe();
        EXPECT_EQ(bus.too_long, 0U);
        for (unsigned n = 0; n < 3; ++n) {
            JobView view;
            ASSERT_TRUE(bus.node(n).jobs->job(bus.node(n).ids.begin()->second, view));
            EXPECT_EQ(view.mtu, 576);
            EXPECT_FALSE(view.has_bonds);
        }
    }
}

// J-39
TEST(JobsForming, an_mtu_that_fell_counts_for_the_next_job) {
    JobBus bus(2);
    for (unsigned n = 0; n < 2; ++n)
        bus.add(n);
    for (const std::uint16_t mtu : {1500, 1400, 1500}) {
        bus.node(1).jobs->set_mtu(mtu);
        const Handle endpoint = 10 + mtu;
        for (unsigned n = 0; n < 2; ++n)
            bus.must_join(bus.node(n), static_cast<Rank>(n), 2, endpoint);
        ASSERT_TRUE(bus.run(kSecond, [&] { return bus.node(1).formed(endpoint); }));
        for (unsigned n = 0; n < 2; ++n) {
            JobView view;
            ASSERT_TRUE(bus.node(n).jobs->job(bus.node(n).ids[endpoint], view));
            EXPECT_EQ(view.mtu, mtu);
            bus.leave(bus.node(n), endpoint, wire::LeaveReason::kLeft);
        }
        bus.run(kSecond);
        for (unsigned n = 0; n < 2; ++n)
            bus.node(n).events.clear();
    }
}

/// Nodes whose interfaces take 9000 bytes, and a rank on each.
void join_long(JobBus& bus, unsigned nodes) {
    for (unsigned n = 0; n < nodes; ++n) {
        JobsConfig config;
        config.mac = mac_of(n);
        config.seed = n;
        config.mtu = 9000;
        bus.add(n, config);
        bus.must_join(bus.node(n), static_cast<Rank>(n), static_cast<std::uint16_t>(nodes), 10 + n);
    }
}

void expect_mtu(JobBus& bus, std::uint16_t mtu) {
    for (unsigned n = 0; n < bus.size(); ++n) {
        JobView view;
        ASSERT_TRUE(bus.node(n).jobs->job(bus.node(n).ids[10 + n], view));
        EXPECT_EQ(view.mtu, mtu) << "node " << n;
    }
}

// J-43, J-44
TEST(JobsForming, a_switch_port_of_a_smaller_mtu_is_found) {
    for (const unsigned narrow : {0U, 1U, 2U}) {
        for (const bool sends : {false, true}) {
            JobBus bus(4);
            (sends ? bus.passes_from : bus.passes_to)[narrow] = 1500;
            join_long(bus, 3);
            ASSERT_TRUE(bus.run(kSecond, [&] { return all_formed(bus); })) << bus.describe();
            expect_mtu(bus, 1500);
            std::string text;
            for (const JobEvent& event : bus.node(0).events)
                if (event.kind == JobEventKind::kShortened) text = event.text;
            EXPECT_NE(text.find("frames of 9000 bytes"), std::string::npos) << text;
            EXPECT_NE(text.find("on the nodes"), std::string::npos) << "it is cut: " << text;
        }
    }
}

// J-44
TEST(JobsForming, a_tunnel_that_is_narrower_than_an_ethernet_is_found) {
    for (const bool narrow : {false, true}) {
        JobBus bus(6);
        for (unsigned n = 0; n < 3; ++n) {
            JobsConfig config;
            config.mac = mac_of(n);
            config.incarnation = n + 1;
            config.seed = n;
            config.mtu = 1468;
            config.mtu_sure = 1248;
            bus.add(n, config);
            bus.must_join(bus.node(n), static_cast<Rank>(n), 3, 10 + n);
        }
        if (narrow) bus.passes_to[1] = 1400;
        ASSERT_TRUE(bus.run(kSecond, [&] { return all_formed(bus); })) << bus.describe();
        expect_mtu(bus, narrow ? 1248 : 1468);
    }
}

// J-44
TEST(JobsForming, long_frames_that_pass_are_used) {
    JobBus bus(5);
    join_long(bus, 3);
    ASSERT_TRUE(bus.run(20 * kMillisecond, [&] { return all_formed(bus); })) << bus.describe();
    expect_mtu(bus, 9000);
}

// J-44
TEST_P(UnderLoss, long_jobs_form_whether_long_frames_pass_or_not) {
    for (const bool narrow : {false, true}) {
        JobBus bus(GetParam(), 0.3, 0.2);
        if (narrow) bus.passes_to[1] = 1500;
        join_long(bus, 4);
        ASSERT_TRUE(bus.run(5 * kSecond, [&] { return all_formed(bus); })) << bus.describe();
        JobView first;
        ASSERT_TRUE(bus.node(0).jobs->job(bus.node(0).ids[10], first));
        EXPECT_TRUE(first.mtu == 1500 || (!narrow && first.mtu == 9000));
        expect_mtu(bus, first.mtu);
    }
}

// J-37, J-40
TEST(JobsForming, a_roster_tells_that_a_node_has_several_links) {
    for (unsigned bonded = 0; bonded < 3; ++bonded) {
        JobBus bus(9);
        for (unsigned n = 0; n < 3; ++n) {
            bus.add(n);
            const NodeAddress links[] = {{mac_of(n), 100}, {mac_of(100 + n), 100}};
            bus.node(n).jobs->set_links(std::span(links, n == bonded ? 2 : 1), bus.now);
            bus.must_join(bus.node(n), static_cast<Rank>(n), 3, 10 + n);
        }
        ASSERT_TRUE(bus.run(kSecond, [&] { return all_formed(bus); }));
        for (unsigned n = 0; n < 3; ++n) {
            JobView view;
            ASSERT_TRUE(bus.node(n).jobs->job(bus.node(n).ids[10 + n], view));
            EXPECT_TRUE(view.has_bonds) << "of node " << bonded << ", as node " << n << " has it";
            EXPECT_EQ(view.mtu, 1500);
        }
    }
}

// H-14
TEST(JobsForming, the_highest_common_version_is_chosen) {
    JobBus bus(4);
    for (unsigned n = 0; n < 3; ++n) {
        JobsConfig config;
        config.mac = mac_of(n);
        config.version_max = static_cast<std::uint8_t>(wire::kProtocolVersion + 5 - n);
        bus.add(n, config);
        bus.must_join(bus.node(n), static_cast<Rank>(n), 3, 10 + n);
    }
    ASSERT_TRUE(bus.run(kSecond, [&] { return all_formed(bus); }));
    JobView view;
    ASSERT_TRUE(bus.node(1).jobs->job(bus.node(1).ids[11], view));
    EXPECT_EQ(view.version, wire::kProtocolVersion + 3);
}

}  // namespace
}  // namespace ulc::jobs
