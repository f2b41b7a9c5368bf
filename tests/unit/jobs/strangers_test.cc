// SPDX-License-Identifier: BSD-3-Clause
// The work for frames of strangers, and for questions and hints of peers, does not grow with the
// jobs and links of an engine. It is counted in places of tables and records that were visited.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/jobs/linked.h"
#include "wire/job_key.h"

namespace ulc::jobs {
namespace {

constexpr unsigned kJobs = 512;
constexpr unsigned kFrames = 10'000;
constexpr double kStepsMax = 16;  ///< a frame; tables that are half empty need two or three
constexpr unsigned kStranger = 66;

using Octets = std::vector<std::byte>;

wire::Nonce nonce_of(std::uint64_t number) {
    wire::Nonce nonce;
    std::memcpy(nonce.octets.data(), &number, sizeof number);
    nonce.octets[15] = 1;
    return nonce;
}

/// A node with 512 jobs that form, each second one of a launcher.
class Strangers : public ::testing::Test {
protected:
    explicit Strangers(unsigned jobs = kJobs) {
        JobsConfig config;
        config.mac = mac_of(0);
        config.incarnation = 1000;
        config.seed = 0x5eed;
        config.jobs_max = kJobs;
        node = &bus.add(0, config);
        for (unsigned n = 0; n < jobs; ++n) {
            JoinRequest request;
            const std::string name = "job" + std::to_string(n);
            request.name = name;
            if (n % 2 == 1) request.nonce = nonce_of(n);
            request.rank = 1;
            request.size = 2;
            request.endpoint = kEndpoint + n;
            request.profile = urtp::kDefaultProfile;
            ULC_CHECK(node->jobs->join(request, bus.now).ok());
        }
        settle();
    }
    void settle() {
        std::byte frame[2000];
        while (node->jobs->next_tx(frame, sizeof frame, bus.now) > 0) {
        }
    }
    /// Returns the places that a frame of that kind has visited, in the mean.
    template <typename Make>
    double steps_of(const Mac& source, const Make& make) {
        std::uint64_t steps = 0;
        for (unsigned n = 0; n < kFrames; ++n) {
            const Octets body = make(n);
            const std::uint64_t before = node->jobs->steps();
            bus.inject(*node, source, wire::FrameType::kJob, body);
            steps += node->jobs->steps() - before;
        }
        settle();
        return static_cast<double>(steps) / kFrames;
    }
    /// A frame of a job that is unknown here, or of job `known` by hand.
    template <typename Put>
    static Octets body_of(wire::JobKind kind, unsigned n, bool by_hand, const Put& put,
                          unsigned known = kJobs) {
        const std::string name = "job" + std::to_string(known == kJobs ? kJobs + n : known);
        const bool nameless = by_hand && kind == wire::JobKind::kJoin;
        const wire::JobHead head =
            wire::job_head(kind, name, nameless ? wire::Nonce{} : nonce_of(kJobs + n), by_hand);
        Octets body(2000);
        body.resize(put(body.data(), head) + (by_hand ? 0 : sizeof(wire::JobTag)));
        return body;
    }
    static std::size_t put_bye(std::byte* body, const wire::JobHead& head) {
        wire::ByeBody bye{};
        bye.rank = Rank{0};
        bye.reason = wire::LeaveReason::kLeft;
        bye.handle = 4711U;
        return wire::put_bye(body, head, bye);
    }
    static std::size_t put_join(std::byte* body, const wire::JobHead& head) {
        wire::JoinBody join{};
        join.size = std::uint16_t{2};
        join.version_min = join.version_max = wire::kProtocolVersion;
        join.incarnation = 5U;
        join.claims = std::uint16_t{1};
        join.profile = wire::profile_field("urtp");
        wire::JoinClaim claim{};
        claim.handle = 4711U;
        return wire::put_join(body, head, join, std::span(&claim, 1));
    }
    static std::size_t put_reject(std::byte* body, const wire::JobHead& head) {
        wire::RejectBody reject{};
        reject.error = static_cast<std::uint32_t>(Err::kRankTaken);
        reject.scope = wire::RejectScope::kJob;
        return wire::put_reject(body, head, reject);
    }
    static std::size_t put_commit(std::byte* body, const wire::JobHead& head) {
        wire::CommitBody commit{};
        commit.roster = 7U;
        return wire::put_commit(body, head, commit);
    }
    /// Names an endpoint here of another job for each rank.
    std::size_t put_roster(std::byte* body, const wire::JobHead& head) const {
        wire::RosterBody roster{};
        roster.roster = 7U;
        roster.world = kGroupBit | 5U;
        roster.size = roster.entries = std::uint16_t{2};
        roster.parts = std::uint16_t{1};
        roster.version = wire::kProtocolVersion;
        roster.mtu = std::uint16_t{1500};
        wire::RosterEntry entries[2];
        for (unsigned rank = 0; rank < 2; ++rank) {
            entries[rank].attribute_octets = 0;
            entries[rank].mac = node->config.mac;
            entries[rank].handle = kEndpoint + kJobs - 1 - rank;
            entries[rank].incarnation = node->config.incarnation;
        }
        return wire::put_roster(body, head, roster, entries);
    }

    JobBus bus{1};
    BusNode* node = nullptr;
};

TEST_F(Strangers, frames_of_unknown_jobs_cost_the_same_whatever_jobs_there_are) {
    const Mac stranger = mac_of(kStranger);
    for (const bool by_hand : {false, true}) {
        const auto steps = [&](wire::JobKind kind, const auto& put) {
            return steps_of(stranger, [&](unsigned n) { return body_of(kind, n, by_hand, put); });
        };
        EXPECT_LT(steps(wire::JobKind::kJoin, put_join), kStepsMax) << by_hand;
        EXPECT_LT(steps(wire::JobKind::kBye, put_bye), kStepsMax) << by_hand;
        EXPECT_LT(steps(wire::JobKind::kReject, put_reject), kStepsMax) << by_hand;
        EXPECT_LT(steps(wire::JobKind::kCommit, put_commit), kStepsMax) << by_hand;
        EXPECT_LT(steps(wire::JobKind::kRoster,
                        [&](std::byte* body, const wire::JobHead& head) {
                            return put_roster(body, head);
                        }),
                  kStepsMax)
            << by_hand;
    }
}

// Names of jobs by hand stand in each of their frames.
TEST_F(Strangers, frames_that_name_a_job_cost_the_same_whatever_others_there_are) {
    const double steps = steps_of(mac_of(kStranger), [](unsigned n) {
        return body_of(wire::JobKind::kBye, n, true, put_bye, n % kJobs / 2 * 2);
    });
    EXPECT_LT(steps, kStepsMax);
}

TEST_F(Strangers, frames_with_our_address_cost_the_same_whatever_jobs_there_are) {
    for (const unsigned known : {kJobs, 0U}) {
        const double steps = steps_of(node->config.mac, [&](unsigned n) {
            return body_of(wire::JobKind::kJoin, n, true, put_join, known);
        });
        EXPECT_LT(steps, kStepsMax) << known;
    }
}

/// A node with 512 jobs whose rank 0 is at one other node.
class Peers : public ::testing::Test {
protected:
    static constexpr Handle kTheirs = 10'000;
    static constexpr unsigned kQuestions = 2 * kJobs;

    Peers() {
        for (unsigned n = 0; n < 2; ++n) {
            JobsConfig config;
            config.mac = mac_of(n);
            config.incarnation = 1000 + n;
            config.seed = 0x5eed + n;
            config.jobs_max = kJobs;
            bus.add(n, config);
        }
        for (unsigned n = 0; n < kJobs; ++n) {
            const std::string name = "job" + std::to_string(n);
            bus.must_join(bus.node(1), Rank{0}, std::uint16_t{2}, kTheirs + n, name);
            bus.must_join(bus.node(0), Rank{1}, std::uint16_t{2}, kEndpoint + n, name);
            ULC_CHECK(bus.run(kSecond, [&] { return bus.node(0).formed(kEndpoint + n); }));
        }
        bus.run(kSecond);
    }
    /// Returns the places that a NODE frame of the peer and the answer to it have visited.
    template <typename Make>
    double steps_of(const Make& make) {
        Jobs& jobs = *bus.node(0).jobs;
        std::byte frame[2000];
        const std::uint64_t before = jobs.steps();
        for (unsigned n = 0; n < kQuestions; ++n) {
            const wire::NodeBody body = make(n);
            bus.inject(bus.node(0), mac_of(1), wire::FrameType::kNode,
                       std::as_bytes(std::span(&body, 1)));
            while (jobs.next_tx(frame, sizeof frame, bus.now) > 0) {
            }
            bus.now += 100 * kMicrosecond;
        }
        return static_cast<double>(jobs.steps() - before) / kQuestions;
    }
    static wire::NodeBody body_of(wire::NodeKind kind, unsigned n, Handle ours, Handle theirs) {
        wire::NodeBody body{};
        body.kind = kind;
        body.incarnation = 1001;
        body.token = kind == wire::NodeKind::kPing ? n + 1 : wire::kNoToken;
        body.ours = ours;
        body.theirs = theirs;
        if (kind == wire::NodeKind::kGone) body.reason = wire::LeaveReason::kDied;
        return body;
    }
    JobBus bus{1};
};

// The peer's endpoints are known, unknown, or not named; so are those here.
TEST_F(Peers, questions_cost_the_same_whatever_jobs_the_nodes_share) {
    for (const Handle theirs : {kTheirs, Handle{0}, Handle{4711}}) {
        for (const Handle ours : {kEndpoint, Handle{0}, Handle{4711}}) {
            const double steps = steps_of([&](unsigned n) {
                return body_of(wire::NodeKind::kPing, n,
                               theirs == kTheirs ? theirs + n % kJobs : theirs,
                               ours == kEndpoint ? ours + n % kJobs : ours);
            });
            EXPECT_LT(steps, kStepsMax) << theirs << " " << ours;
        }
    }
}

TEST_F(Peers, hints_cost_the_same_whatever_jobs_the_nodes_share) {
    for (const unsigned known : {0U, 4711U}) {
        EXPECT_LT(steps_of([&](unsigned n) {
                      return body_of(wire::NodeKind::kGone, n, kTheirs + known + n % kJobs, 0);
                  }),
                  kStepsMax);
        EXPECT_LT(steps_of([&](unsigned n) {
                      return body_of(wire::NodeKind::kExpelled, n, 0,
                                     kEndpoint + known + n % kJobs);
                  }),
                  kStepsMax);
    }
    // Another incarnation makes this engine ask, once in a millisecond.
    EXPECT_LT(steps_of([&](unsigned n) {
                  wire::NodeBody body = body_of(wire::NodeKind::kPing, n, 0, 0);
                  body.incarnation = 5;
                  return body;
              }),
              kStepsMax);
    for (const JobEvent& event : bus.node(0).events)
        EXPECT_EQ(event.kind, JobEventKind::kFormed);
}

// N-7
TEST_F(Peers, are_asked_about_each_job_in_turn) {
    bus.logs = true;
    bus.run(1200 * kSecond, [&] { return bus.log.size() > 16 * kJobs; });
    std::set<Handle> asked;
    for (const auto& frame : bus.log) {
        wire::FrameView view;
        wire::NodeView node;
        ASSERT_EQ(wire::parse(frame.data(), frame.size(), wire::kEtherTypeDefault, view),
                  Counter::kCount);
        if (view.type == wire::FrameType::kNode && view.source == mac_of(0) &&
            wire::parse_node(view.body, view.length, node) && node.kind == wire::NodeKind::kPing)
            asked.insert(node.ours);
    }
    EXPECT_EQ(asked.size(), kJobs);
}

class Ended : public Strangers {
protected:
    Ended() : Strangers(0) {}
};

// The keys of ended jobs are kept, and each is found.
TEST_F(Ended, an_ended_job_is_known_until_others_have_ended) {
    constexpr unsigned kEnded = 70;
    for (unsigned n = 0; n < kEnded; ++n) {
        bus.must_join(*node, Rank{0}, std::uint16_t{1}, kEndpoint, "ended",
                      static_cast<std::uint8_t>(n + 1));
        bus.leave(*node, kEndpoint, wire::LeaveReason::kLeft);
        bus.run(200 * kMillisecond);
    }
    const auto answered = [&](unsigned n) {
        wire::Nonce secret;
        secret.octets[3] = static_cast<std::uint8_t>(n + 1);
        const wire::JobHead head =
            wire::job_head(wire::JobKind::kCommit, "ended", wire::job_id_of(secret), false);
        Octets body(2000);
        const std::size_t octets = put_commit(body.data(), head);
        const Mac source = mac_of(kStranger);
        const wire::JobTag tag =
            wire::job_tag(wire::job_key_of(secret), source, std::span(body.data(), octets));
        std::memcpy(body.data() + octets, &tag, sizeof tag);
        body.resize(octets + sizeof tag);
        const unsigned before = bus.kinds_sent[wire::JobKind::kRosterAck];
        bus.inject(*node, source, wire::FrameType::kJob, body);
        bus.run(kMillisecond);
        return bus.kinds_sent[wire::JobKind::kRosterAck] - before;
    };
    unsigned known = 0;
    for (unsigned n = 0; n < kEnded; ++n)
        known += answered(n);
    EXPECT_EQ(known, 64U);
    EXPECT_EQ(answered(kEnded - 1), 1U);
    EXPECT_EQ(answered(0), 0U);
}

// A node with as many links here as 256 endpoints make.
TEST(LinksOfStrangers, cost_the_same_whatever_links_the_node_has) {
    constexpr unsigned kLinks = 256;
    Linked w(1);
    w.add(0);
    BusNode& a = w.bus.node(0);
    BusNode& b = w.add(1, kLinks + 8);
    const wire::LinkAddress to = Linked::address(b, Linked::endpoint(1));
    for (unsigned n = 1; n <= kLinks; ++n) {
        Linked::open(a, 1000 + n, 1);
        (void)w.call(a, 1000 + n, to);
    }
    ASSERT_TRUE(
        w.run(20 * kSecond, [&] { return Linked::told(b, LinkEventKind::kConfirmed) == kLinks; }));
    const auto steps_of = [&](wire::LinkKind kind, Handle from, Handle addressed, unsigned slot) {
        wire::LinkBody body{};
        body.kind = kind;
        if (kind == wire::LinkKind::kUnlink)
            body.reason = static_cast<std::uint8_t>(wire::LeaveReason::kLeft);
        body.version = wire::kProtocolVersion;
        body.incarnation = a.config.incarnation;
        body.ours = kind == wire::LinkKind::kUnlinked ? 0U : 5U;
        body.theirs = addressed == 0 ? 0U : 6U;
        body.from = from;
        body.to = addressed;
        body.slot = static_cast<Rank>(slot);
        std::byte octets[wire::kLinkOctetsMax];
        const std::size_t count =
            wire::put_link(octets, body, "urtp", wire::LinkKey{}, a.config.mac);
        const std::uint64_t before = b.jobs->steps();
        bool parsed = true;
        for (unsigned n = 0; n < kFrames; ++n) {
            wire::LinkView view;
            parsed = parsed && wire::parse_link(octets, count, view);
            b.jobs->links().on_frame(view, a.config.mac, w.bus.now);
        }
        EXPECT_TRUE(parsed) << static_cast<int>(kind);
        return static_cast<double>(b.jobs->steps() - before) / kFrames;
    };
    const Handle here = Linked::endpoint(1);
    EXPECT_LT(steps_of(wire::LinkKind::kConfirm, 1000 + kLinks, here, 0), kStepsMax);
    EXPECT_LT(steps_of(wire::LinkKind::kConfirm, 4711, here, 0), kStepsMax);
    EXPECT_LT(steps_of(wire::LinkKind::kUnlink, 4711, here, 0), kStepsMax);
    EXPECT_LT(steps_of(wire::LinkKind::kUnlinked, 4711, 0, 3), kStepsMax) << "a hint";
    EXPECT_EQ(Linked::used(b, here), kLinks) << "a frame without an id of the link ended one";
}

}  // namespace
}  // namespace ulc::jobs
