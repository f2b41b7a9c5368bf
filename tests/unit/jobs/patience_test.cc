// SPDX-License-Identifier: BSD-3-Clause
// How long nodes that lose their processor are waited for: jobs/liveness.h, NODES.md N-10 and N-50.
#include <gtest/gtest.h>

#include "tests/unit/jobs/formed.h"

namespace ulc::jobs {
namespace {

/// Keeps a node from the processor for that long.
void take_away(JobBus& bus, unsigned node, Nanos time) {
    bus.node(node).running = false;
    bus.run(time);
    bus.node(node).running = true;
}

// N-50
TEST_P(Formed, a_node_that_was_away_before_is_given_longer_and_its_neighbour_is_not) {
    JobBus bus(GetParam());
    form(bus, 3);
    for (const Nanos away : {1500 * kMillisecond, 3 * kSecond, 8 * kSecond}) {
        bus.run(kSecond);
        take_away(bus, 2, away);
    }
    bus.run(kSecond);
    for (unsigned i = 0; i < 3; ++i)
        EXPECT_EQ(bus.node(i).events.size(), 1U) << "node " << i;
    bus.node(1).running = false;
    bus.run(2 * kSecond + 500 * kMillisecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 1U) << "it was always prompt";
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 2), 0U);
    bus.node(2).running = false;
    bus.run(65 * kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 2), 1U) << "patience ends";
}

// N-50
TEST_P(Formed, a_job_with_patience_waits_for_a_node_that_was_always_prompt) {
    JobBus bus(GetParam());
    bus.patience = 15 * kSecond;
    form(bus, 3);
    bus.run(kSecond);
    take_away(bus, 2, 10 * kSecond);
    bus.run(kSecond);
    for (unsigned i = 0; i < 3; ++i)
        EXPECT_EQ(bus.node(i).events.size(), 1U) << "node " << i;
    bus.node(1).running = false;
    bus.run(14 * kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 0U);
    bus.run(2 * kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 1U);
}

// N-50
TEST_P(Formed, an_absence_is_forgotten_after_a_minute_of_promptness) {
    JobBus bus(GetParam());
    form(bus, 3);
    take_away(bus, 2, 1800 * kMillisecond);
    bus.run(60 * kSecond);
    bus.node(2).running = false;
    bus.run(2 * kSecond + 500 * kMillisecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 2), 1U);
}

// N-50
TEST_P(Formed, the_absence_of_this_engine_is_not_that_of_others) {
    JobBus bus(GetParam());
    form(bus, 3);
    // It goes while node 2 has not answered: half a second is node 2's, the rest its own.
    bus.cut = &bus.node(2);
    bus.run(500 * kMillisecond);
    bus.cut = nullptr;
    take_away(bus, 0, 1500 * kMillisecond);
    bus.run(kSecond);
    bus.node(2).running = false;
    bus.run(2 * kSecond + 500 * kMillisecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 2), 1U);
}

/// Node 1 is heard for that long, and answers nothing.
void hear_node_1(JobBus& bus, Nanos time) {
    for (const Nanos end = bus.now + time; bus.now < end; bus.run(50 * kMillisecond))
        bus.inject_echo(bus.node(0), bus.node(1).config.mac);
}

// N-50
TEST_P(Formed, a_node_is_not_judged_by_the_time_in_which_this_engine_was_away) {
    JobBus bus(GetParam());
    form(bus, 2);
    take_away(bus, 0, 1700 * kMillisecond);
    // Node 1 is away for a while when node 0 comes back.
    take_away(bus, 1, 1500 * kMillisecond);
    bus.run(kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 0U);
    bus.node(1).running = false;
    bus.run(6 * kSecond + 500 * kMillisecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 1U) << "it is, by the rest";
}

// N-50
TEST_P(Formed, a_deaf_node_is_not_judged_by_the_time_in_which_this_engine_was_away) {
    JobBus bus(GetParam());
    form(bus, 2);
    bus.node(1).running = false;
    bus.run(300 * kMillisecond);
    hear_node_1(bus, 500 * kMillisecond);
    take_away(bus, 0, 1700 * kMillisecond);
    hear_node_1(bus, 1100 * kMillisecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 0U);
    hear_node_1(bus, kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 1U);
}

// N-50
TEST_P(Formed, an_absence_of_this_engine_excuses_no_later_silence) {
    JobBus bus(GetParam());
    form(bus, 2);
    take_away(bus, 0, 1700 * kMillisecond);
    bus.run(kSecond);
    hear_node_1(bus, 50 * kMillisecond);
    bus.node(1).running = false;
    bus.run(2150 * kMillisecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 1U);
}

// N-61
TEST_P(Formed, an_engine_that_returns_just_before_the_verdict_is_heard) {
    for (const bool keeps : {false, true}) {
        SCOPED_TRACE(keeps ? "its NIC kept what came" : "its NIC lost what came");
        unsigned deaths = 0;
        constexpr unsigned kTrials = 50;
        for (unsigned trial = 0; trial < kTrials; ++trial) {
            JobBus bus(1000 * GetParam() + trial);
            form(bus, 2);
            bus.node(1).keeps = keeps;
            bus.set_loss(0.2);
            bus.node(1).running = false;
            // Node 0 hears nothing from now on, and judges 2 s later.
            bus.run(1990 * kMillisecond);
            bus.node(1).running = true;
            bus.run(kSecond);
            deaths += static_cast<unsigned>(bus.node(0).count(JobEventKind::kPeerDied, 1));
        }
        EXPECT_LE(deaths, 1U) << "of " << kTrials;
    }
}

// An engine tells its clients of an absence for which others may have ended their ranks.
TEST_P(Formed, a_long_absence_of_this_engine_is_known_for_ten_seconds) {
    JobBus bus(GetParam());
    const auto absence = [&](unsigned node) {
        return bus.node(node).jobs->own_absence(bus.node(node).ids.begin()->second, bus.now);
    };
    form(bus, 3);
    bus.run(kSecond);
    take_away(bus, 1, kSecond);
    bus.run(kMillisecond);
    EXPECT_EQ(absence(1), 0) << "no node takes another for dead so soon";
    take_away(bus, 1, 3 * kSecond);
    bus.run(kMillisecond);
    EXPECT_NEAR(static_cast<double>(absence(1)), 3e9, 5e7);
    take_away(bus, 1, 1600 * kMillisecond);
    bus.run(7 * kSecond);
    EXPECT_NEAR(static_cast<double>(absence(1)), 3e9, 5e7) << "the longest counts";
    EXPECT_EQ(absence(0), 0);
    bus.run(4 * kSecond);
    EXPECT_EQ(absence(1), 0);
}

TEST_P(Formed, an_absence_shorter_than_a_jobs_patience_explains_nothing) {
    JobBus bus(GetParam());
    bus.patience = 15 * kSecond;
    form(bus, 2);
    take_away(bus, 1, 5 * kSecond);
    bus.run(kMillisecond);
    EXPECT_EQ(bus.node(1).jobs->own_absence(bus.node(1).ids.begin()->second, bus.now), 0);
    take_away(bus, 1, 14 * kSecond);
    bus.run(kMillisecond);
    EXPECT_GT(bus.node(1).jobs->own_absence(bus.node(1).ids.begin()->second, bus.now), 0);
}

// N-50, J-47
TEST_P(Formed, the_patience_of_one_rank_counts_at_all_nodes_of_its_job) {
    for (const unsigned patient : {0U, 1U}) {  // rank 0 publishes the roster
        SCOPED_TRACE(patient);
        JobBus bus(GetParam(), 0.1);
        for (unsigned i = 0; i < 3; ++i) {
            bus.add(i);
            bus.patience = i == patient ? 15 * kSecond : 0;
            bus.must_join(bus.node(i), static_cast<Rank>(i), std::uint16_t{3}, kFirstEndpoint + i);
        }
        bus.run(kSecond);
        take_away(bus, patient, 14 * kSecond);
        bus.run(kSecond);
        for (unsigned i = 0; i < 3; ++i)
            EXPECT_EQ(bus.node(i).events.size(), 1U) << "node " << i;
        bus.node(patient).running = false;
        bus.run(65 * kSecond);
        EXPECT_EQ(bus.node(2).count(JobEventKind::kPeerDied, static_cast<Rank>(patient)), 1U);
    }
}

// N-50
TEST_P(Formed, the_patience_of_one_job_does_not_keep_another_from_its_verdict) {
    JobBus bus(GetParam());
    form(bus, 2);
    bus.patience = 15 * kSecond;
    for (unsigned i = 0; i < 2; ++i)
        bus.must_join(bus.node(i), static_cast<Rank>(i), std::uint16_t{2}, 20 + i, "patient");
    ASSERT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(20) && bus.node(1).formed(21); }));
    const auto deaths = [&] { return bus.node(0).count(JobEventKind::kPeerDied, 1); };
    bus.node(1).running = false;
    bus.run(2 * kSecond + 500 * kMillisecond);
    EXPECT_EQ(deaths(), 1U);
    bus.run(12 * kSecond);
    EXPECT_EQ(deaths(), 1U);
    bus.run(2 * kSecond);
    EXPECT_EQ(deaths(), 2U) << "15 s, and a sixteenth";
}

// N-50
TEST_P(Formed, a_node_that_one_job_gave_up_goes_on_in_the_patient_one) {
    JobBus bus(GetParam());
    form(bus, 2);
    bus.patience = 15 * kSecond;
    for (unsigned i = 0; i < 2; ++i)
        bus.must_join(bus.node(i), static_cast<Rank>(i), std::uint16_t{2}, 20 + i, "patient");
    bus.run(kSecond);
    take_away(bus, 1, 10 * kSecond);
    bus.run(kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 1U) << "of the job without patience";
    bus.node(1).running = false;
    bus.run(14 * kSecond);
    EXPECT_EQ(bus.node(0).count(JobEventKind::kPeerDied, 1), 1U) << "the silence begins again";
}

}  // namespace
}  // namespace ulc::jobs
