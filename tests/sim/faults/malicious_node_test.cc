// SPDX-License-Identifier: BSD-3-Clause
// A malicious node at line rate: every kind of control frame, from one address, from many, and
// from those of the job's own nodes. The job forms and lives, nothing grows, and data go on.
// ULC_MALICIOUS_MS: how long the attack lasts in virtual time (default 4).
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/programs/oracle.h"
#include "wire/build.h"
#include "wire/job_key.h"
#include "wire/parse.h"

namespace ulc::sim {
namespace {

using Octets = std::vector<std::byte>;

constexpr std::uint8_t kNonce = 7;
constexpr Nanos kBurstEvery = 100 * kMicrosecond;
constexpr int kBurst = 148;  ///< shortest frames at 1 Gb/s in that time
constexpr unsigned kStrangers = 10'000;

Nanos attack_time() {
    const char* given = std::getenv("ULC_MALICIOUS_MS");
    return (given == nullptr ? 4 : std::max(1, std::atoi(given))) * kMillisecond;
}

enum class Source : std::uint8_t { kOwn, kMany, kSpoofed };

/// Knows all that is broadcast in clear: name, id, handles, MACs, incarnations; not the nonce.
class Attacker {
public:
    Attacker(SimCluster& cluster, Source source, std::uint64_t seed)
        : cluster_(cluster), source_(source), prng_(seed) {
        wire::Nonce nonce;
        nonce.octets[0] = kNonce;
        id_ = wire::job_id_of(nonce);
    }
    /// Sends the bursts that are due, to nodes 0 and 1.
    void act() {
        for (; next_ <= cluster_.now(); next_ += kBurstEvery) {
            for (int n = 0; n < kBurst; ++n)
                strike(static_cast<std::uint16_t>(n % 2));
        }
    }
    void begin() { next_ = cluster_.now(); }
    [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }

private:
    void strike(std::uint16_t to) {
        std::byte frame[512]{};
        wire::FrameHead head;
        head.destination = SimNet::mac_of(to);
        head.source = source(to);
        const std::uint64_t kind = prng_.below(12);
        head.type = kind < 6 ? wire::FrameType::kNode : wire::FrameType::kJob;
        std::byte* body = frame + wire::kHeadOctets;
        const std::size_t octets =
            kind < 6 ? node_body(body, kind, to) : job_body(body, kind, to, head.source);
        const std::size_t all = wire::build_control(frame, head, octets);
        cluster_.net().inject(to, frame, static_cast<std::uint32_t>(all));
        ++frames_;
    }
    Mac source(std::uint16_t to) {
        switch (source_) {
            case Source::kOwn:
                return Mac{{2, 9, 9, 9, 9, 9}};
            case Source::kMany: {
                const std::uint64_t n = prng_.below(kStrangers);
                return Mac{
                    {2, 8, 8, 8, static_cast<std::uint8_t>(n >> 8), static_cast<std::uint8_t>(n)}};
            }
            case Source::kSpoofed:
                return SimNet::mac_of(static_cast<std::uint16_t>(1 - to));
        }
        return {};
    }
    /// The endpoint of rank `rank`, once it has one.
    [[nodiscard]] Handle handle(std::uint16_t rank) const {
        return rank < cluster_.size() ? cluster_.endpoint(rank) : 500;
    }
    std::size_t node_body(std::byte* body, std::uint64_t kind, std::uint16_t to) {
        wire::NodeBody node{};
        node.kind = static_cast<wire::NodeKind>(1 + kind % 4);
        const bool ping = node.kind == wire::NodeKind::kPing;
        const bool pong = node.kind == wire::NodeKind::kPong;
        const bool gone = node.kind == wire::NodeKind::kGone;
        if (gone) node.reason = wire::LeaveReason::kDied;
        node.incarnation = static_cast<std::uint32_t>(1 + prng_.below(1000));
        node.token = ping || pong || prng_.chance(0.5) ? prng_.next() | 1U : 0U;
        if (ping || gone) node.ours = handle(static_cast<std::uint16_t>(1 - to));
        if (ping || (!pong && !gone)) node.theirs = handle(to);
        return wire::put_node(body, node);
    }
    std::size_t job_body(std::byte* body, std::uint64_t kind, std::uint16_t to, const Mac& source) {
        const auto job_kind = static_cast<wire::JobKind>(kind - 5);
        const wire::JobHead head = wire::job_head(job_kind, "job0", id_, false);
        const auto other = static_cast<std::uint16_t>(1 - to);
        std::size_t octets = 0;
        switch (job_kind) {
            case wire::JobKind::kJoin: {
                wire::JoinBody join{};
                join.size = std::uint16_t{2};
                join.version_min = join.version_max = wire::kProtocolVersion;
                join.incarnation = 5U;
                join.claims = std::uint16_t{1};
                join.profile = wire::profile_field("urtp");
                wire::JoinClaim claim{};
                claim.rank = static_cast<Rank>(prng_.below(2));
                claim.handle = static_cast<std::uint32_t>(1 + prng_.below(1000));
                octets = wire::put_join(body, head, join, std::span(&claim, 1));
                break;
            }
            case wire::JobKind::kRoster: {
                wire::RosterBody roster{};
                roster.roster = 7U;
                roster.world = kGroupBit | 5U;
                roster.size = roster.entries = std::uint16_t{2};
                roster.parts = std::uint16_t{1};
                roster.version = wire::kProtocolVersion;
                roster.mtu = std::uint16_t{1500};
                wire::RosterEntry entries[2];
                for (std::uint16_t rank = 0; rank < 2; ++rank) {
                    entries[rank].mac = rank == 0 ? source : SimNet::mac_of(to);
                    entries[rank].handle = handle(rank);
                    entries[rank].incarnation = 5U;
                    entries[rank].attribute_octets = 0;
                }
                octets = wire::put_roster(body, head, roster, entries);
                break;
            }
            case wire::JobKind::kRosterAck: {
                wire::RosterAckBody ack{};
                ack.parts = std::uint16_t{1};
                ack.state = wire::RosterAckState::kHolds;
                octets = wire::put_roster_ack(body, head, ack, {});
                break;
            }
            case wire::JobKind::kReject: {
                wire::RejectBody reject{};
                reject.error = static_cast<std::uint32_t>(Err::kRankTaken);
                reject.scope = wire::RejectScope::kJob;
                octets = wire::put_reject(body, head, reject);
                break;
            }
            case wire::JobKind::kBye: {
                wire::ByeBody bye{};
                bye.rank = other;
                bye.reason = wire::LeaveReason::kDied;
                bye.handle = handle(other);
                octets = wire::put_bye(body, head, bye);
                break;
            }
            case wire::JobKind::kCommit: {
                wire::CommitBody commit{};
                commit.roster = 7U;
                octets = wire::put_commit(body, head, commit);
                break;
            }
        }
        return octets + sizeof(wire::JobTag);  // zeros
    }

    SimCluster& cluster_;
    Source source_;
    Prng prng_;
    wire::Nonce id_;
    Nanos next_ = 0;
    std::uint64_t frames_ = 0;
};

ClusterConfig pair_config() {
    ClusterConfig config;
    config.net.ports = 2;
    config.net.bits_per_second = 1'000'000'000;
    config.nonce = kNonce;
    for (const HostCosts& host : host_presets())
        if (host.name == "own-machine") config.hosts = {host};
    return config;
}

/// Octets that rank 1 receives of rank 0 in that time.
std::uint64_t stream(SimCluster& cluster, Nanos time, Attacker* attacker) {
    std::uint64_t octets = 0;
    const auto tick = [&] {
        if (attacker != nullptr) attacker->act();
        cluster.client(0).poll();
        (void)cluster.client(0).send(1, 1, Oracle::payload(1, 1400));
        cluster.client(1).poll();
        for (const Message& message : cluster.client(1).messages)
            octets += message.payload.size();
        cluster.client(1).messages.clear();
        cluster.client(0).sends_done.clear();
    };
    if (attacker != nullptr) attacker->begin();
    (void)cluster.run(
        time, [] { return false; }, tick);
    return octets;
}

class MaliciousNode : public testing::TestWithParam<Source> {};
INSTANTIATE_TEST_SUITE_P(Sources, MaliciousNode,
                         testing::Values(Source::kOwn, Source::kMany, Source::kSpoofed));

TEST_P(MaliciousNode, ends_nothing_takes_no_memory_and_leaves_half_of_the_throughput) {
    const Nanos time = attack_time();
    SimCluster quiet(pair_config());
    ASSERT_TRUE(quiet.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    const std::uint64_t alone = stream(quiet, time, nullptr);
    EXPECT_EQ(quiet.shut_down(), 0U);

    SimCluster cluster(pair_config());
    ASSERT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    Attacker attacker(cluster, GetParam(), 3);
    (void)stream(cluster, 2 * time, &attacker);  // queues find their size
    // Without frames that are under way: those are the simulator's.
    const auto quiet_heap = [&] {
        (void)cluster.run(100 * kMillisecond, [] { return false; });
        cluster.client(0).poll();
        cluster.client(1).poll();
        cluster.client(0).sends_done.clear();
        cluster.client(1).messages.clear();
        return mallinfo2().uordblks;
    };
    const std::size_t before = quiet_heap();
    const std::uint64_t attacked = stream(cluster, time, &attacker);
    const std::size_t after = quiet_heap();
    EXPECT_GT(attacker.frames(), static_cast<std::uint64_t>(time / kBurstEvery) * kBurst);
    EXPECT_GE(attacked, alone / 2) << "octets, of " << alone << " without the attacker";
    EXPECT_LE(after, before + 512 * 1024) << "octets of heap";
    // Longer than peer-dead, so that what was begun would have come to an end.
    (void)cluster.run(5 * kSecond, [] { return false; });
    for (std::size_t rank = 0; rank < 2; ++rank)
        cluster.client(rank).poll();
    for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_TRUE(cluster.client(rank).peers_died.empty());
        EXPECT_TRUE(cluster.client(rank).peers_left.empty());
    }
    EXPECT_EQ(cluster.shut_down(), 0U);
}

// J-33
TEST_P(MaliciousNode, does_not_keep_a_job_with_a_key_from_forming) {
    SimCluster cluster(pair_config());
    Attacker attacker(cluster, GetParam(), 4);
    for (std::size_t rank = 0; rank < 2; ++rank)
        cluster.add_client(static_cast<std::uint16_t>(rank));
    attacker.begin();
    const auto tick = [&] {
        attacker.act();
        cluster.client(0).poll();
        cluster.client(1).poll();
    };
    ASSERT_TRUE(cluster.client(0).join("job0", 0, 2, kNonce));
    (void)cluster.run(
        5 * kMillisecond, [] { return false; }, tick);
    ASSERT_TRUE(cluster.client(1).join("job0", 1, 2, kNonce));
    EXPECT_TRUE(cluster.run(
        kSecond, [&] { return cluster.client(0).formed() && cluster.client(1).formed(); }, tick));
    EXPECT_EQ(cluster.shut_down(), 0U);
}

/// Counts the control frames that port 0 sends between two of its data frames.
class Runs : public Tap {
public:
    void on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                  Nanos /*at*/) override {
        if (port != 0 || !outbound) return;
        wire::FrameView view;
        const Counter reason =
            wire::parse(frame.data(), frame.size(), wire::kEtherTypeDefault, view);
        ASSERT_EQ(reason, Counter::kCount);
        if (view.type == wire::FrameType::kNode) {
            ++answers;
            longest = std::max(longest, ++run);
        } else {
            run = 0;
        }
    }
    unsigned run = 0;
    unsigned longest = 0;
    unsigned answers = 0;
};

// As many ask at once as a node answers in a burst. Their answers take turns with the data.
TEST(Strangers, that_ask_at_once_are_not_answered_before_all_data) {
    constexpr unsigned kAsking = 60;
    SimCluster cluster(pair_config());
    ASSERT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    // A node answers at a limited rate: it may send a whole burst after a while.
    (void)cluster.run(kSecond / 5, [] { return false; });
    (void)stream(cluster, 2 * kMillisecond, nullptr);
    Runs runs;
    cluster.net().set_tap(&runs);
    for (unsigned n = 0; n < kAsking; ++n) {
        std::byte frame[512]{};
        wire::FrameHead head;
        head.destination = SimNet::mac_of(0);
        head.source = Mac{{2, 8, 8, 8, 0, static_cast<std::uint8_t>(n)}};
        head.type = wire::FrameType::kNode;
        wire::NodeBody ping{};
        ping.kind = wire::NodeKind::kPing;
        ping.incarnation = 1 + n;
        ping.token = std::uint64_t{1} + n;
        ping.ours = 500U;
        ping.theirs = cluster.endpoint(0);
        const std::size_t octets = wire::put_node(frame + wire::kHeadOctets, ping);
        cluster.net().inject(0, frame,
                             static_cast<std::uint32_t>(wire::build_control(frame, head, octets)));
    }
    (void)stream(cluster, 5 * kMillisecond, nullptr);
    cluster.net().set_tap(nullptr);
    EXPECT_EQ(runs.answers, kAsking);
    EXPECT_LE(runs.longest, 16U) << "answers between two data frames";
    EXPECT_EQ(cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
