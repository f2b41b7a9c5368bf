// SPDX-License-Identifier: BSD-3-Clause
// Rules of docs/protocol/JOBS.md and NODES.md that the other tests of jobs/ do not single out.
#include <gtest/gtest.h>

#include "tests/unit/jobs/bus.h"

namespace ulc::jobs {
namespace {

constexpr std::uint8_t kNonce = 7;
constexpr Handle kEndpoint = 100;

bool is_formed(JobBus& bus, std::size_t nodes) {
    for (std::size_t i = 0; i < nodes; ++i)
        if (!bus.node(i).formed(kEndpoint + static_cast<Handle>(i))) return false;
    return true;
}

/// One frame of the log, or nothing if it is no JOB frame.
struct Logged {
    wire::FrameView frame;
    wire::JobBodyView body;
    bool is_job = false;

    explicit Logged(const std::vector<std::byte>& octets) {
        is_job = wire::parse(octets.data(), octets.size(), wire::kEtherTypeDefault, frame) ==
                     Counter::kCount &&
                 frame.type == wire::FrameType::kJob &&
                 wire::parse_job(frame.body, frame.length, body);
    }
};

// J-2
TEST(JobsRules, a_job_by_hand_and_one_of_a_launcher_never_meet) {
    for (const std::uint8_t first : {std::uint8_t{0}, kNonce}) {
        JobBus bus(1);
        const std::uint8_t second = first == 0 ? kNonce : 0;
        bus.must_join(bus.add(0), 0, 2, kEndpoint, "job", first);
        bus.must_join(bus.add(1), 1, 2, kEndpoint + 1, "job", second);
        bus.run(5 * kSecond);
        EXPECT_EQ(bus.node(0).event_of(kEndpoint), nullptr) << bus.describe();
        EXPECT_EQ(bus.node(1).event_of(kEndpoint + 1), nullptr) << bus.describe();
    }
}

/// Forms a job of two on new endpoints. Returns the answer to rank 0's join.
Err form(JobBus& bus, unsigned number) {
    const Handle endpoint = kEndpoint + 2 * number;
    const std::string name = "job" + std::to_string(number);
    if (const Err error = bus.join(bus.node(0), 0, 2, endpoint, name); error != Err::kOk)
        return error;
    bus.must_join(bus.node(1), 1, 2, endpoint + 1, name);
    EXPECT_TRUE(bus.run(kSecond, [&] {
        return bus.node(0).formed(endpoint) && bus.node(1).formed(endpoint + 1);
    })) << bus.describe();
    return Err::kOk;
}

/// Two nodes, the first of which has few records of jobs.
void add_two(JobBus& bus, std::uint16_t jobs_max, std::uint32_t share) {
    JobsConfig config;
    config.mac = mac_of(0);
    config.incarnation = 1000;
    config.jobs_max = jobs_max;
    config.user_share = share;
    bus.add(0, config);
    bus.add(1);
}

TEST(JobsRules, jobs_that_have_ended_refuse_no_other_one) {
    constexpr unsigned kJobs = 40;
    for (const std::uint32_t share : {50U, 100U}) {
        JobBus bus(1);
        add_two(bus, 4, share);
        const Nanos begun = bus.now;
        for (unsigned n = 0; n < kJobs; ++n) {
            ASSERT_EQ(form(bus, n), Err::kOk) << "share " << share << ", job " << n;
            bus.leave(bus.node(0), kEndpoint + 2 * n, wire::LeaveReason::kLeft);
            ASSERT_TRUE(bus.run(kSecond, [&] {
                return bus.node(1).count(JobEventKind::kPeerLeft, 0) == n + 1;
            })) << bus.describe();
            bus.leave(bus.node(1), kEndpoint + 2 * n + 1, wire::LeaveReason::kLeft);
        }
        const Nanos byes = 7 * JobsConfig{}.bye_wait;  // those of one job
        EXPECT_LT(bus.now - begun, kJobs / 4 * byes) << "too slow to test anything";
    }
}

// Each peer is notified once at least.
TEST(JobsRules, a_job_whose_end_was_not_told_yet_keeps_its_record) {
    JobBus bus(1);
    add_two(bus, 1, 100);
    ASSERT_EQ(form(bus, 0), Err::kOk);
    bus.run(100 * kMillisecond);  // nothing but the end is left to tell
    bus.leave(bus.node(0), kEndpoint, wire::LeaveReason::kLeft);
    EXPECT_EQ(form(bus, 1), Err::kLimit);
    bus.run(kMillisecond);
    EXPECT_EQ(bus.node(1).count(JobEventKind::kPeerLeft, 0), 1U);
    EXPECT_EQ(form(bus, 2), Err::kOk);
}

// J-3
TEST(JobsRules, frames_go_to_those_that_they_are_for) {
    JobBus bus(2);
    bus.logs = true;
    for (unsigned n = 0; n < 3; ++n)
        bus.must_join(bus.add(n), static_cast<Rank>(n), 3, kEndpoint + n);
    ASSERT_TRUE(bus.run(kSecond, [&] { return is_formed(bus, 3); }));
    bus.must_join(bus.add(3), 2, 3, kEndpoint + 3);  // refused alone: the job has formed
    bus.run(200 * kMillisecond);
    bus.leave(bus.node(2), kEndpoint + 2, wire::LeaveReason::kLeft);
    bus.run(kSecond);
    std::map<wire::JobKind, unsigned> seen;
    for (const std::vector<std::byte>& octets : bus.log) {
        const Logged logged(octets);
        if (!logged.is_job) continue;
        ++seen[logged.body.kind];
        switch (logged.body.kind) {
            case wire::JobKind::kJoin:
                EXPECT_EQ(logged.frame.destination,
                          logged.body.introduces ? mac_of(3) : kBroadcastMac);
                break;
            case wire::JobKind::kRoster:
            case wire::JobKind::kCommit:
            case wire::JobKind::kBye:
                EXPECT_EQ(logged.frame.destination, kBroadcastMac);
                break;
            case wire::JobKind::kRosterAck:
                EXPECT_EQ(logged.frame.destination, mac_of(0));
                break;
            case wire::JobKind::kReject:
                EXPECT_EQ(logged.body.reject->scope, wire::RejectScope::kClaim);
                EXPECT_EQ(logged.frame.destination, mac_of(3));
                break;
        }
    }
    EXPECT_EQ(seen.size(), 6U) << "every kind was sent";
}

/// Leaves a job of a launcher on two nodes, and gives its COMMIT.
std::vector<std::byte> commit_of_an_ended_job(JobBus& bus, unsigned number) {
    const std::string name = "job" + std::to_string(number);
    for (unsigned n = 0; n < 2; ++n) {
        bus.node(n).events.clear();
        bus.must_join(bus.node(n), static_cast<Rank>(n), 2, kEndpoint + n, name,
                      static_cast<std::uint8_t>(number + 1));
    }
    EXPECT_TRUE(bus.run(kSecond, [&] { return is_formed(bus, 2); }));
    for (unsigned n = 0; n < 2; ++n)
        bus.leave(bus.node(n), kEndpoint + n, wire::LeaveReason::kLeft);
    EXPECT_TRUE(bus.run(
        5 * kSecond, [&] { return bus.node(0).jobs->drained() && bus.node(1).jobs->drained(); }));
    std::vector<std::byte> commit;
    for (const std::vector<std::byte>& octets : bus.log) {
        const Logged logged(octets);
        if (logged.is_job && logged.body.kind == wire::JobKind::kCommit)
            commit.assign(logged.frame.body, logged.frame.body + logged.frame.length);
    }
    bus.log.clear();
    return commit;
}

// J-34
TEST(JobsRules, a_late_commit_of_the_last_64_jobs_is_answered) {
    JobBus bus(3);
    bus.logs = true;
    bus.add(0);
    bus.add(1);
    std::vector<std::vector<std::byte>> commits;
    for (unsigned number = 0; number < 65; ++number)
        commits.push_back(commit_of_an_ended_job(bus, number));
    const auto answers_to = [&](const std::vector<std::byte>& commit) {
        bus.kinds_sent.clear();
        bus.inject(bus.node(1), mac_of(0), wire::FrameType::kJob, commit);
        bus.run(kMillisecond);
        return bus.kinds_sent[wire::JobKind::kRosterAck];
    };
    EXPECT_EQ(answers_to(commits[0]), 0U) << "its key is forgotten";
    EXPECT_EQ(answers_to(commits[1]), 1U);
    EXPECT_EQ(answers_to(commits[64]), 1U);
}

// N-12
TEST(JobsRules, the_verdict_of_the_transport_ends_all_ranks_of_the_node) {
    JobBus bus(4);
    BusNode& zero = bus.add(0);
    BusNode& one = bus.add(1);
    bus.must_join(zero, 0, 3, kEndpoint);
    bus.must_join(one, 1, 3, kEndpoint + 1);
    bus.must_join(one, 2, 3, kEndpoint + 2);
    ASSERT_TRUE(bus.run(kSecond, [&] { return zero.formed(kEndpoint); }));
    zero.jobs->peer_died(zero.ids[kEndpoint], 2, bus.now);
    bus.run(kMillisecond);
    EXPECT_EQ(zero.count(JobEventKind::kPeerDied, 1), 1U) << bus.describe();
    EXPECT_EQ(zero.count(JobEventKind::kPeerDied, 2), 1U) << bus.describe();
}

}  // namespace
}  // namespace ulc::jobs
