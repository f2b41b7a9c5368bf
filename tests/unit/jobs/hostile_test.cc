// SPDX-License-Identifier: BSD-3-Clause
// A node on the wire that means harm, and the jobs of others: docs/PROTOCOL.md §7, §7.2. With and
// without a key; engines of older versions; one MAC address twice. Few frames come back for those
// that a stranger sends.
#include <gtest/gtest.h>

#include "tests/unit/jobs/bus.h"
#include "wire/job_key.h"

namespace ulc::jobs {
namespace {

using Octets = std::vector<std::byte>;

constexpr std::uint8_t kNonce = 9;  ///< a launcher's; 0: by hand
constexpr Handle kEndpoint = 10;
constexpr unsigned kStranger = 66;

wire::Nonce nonce_of(std::uint8_t nonce) {
    wire::Nonce out;
    out.octets[3] = nonce;
    return out;
}

/// Makes the bodies that the attacker sends. Their tags are zeros, for lack of the key.
struct Forger {
    explicit Forger(std::uint8_t nonce_in) : nonce(nonce_in) {}
    [[nodiscard]] wire::JobHead head(wire::JobKind kind) const {
        const wire::Nonce id = nonce == 0 ? wire::Nonce{} : wire::job_id_of(nonce_of(nonce));
        return wire::job_head(kind, "job", nonce == 0 && kind != wire::JobKind::kJoin ? some() : id,
                              nonce == 0);
    }
    static wire::Nonce some() { return nonce_of(77); }
    [[nodiscard]] Octets finish(Octets body, std::size_t octets) const {
        body.resize(octets + (nonce == 0 ? 0 : sizeof(wire::JobTag)));
        return body;
    }
    [[nodiscard]] Octets join(std::span<const wire::JoinClaim> claims, std::uint16_t size) const {
        wire::JoinBody join{};
        join.size = size;
        join.version_min = join.version_max = wire::kProtocolVersion;
        join.incarnation = 5U;
        join.claims = static_cast<std::uint16_t>(claims.size());
        join.profile = wire::profile_field("urtp");
        Octets body(2000);
        const std::size_t n = wire::put_join(body.data(), head(wire::JobKind::kJoin), join, claims);
        return finish(std::move(body), n);
    }
    [[nodiscard]] Octets join(Rank rank, std::uint16_t size) const {
        wire::JoinClaim claim{};
        claim.rank = rank;
        claim.handle = 4711U;
        return join(std::span(&claim, 1), size);
    }
    [[nodiscard]] Octets reject(wire::RejectScope scope, Rank rank, Handle handle) const {
        wire::RejectBody reject{};
        reject.error = static_cast<std::uint32_t>(Err::kRankTaken);
        reject.scope = scope;
        reject.rank = rank;
        reject.handle = handle;
        Octets body(2000);
        const std::size_t n = wire::put_reject(body.data(), head(wire::JobKind::kReject), reject);
        return finish(std::move(body), n);
    }
    [[nodiscard]] Octets bye(Rank rank, Handle handle) const {
        wire::ByeBody bye{};
        bye.rank = rank;
        bye.reason = wire::LeaveReason::kLeft;
        bye.handle = handle;
        Octets body(2000);
        const std::size_t n = wire::put_bye(body.data(), head(wire::JobKind::kBye), bye);
        return finish(std::move(body), n);
    }
    [[nodiscard]] Octets commit() const {
        wire::CommitBody commit{};
        commit.roster = 7U;
        Octets body(2000);
        const std::size_t n = wire::put_commit(body.data(), head(wire::JobKind::kCommit), commit);
        return finish(std::move(body), n);
    }
    /// Names `publisher` for rank 0 and the victim's endpoint for rank 1.
    [[nodiscard]] Octets roster(const Mac& publisher, const BusNode& victim) const {
        wire::RosterBody roster{};
        roster.roster = 7U;
        roster.world = kGroupBit | 5U;
        roster.size = roster.entries = std::uint16_t{2};
        roster.parts = std::uint16_t{1};
        roster.version = wire::kProtocolVersion;
        roster.mtu = std::uint16_t{1500};
        wire::RosterEntry entries[2];
        entries[0].attribute_octets = entries[1].attribute_octets = 0;
        entries[0].mac = publisher;
        entries[0].handle = 4711U;
        entries[0].incarnation = 5U;
        entries[1].mac = victim.config.mac;
        entries[1].handle = kEndpoint + 1;
        entries[1].incarnation = victim.config.incarnation;
        Octets body(2000);
        const std::size_t n =
            wire::put_roster(body.data(), head(wire::JobKind::kRoster), roster, entries);
        return finish(std::move(body), n);
    }

    std::uint8_t nonce;
};

void add_pair(JobBus& bus, std::uint8_t nonce) {
    for (unsigned n = 0; n < 2; ++n) {
        bus.add(n);
        bus.must_join(bus.node(n), static_cast<Rank>(n), 2, kEndpoint + n, "job", nonce);
    }
}

bool both_formed(JobBus& bus) {
    return bus.node(0).formed(kEndpoint) && bus.node(1).formed(kEndpoint + 1);
}

// ------------------------------------------------------------------------------ by hand: no key

// J-19, J-20
TEST(JobsHostile, a_reject_of_a_stranger_fails_no_job) {
    for (const unsigned victim : {0U, 1U}) {
        JobBus bus(1);
        const Forger forger(0);
        BusNode& node = bus.add(victim);
        bus.must_join(node, static_cast<Rank>(victim), 2, kEndpoint + victim);
        bus.run(10 * kMillisecond);
        using wire::RejectScope;
        bus.inject(node, mac_of(kStranger), wire::FrameType::kJob,
                   forger.reject(RejectScope::kJob, 0, 0));
        bus.inject(
            node, mac_of(kStranger), wire::FrameType::kJob,
            forger.reject(RejectScope::kClaim, static_cast<Rank>(victim), kEndpoint + victim));
        bus.run(10 * kMillisecond);
        EXPECT_EQ(node.event_of(kEndpoint + victim), nullptr) << bus.describe();
        EXPECT_EQ(node.counters.get(Counter::drop_unproven), 2U);
        BusNode& other = bus.add(1 - victim);
        bus.must_join(other, static_cast<Rank>(1 - victim), 2, kEndpoint + 1 - victim);
        EXPECT_TRUE(bus.run(kSecond, [&] {
            return node.formed(kEndpoint + victim) && other.formed(kEndpoint + 1 - victim);
        }));
    }
}

// J-10
TEST(JobsHostile, a_roster_of_a_node_that_never_claimed_rank_0_is_not_taken) {
    JobBus bus(2);
    const Forger forger(0);
    BusNode& victim = bus.add(1);
    bus.must_join(victim, 1, 2, kEndpoint + 1);
    bus.run(10 * kMillisecond);
    for (const unsigned named : {0U, kStranger}) {
        bus.inject(victim, mac_of(kStranger), wire::FrameType::kJob,
                   forger.roster(mac_of(named), victim));
        bus.inject(victim, mac_of(kStranger), wire::FrameType::kJob, forger.commit());
        bus.run(10 * kMillisecond);
    }
    EXPECT_EQ(victim.event_of(kEndpoint + 1), nullptr) << bus.describe();
    EXPECT_GE(victim.counters.get(Counter::drop_unproven), 2U);
    bus.must_join(bus.add(0), 0, 2, kEndpoint);
    EXPECT_TRUE(bus.run(kSecond, [&] { return bus.node(1).formed(kEndpoint); }));
}

// J-22
TEST(JobsHostile, a_bye_of_another_node_ends_no_rank) {
    JobBus bus(3);
    add_pair(bus, 0);
    ASSERT_TRUE(bus.run(kSecond, [&] { return both_formed(bus); }));
    bus.inject(bus.node(0), mac_of(kStranger), wire::FrameType::kJob,
               Forger(0).bye(1, kEndpoint + 1));
    bus.inject(bus.node(0), mac_of(1), wire::FrameType::kJob, Forger(0).bye(1, kEndpoint + 2));
    bus.run(kSecond);
    EXPECT_EQ(bus.node(0).events.size(), 1U) << bus.describe();
}

// ---------------------------------------------------------------- one MAC address twice

TEST(JobsHostile, two_engines_of_one_mac_address_are_named) {
    JobBus bus(7);
    bus.must_join(bus.add(0), 0, 3, kEndpoint);
    for (unsigned n = 1; n < 3; ++n) {
        JobsConfig config;
        config.mac = mac_of(1);
        config.incarnation = 2000 + n;
        config.seed = n;
        bus.must_join(bus.add(n, config), static_cast<Rank>(n), 3, kEndpoint + n, "job", 0,
                      bus.now + 2 * kSecond);
    }
    ASSERT_TRUE(bus.run(kSecond, [&] { return bus.node(0).failed(kEndpoint) != Err::kOk; }));
    const std::string text = bus.node(0).event_of(kEndpoint)->text.data();
    EXPECT_NE(text.find("two engines"), std::string::npos) << text;
    EXPECT_NE(text.find("02:00:00:00:00:01"), std::string::npos) << text;
    bus.run(3 * kSecond);
    for (unsigned n = 1; n < 3; ++n) {
        const std::string said = bus.node(n).event_of(kEndpoint + n)->text.data();
        EXPECT_NE(said.find("02:00:00:00:00:01"), std::string::npos) << said;
    }
}

// One that comes later stops before the other has heard two of its claims.
// J-42
TEST(JobsHostile, an_engine_with_the_publishers_mac_address_fails_the_job_at_once) {
    for (const std::uint8_t nonce : {std::uint8_t{0}, kNonce}) {
        for (const Nanos later : {Nanos{0}, 3 * kSecond}) {
            JobBus bus(8);
            const Nanos deadline = bus.now + 60 * kSecond;
            for (unsigned n = 0; n < 2; ++n) {
                JobsConfig config;
                config.mac = mac_of(0);
                config.incarnation = 2000 + n;
                config.seed = n;
                bus.must_join(bus.add(n, config), static_cast<Rank>(n), 2, kEndpoint + n, "job",
                              nonce, deadline);
                if (n == 0) bus.run(later);
            }
            bus.run(100 * kMillisecond);
            std::string said;
            for (unsigned n = 0; n < 2; ++n) {
                ASSERT_EQ(bus.node(n).failed(kEndpoint + n), Err::kRankTaken) << bus.describe();
                said = bus.node(n).event_of(kEndpoint + n)->text.data();
                EXPECT_NE(said.find("02:00:00:00:00:00"), std::string::npos) << said;
                EXPECT_NE(said.find("000007d0"), std::string::npos) << said;
                EXPECT_NE(said.find("000007d1"), std::string::npos) << said;
                EXPECT_NE(said.find("another MAC"), std::string::npos) << "it is cut: " << said;
            }
        }
    }
}

// J-42
TEST(JobsHostile, one_claim_with_our_address_may_be_an_old_frame) {
    JobBus bus(3);
    add_pair(bus, 0);
    bus.inject(bus.node(0), mac_of(0), wire::FrameType::kJob, Forger(0).join(0, 2));
    ASSERT_TRUE(bus.run(kSecond, [&] { return both_formed(bus); })) << bus.describe();
}

// N-13
TEST(JobsHostile, a_forged_end_of_an_endpoint_takes_no_claim_back) {
    for (const std::uint8_t nonce : {0, 9}) {
        JobBus bus(8);
        for (unsigned n = 0; n < 2; ++n)
            bus.add(n);
        bus.must_join(bus.node(1), 1, 2, 11, "job", nonce);
        bus.must_join(bus.node(0), 0, 2, 10, "job", nonce);
        const unsigned& rosters = bus.kinds_sent[wire::JobKind::kRoster];
        ASSERT_TRUE(bus.run(kSecond, [&] { return rosters > 0; }));
        bus.cut = &bus.node(1);
        bus.run(2 * kMillisecond);  // frames that were sent before arrive
        wire::NodeBody gone{};
        gone.kind = wire::NodeKind::kGone;
        gone.reason = wire::LeaveReason::kDied;
        gone.incarnation = 1001U;
        gone.ours = Handle{11};
        Octets body(sizeof gone);
        (void)wire::put_node(body.data(), gone);
        bus.inject(bus.node(0), mac_of(1), wire::FrameType::kNode, body);
        const unsigned before = rosters;
        bus.run(200 * kMillisecond);
        EXPECT_GT(rosters, before) << "the claim counts until it lapses";
        bus.cut = nullptr;
        EXPECT_TRUE(bus.run(kSecond, [&] { return both_formed(bus); }));
    }
}

// An engine that was restarted has claims of two lives for a moment.
TEST(JobsHostile, a_restarted_engine_is_not_taken_for_two) {
    JobBus bus(9);
    bus.must_join(bus.add(0), 0, 3, kEndpoint);
    bus.must_join(bus.add(1), 1, 3, kEndpoint + 1);
    bus.run(20 * kMillisecond);
    bus.restart(bus.node(1));
    bus.must_join(bus.node(1), 2, 3, kEndpoint + 2);
    bus.run(300 * kMillisecond);
    bus.must_join(bus.node(1), 1, 3, kEndpoint + 3);
    EXPECT_TRUE(bus.run(5 * kSecond, [&] { return bus.node(0).formed(kEndpoint); }))
        << bus.describe();
}

// ------------------------------------------------------------------------------ with a key

class WithKey : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, WithKey, testing::Range<std::uint64_t>(1, 6));

// J-29, J-30, J-32
TEST_P(WithKey, no_frame_bears_the_nonce_and_each_is_its_senders) {
    JobBus bus(GetParam());
    bus.logs = true;
    add_pair(bus, kNonce);
    ASSERT_TRUE(bus.run(kSecond, [&] { return both_formed(bus); }));
    const wire::Nonce nonce = nonce_of(kNonce);
    for (const Octets& frame : bus.log) {
        const auto* secret = reinterpret_cast<const std::byte*>(nonce.octets.data());
        EXPECT_EQ(std::search(frame.begin(), frame.end(), secret, secret + sizeof nonce),
                  frame.end());
        // Sent again from another address, it is not believed.
        wire::FrameView view;
        ASSERT_EQ(wire::parse(frame.data(), frame.size(), wire::kEtherTypeDefault, view),
                  Counter::kCount);
        if (view.type != wire::FrameType::kJob) continue;
        const auto before = bus.node(0).counters.get(Counter::drop_tag);
        bus.inject(bus.node(0), mac_of(kStranger), wire::FrameType::kJob,
                   std::span(view.body, view.length));
        EXPECT_EQ(bus.node(0).counters.get(Counter::drop_tag), before + 1);
    }
    EXPECT_FALSE(bus.log.empty());
}

// From its own address and from theirs, while the job forms and after.
// J-33
TEST_P(WithKey, a_node_without_the_nonce_can_neither_join_nor_fail_nor_end_it) {
    JobBus bus(GetParam(), 0.2);
    const Forger forger(kNonce);
    add_pair(bus, kNonce);
    const auto attack = [&] {
        for (unsigned n = 0; n < 2; ++n) {
            BusNode& to = bus.node(n);
            for (const unsigned from : {0U, 1U, kStranger}) {
                if (from == n) continue;
                const Octets bodies[] = {
                    forger.join(0, 2),
                    forger.join(1, 2),
                    forger.join(1, 3),
                    forger.reject(wire::RejectScope::kJob, 0, 0),
                    forger.reject(wire::RejectScope::kClaim, static_cast<Rank>(n), kEndpoint + n),
                    forger.roster(mac_of(from), to),
                    forger.commit(),
                    forger.bye(static_cast<Rank>(1 - n), kEndpoint + 1 - n)};
                for (const Octets& body : bodies)
                    bus.inject(to, mac_of(from), wire::FrameType::kJob, body);
            }
        }
    };
    for (int round = 0; round < 200; ++round) {
        attack();
        bus.run(kMillisecond);
    }
    bus.set_loss(0);
    EXPECT_TRUE(bus.run(kSecond, [&] { return both_formed(bus); })) << bus.describe();
    attack();
    bus.run(5 * kSecond);
    for (unsigned n = 0; n < 2; ++n) {
        EXPECT_EQ(bus.node(n).events.size(), 1U) << bus.describe();
        EXPECT_GT(bus.node(n).counters.get(Counter::drop_tag), 1000U);
    }
}

TEST_P(WithKey, leaving_is_heard_and_the_publisher_ends) {
    JobBus bus(GetParam(), 0.3);
    add_pair(bus, kNonce);
    ASSERT_TRUE(bus.run(5 * kSecond, [&] { return bus.node(1).formed(kEndpoint + 1); }));
    bus.leave(bus.node(1), kEndpoint + 1, wire::LeaveReason::kLeft);
    bus.set_loss(0);
    ASSERT_TRUE(bus.run(5 * kSecond, [&] {
        return bus.node(0).count(JobEventKind::kPeerLeft, 1) == 1;
    })) << bus.describe();
    bus.leave(bus.node(0), kEndpoint, wire::LeaveReason::kLeft);
    EXPECT_TRUE(bus.run(5 * kSecond, [&] { return bus.node(0).jobs->drained(); }));
}

// J-35
TEST(JobsHostile, engines_of_version_1_with_the_nonce_are_refused_in_words) {
    JobBus bus(4);
    bus.logs = true;
    BusNode& node = bus.add(0);
    bus.must_join(node, 0, 2, kEndpoint, "job", kNonce);
    bus.run(10 * kMillisecond);
    Octets body = Forger(0).join(1, 2);
    const wire::JobHead head = wire::job_head(wire::JobKind::kJoin, "job", nonce_of(kNonce), false);
    std::memcpy(body.data(), &head, sizeof head);
    body[sizeof head + offsetof(wire::JoinBody, version_min)] = std::byte{1};
    body[sizeof head + offsetof(wire::JoinBody, version_max)] = std::byte{1};
    bus.log.clear();
    bus.inject(node, mac_of(1), wire::FrameType::kJob, body);
    bus.run(kMillisecond);
    EXPECT_EQ(node.failed(kEndpoint), Err::kVersion);
    EXPECT_NE(std::string(node.event_of(kEndpoint)->text.data()).find("protocol version"),
              std::string::npos);
    // The answer has the layout of version 1: no tag.
    ASSERT_FALSE(bus.log.empty());
    wire::FrameView view;
    const Octets& answer = bus.log.front();
    ASSERT_EQ(wire::parse(answer.data(), answer.size(), wire::kEtherTypeDefault, view),
              Counter::kCount);
    EXPECT_EQ(view.length, sizeof(wire::JobHead) + sizeof(wire::RejectBody));
    const wire::JobHead expected =
        wire::job_head(wire::JobKind::kReject, "job", nonce_of(kNonce), false);
    EXPECT_EQ(std::memcmp(view.body, &expected, sizeof expected), 0);
}

// An engine of version 2 takes no JOIN with attributes. It gets one that it can refuse.
// J-17, J-38
TEST(JobsHostile, engines_of_version_2_get_a_claim_that_they_can_refuse) {
    JobBus bus(4);
    bus.logs = true;
    BusNode& node = bus.add(1);
    bus.must_join(node, 1, 2, kEndpoint);
    bus.run(10 * kMillisecond);
    Octets body = Forger(0).join(0, 2);
    const wire::JobHead head = wire::job_head(wire::JobKind::kJoin, "job", wire::Nonce{}, true);
    body[sizeof head + offsetof(wire::JoinBody, version_min)] = std::byte{2};
    body[sizeof head + offsetof(wire::JoinBody, version_max)] = std::byte{2};
    bus.log.clear();
    bus.inject(node, mac_of(0), wire::FrameType::kJob, body);
    bus.run(kMillisecond);
    ASSERT_FALSE(bus.log.empty());
    wire::FrameView view;
    const Octets& answer = bus.log.front();
    ASSERT_EQ(wire::parse(answer.data(), answer.size(), wire::kEtherTypeDefault, view),
              Counter::kCount);
    EXPECT_EQ(view.destination, mac_of(0));
    EXPECT_EQ(view.length,
              sizeof(wire::JobHead) + sizeof(wire::JoinBody) + sizeof(wire::JoinClaim));
    wire::JobBodyView join;
    ASSERT_TRUE(wire::parse_job(view.body, view.length, join));
    ASSERT_EQ(join.kind, wire::JobKind::kJoin);
    EXPECT_EQ(join.join->version_min, wire::kProtocolVersion);
    EXPECT_TRUE(join.attribute_octets.empty());
    wire::RejectBody reject{};
    reject.error = static_cast<std::uint32_t>(Err::kVersion);
    reject.scope = wire::RejectScope::kClaim;
    reject.rank = std::uint16_t{1};
    reject.handle = kEndpoint;
    reject.first = mac_of(0);
    reject.second = mac_of(1);
    Octets refusal(2000);
    refusal.resize(wire::put_reject(
        refusal.data(), wire::job_head(wire::JobKind::kReject, "job", Forger::some(), true),
        reject));
    bus.inject(node, mac_of(0), wire::FrameType::kJob, refusal);
    bus.run(kMillisecond);
    EXPECT_EQ(node.failed(kEndpoint), Err::kVersion);
    EXPECT_NE(std::string(node.event_of(kEndpoint)->text.data()).find("protocol version"),
              std::string::npos);
}

// J-41
TEST(JobsHostile, a_roster_of_too_many_parts_fails_the_job_in_words) {
    constexpr std::uint16_t kRanks = 2100;
    JobBus bus(5);
    JobsConfig config;
    config.mac = mac_of(0);
    config.mtu = wire::kMtuMin;
    BusNode& node = bus.add(0, config);
    bus.must_join(node, 0, kRanks, kEndpoint);
    std::vector<std::byte> attributes(202);  // one value of an unknown type
    attributes[0] = std::byte{200};
    attributes[1] = std::byte{200};
    for (Rank rank = 1; rank < kRanks; ++rank) {
        wire::JoinBody join{};
        join.size = kRanks;
        join.version_min = join.version_max = wire::kProtocolVersion;
        join.incarnation = 5U;
        join.claims = std::uint16_t{1};
        join.attribute_octets = static_cast<std::uint16_t>(attributes.size());
        join.profile = wire::profile_field("urtp");
        wire::JoinClaim claim{};
        claim.rank = rank;
        claim.handle = 4711U;
        Octets body(2000);
        body.resize(wire::put_join(body.data(), Forger(0).head(wire::JobKind::kJoin), join,
                                   std::span(&claim, 1), attributes));
        bus.inject(node, mac_of(1000U + rank), wire::FrameType::kJob, body);
    }
    bus.run(kMillisecond);
    EXPECT_EQ(node.failed(kEndpoint), Err::kLimit);
    EXPECT_NE(std::string(node.event_of(kEndpoint)->text.data()).find("raise the MTU"),
              std::string::npos);
    EXPECT_EQ(bus.kinds_sent[wire::JobKind::kReject], 1U);
}

// ------------------------------------------------------------------------------ amplification

// Control that one frame brings about is at most three times its octets. The job has formed, so the
// nodes say little unasked.
// J-12, J-21
TEST(JobsHostile, nothing_comes_back_many_times) {
    const Forger forger(0);
    std::vector<wire::JoinClaim> many(wire::kJoinClaimsMax);
    for (std::size_t i = 0; i < many.size(); ++i) {
        many[i].rank = static_cast<Rank>(i % 2);
        many[i].handle = static_cast<std::uint32_t>(5000 + i);
    }
    JobBus prototype(5);
    const BusNode& victim = prototype.add(1);
    const auto node_body = [](wire::NodeKind kind, Handle ours, Handle theirs) {
        wire::NodeBody node{};
        node.kind = kind;
        node.reason =
            kind == wire::NodeKind::kGone ? wire::LeaveReason::kDied : wire::LeaveReason{};
        node.incarnation = 5U;
        node.token = kind == wire::NodeKind::kPing ? 5U : 0U;
        node.ours = ours;
        node.theirs = theirs;
        Octets body(sizeof node);
        (void)wire::put_node(body.data(), node);
        return body;
    };
    using wire::FrameType;
    const std::pair<FrameType, Octets> bodies[] = {
        {FrameType::kJob, forger.join(0, 2)},
        {FrameType::kJob, forger.join(1, 2)},
        {FrameType::kJob, forger.join(1, 3)},
        {FrameType::kJob, forger.join(many, 2)},
        {FrameType::kJob, forger.join(many, 3)},
        {FrameType::kJob, forger.roster(mac_of(kStranger), victim)},
        {FrameType::kJob, forger.commit()},
        {FrameType::kJob, forger.reject(wire::RejectScope::kJob, 0, 0)},
        {FrameType::kJob, forger.bye(1, kEndpoint + 1)},
        {FrameType::kNode, node_body(wire::NodeKind::kPing, 0, 4711)},
        {FrameType::kNode, node_body(wire::NodeKind::kGone, kEndpoint + 1, 0)},
        {FrameType::kNode, node_body(wire::NodeKind::kExpelled, 0, kEndpoint)},
    };
    for (std::size_t kind = 0; kind < std::size(bodies); ++kind) {
        for (const unsigned source : {1U, kStranger}) {
            for (const unsigned target : {0U, 1U}) {
                if (source == target) continue;
                JobBus bus(6);
                add_pair(bus, 0);
                ASSERT_TRUE(bus.run(kSecond, [&] { return both_formed(bus); }));
                bus.run(100 * kMillisecond);  // COMMIT is acknowledged, and no node is silent yet
                const std::uint64_t before = bus.sent_octets;
                for (int n = 0; n < 20; ++n) {
                    bus.inject(bus.node(target), mac_of(source), bodies[kind].first,
                               bodies[kind].second);
                    bus.run(10 * kMicrosecond);
                }
                bus.run(kMillisecond);
                EXPECT_LE(bus.sent_octets - before, 3 * bus.injected_octets)
                    << "body " << kind << " from " << source << " at " << target;
            }
        }
    }
}

}  // namespace
}  // namespace ulc::jobs
