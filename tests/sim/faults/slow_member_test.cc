// SPDX-License-Identifier: BSD-3-Clause
// A member of a group that is slow or silent: the sender learns which, and if it wants to, goes on
// without it. The excluded member hears of it, and misses nothing silently (docs/PROTOCOL.md §8).
// Members compute, have a line a tenth as fast, answer pings alone, or are not heard.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr Nanos kLimit = 20 * kMillisecond;
constexpr Nanos kSpan = 20 * kMillisecond;  ///< over which goodput is measured
constexpr std::size_t kOctets = 1200;
constexpr Rank kSlow = 3;
constexpr std::uint64_t kRate = 100'000'000;

/// Rank 0 multicasts without end to ranks 1 … 3, each on a separate node unless `place` says
/// otherwise.
class Multicast {
public:
    using Place = std::function<std::uint16_t(std::size_t)>;

    explicit Multicast(const NetConfig& net, std::size_t ranks = 4, const Place& place = nullptr)
        : cluster_([&] {
              ClusterConfig config;
              config.net = net;
              config.engine.params.hold_limit = kLimit;
              config.engine.params.rx_pool_packets = 64;
              return config;
          }()) {
        formed_ = cluster_.form(
            ranks, place ? place : [](std::size_t n) { return static_cast<std::uint16_t>(n); });
        for (std::size_t n = 0; n < ranks; ++n) {
            members_.push_back(std::make_unique<Member>(*this, static_cast<Rank>(n)));
            cluster_.set_program(n, members_.back().get());
        }
    }

    bool set_hold(Nanos limit, bool excludes, std::span<const Rank> keep = {}) {
        const bool said = client(0).set_hold(limit, excludes, keep);
        cluster_.touch(0);
        return said;
    }

    /// Runs for `span`; those in `compute` take nothing. Returns the octets a second of rank 1.
    double run(Nanos span, const std::set<Rank>& compute = {}) {
        const std::size_t before = client(1).messages.size();
        for (const Rank rank : compute)
            cluster_.pause_client(rank, cluster_.now() + span + kMillisecond);
        sends_ = true;
        cluster_.set_program(0, members_[0].get());
        (void)cluster_.run(span, [] { return false; });
        sends_ = false;
        const auto came = static_cast<double>(client(1).messages.size() - before);
        return came * kOctets * static_cast<double>(kSecond) / static_cast<double>(span);
    }

    /// No more is sent, and all take what comes, until done() or the limit. True: done.
    bool settle(Nanos limit, const std::function<bool()>& done) {
        return cluster_.run(limit, done);
    }
    /// The same until the rank has heard that a peer is gone.
    bool hears(Rank rank, Nanos limit) {
        return settle(limit, [&] { return !client(rank).peers_died.empty(); });
    }

    /// Expects the beginning of all that was sent, each message once and whole.
    void expect_prefix(Rank rank) {
        const auto& messages = client(rank).messages;
        for (std::size_t n = 0; n < messages.size(); ++n) {
            ASSERT_EQ(messages[n].tag, n) << "rank " << rank;
            ASSERT_EQ(messages[n].payload, Oracle::payload(n, kOctets)) << "rank " << rank;
        }
        EXPECT_EQ(client(rank).broken, 0U);
    }
    /// Returns the milliseconds that `who` heard of, with that error and source.
    [[nodiscard]] std::uint64_t told(Rank who, Rank source, Err error) {
        std::uint64_t sum = 0;
        for (const Report& report : client(who).reports)
            if (report.error == error && report.source == source) sum += report.count;
        return sum;
    }
    [[nodiscard]] RingClient& client(std::size_t rank) { return cluster_.client(rank); }
    [[nodiscard]] SimCluster& cluster() noexcept { return cluster_; }
    [[nodiscard]] bool formed() const noexcept { return formed_; }
    [[nodiscard]] std::uint64_t sent() const noexcept { return next_; }

private:
    /// Takes what comes; rank 0 sends what it can.
    class Member : public Program {
    public:
        Member(Multicast& group, Rank rank) : group_(group), rank_(rank) {}
        Nanos act(Nanos) override {
            group_.client(rank_).poll();
            if (rank_ == 0 && group_.sends_) group_.send();
            return kNever;
        }

    private:
        Multicast& group_;
        Rank rank_;
    };
    void send() {
        for (const auto& [cookie, status] : client(0).sends_done)
            refused_ |= status != 0;  // no member is left, and sends would end at once
        client(0).sends_done.clear();
        if (refused_) return;
        while (client(0).send(client(0).world, next_, payload_))
            payload_ = Oracle::payload(++next_, kOctets);
    }

    SimCluster cluster_;
    std::vector<std::unique_ptr<Member>> members_;
    bool sends_ = false;
    bool refused_ = false;
    bool formed_ = false;
    std::uint64_t next_ = 0;
    std::vector<std::byte> payload_ = Oracle::payload(0, kOctets);
};

NetConfig wire() {
    NetConfig net;
    net.ports = 4;
    net.bits_per_second = kRate;
    return net;
}
/// The slow rank's port is a tenth as fast.
NetConfig slow_line(std::uint64_t buffer_octets) {
    NetConfig net = wire();
    net.port_bits_per_second = {kRate, kRate, kRate, kRate / 10};
    net.buffer_octets = buffer_octets;
    return net;
}

/// Goodput where no member is slow.
double alone() {
    static const double octets = [] {
        Multicast group(wire());
        (void)group.run(kSpan);
        return group.run(kSpan);
    }();
    return octets;
}

/// Both sides have ended their relation, and both know why; all others have all of theirs.
void expect_excluded(Multicast& group, Rank out) {
    EXPECT_EQ(group.client(0).peers_died, std::vector<Rank>{out});
    EXPECT_EQ(group.client(out).peers_died, std::vector<Rank>{0});
    EXPECT_EQ(group.told(0, out, Err::kExcluded), 1U);
    EXPECT_EQ(group.told(out, 0, Err::kExcluded), 1U);
    for (std::size_t member = 1; member < group.cluster().size(); ++member) {
        const Rank rank = static_cast<Rank>(member);
        if (rank == out) continue;
        EXPECT_TRUE(group.client(rank).peers_died.empty()) << "rank " << rank;
        EXPECT_TRUE(group.client(rank).reports.empty()) << "rank " << rank;
    }
}

// N-21
TEST(SlowMember, one_that_computes_is_named_and_waited_for) {
    Multicast group(wire());
    ASSERT_TRUE(group.formed());
    (void)group.run(3 * kLimit, {kSlow});
    ASSERT_GE(group.told(0, kSlow, Err::kPeerSlow), 40U);
    EXPECT_EQ(group.client(0).reports.front().stream, group.client(0).world);
    EXPECT_EQ(group.run(kSpan, {kSlow}), 0);  // the others wait, as always
    for (const Report& report : group.client(0).reports)
        EXPECT_EQ(report.source, kSlow);
    EXPECT_GE(group.cluster().count(Counter::held_by_slow), 2U);
    EXPECT_EQ(group.cluster().count(Counter::held_by_silent), 0U);
    EXPECT_EQ(group.cluster().count(Counter::members_excluded), 0U);
    (void)group.run(kSpan);
    const std::size_t told = group.client(0).reports.size();
    EXPECT_GE(group.run(kSpan), 0.9 * alone());
    (void)group.run(2 * kLimit);
    EXPECT_EQ(group.client(0).reports.size(), told) << "it takes messages again";
    for (const Rank rank : {1, 2, 3})
        group.expect_prefix(rank);
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

// N-23, N-26
TEST(SlowMember, one_that_computes_is_excluded_and_the_others_go_on) {
    Multicast group(wire());
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true));
    (void)group.run(2 * kLimit, {kSlow});
    EXPECT_GE(group.run(kSpan, {kSlow}), 0.9 * alone());
    const std::size_t had = group.client(kSlow).messages.size();
    (void)group.run(kSpan);
    EXPECT_GT(group.client(kSlow).messages.size(), had) << "what had come in order is delivered";
    expect_excluded(group, kSlow);
    EXPECT_EQ(group.cluster().count(Counter::members_excluded), 1U);
    for (const Rank rank : {1, 2, 3})
        group.expect_prefix(rank);
    // It is still a peer of the others.
    ASSERT_TRUE(group.client(kSlow).send(1, 0, Oracle::payload(1, 10)));
    group.cluster().touch(3);
    const auto from_slow = [&] {
        for (const Message& message : group.client(1).messages)
            if (message.source == kSlow) return true;
        return false;
    };
    (void)group.run(kSpan);
    EXPECT_TRUE(from_slow());
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

/// Returns whether the engine of a rank calls the other one near.
bool is_near(Multicast& group, Rank rank, Rank other) {
    auto& client = group.client(rank);
    const std::size_t before = client.answered.size();
    client.near.erase(other);
    bool asked = false;  // its ring may be full of sends
    EXPECT_TRUE(group.settle(kSpan, [&] {
        if (!asked && client.ask_near(other)) {
            asked = true;
            group.cluster().touch(0);
        }
        return client.answered.size() > before;
    }));
    return client.near.contains(other);
}

// The two share no memory from then on, though both processes live on one node.
TEST(SlowMember, one_that_is_excluded_is_not_near_any_more) {
    // One rank is elsewhere: a wire bounds how much the others send in that time.
    const auto place = [](std::size_t n) {
        return static_cast<std::uint16_t>(n < 2 || n == kSlow ? 0 : n);
    };
    Multicast group(wire(), 4, place);
    ASSERT_TRUE(group.formed());
    EXPECT_TRUE(is_near(group, 0, kSlow) && is_near(group, kSlow, 0));
    ASSERT_TRUE(group.set_hold(kLimit, true));
    (void)group.run(2 * kLimit, {kSlow});
    (void)group.run(kSpan);
    ASSERT_EQ(group.client(0).peers_died, std::vector<Rank>{kSlow});
    EXPECT_FALSE(is_near(group, 0, kSlow));
    EXPECT_FALSE(is_near(group, kSlow, 0));
    EXPECT_TRUE(is_near(group, 0, 1));
}

// N-23
TEST(SlowMember, one_on_the_senders_node_is_excluded_too) {
    const auto place = [](std::size_t n) { return static_cast<std::uint16_t>(n == kSlow ? 0 : n); };
    Multicast group(wire(), 4, place);
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true));
    (void)group.run(2 * kLimit, {kSlow});
    EXPECT_GE(group.run(kSpan, {kSlow}), 0.9 * alone());
    (void)group.run(kSpan);
    expect_excluded(group, kSlow);
    group.expect_prefix(kSlow);
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

TEST(SlowMember, one_that_is_excluded_costs_its_neighbours_nothing) {
    const auto place = [](std::size_t n) { return static_cast<std::uint16_t>(n < 4 ? n : 3); };
    Multicast group(wire(), 5, place);  // ranks 3 and 4 on one node
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true));
    (void)group.run(2 * kLimit, {kSlow});
    (void)group.run(5 * kSecond / 100);
    expect_excluded(group, kSlow);
    group.expect_prefix(4);
    EXPECT_EQ(group.client(4).messages.size(), group.client(1).messages.size());
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

// N-22
TEST(SlowMember, one_that_is_to_be_kept_is_waited_for) {
    Multicast group(wire());
    const std::array<Rank, 1> keep{kSlow};
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true, keep));
    (void)group.run(4 * kLimit, {2, kSlow});
    EXPECT_GE(group.told(0, kSlow, Err::kPeerSlow), 40U);
    EXPECT_EQ(group.client(0).peers_died, std::vector<Rank>{2});
    EXPECT_EQ(group.run(kSpan, {2, kSlow}), 0);
    (void)group.run(kSpan);
    EXPECT_GE(group.run(kSpan), 0.9 * alone());
    for (const Rank rank : {1, 2, 3})
        group.expect_prefix(rank);
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

// N-21, N-22
TEST(SlowMember, where_all_hold_up_the_group_none_is_excluded) {
    Multicast group(wire());
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true));
    (void)group.run(4 * kLimit, {1, 2, kSlow});
    for (const Rank rank : {1, 2, 3})
        EXPECT_GE(group.told(0, rank, Err::kPeerSlow), 40U);
    EXPECT_TRUE(group.client(0).peers_died.empty());
    (void)group.run(kSpan);
    EXPECT_GE(group.run(kSpan), 0.9 * alone());
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

class Line : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Line, a_tenth_as_fast_is_named_and_waited_for) {
    Multicast group(slow_line(GetParam()));
    ASSERT_TRUE(group.formed());
    (void)group.run(kLimit);  // buffers fill
    (void)group.run(2 * kLimit);
    EXPECT_GE(group.told(0, kSlow, Err::kPeerSlow), 20U);
    for (const Rank rank : {1, 2})
        EXPECT_EQ(group.told(0, rank, Err::kPeerSlow), 0U);
    (void)group.run(8 * kSpan);  // the first credit is the whole window
    EXPECT_GE(group.run(8 * kSpan), alone() / 20);
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

TEST_P(Line, a_tenth_as_fast_is_excluded_and_the_others_go_on) {
    Multicast group(slow_line(GetParam()));
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true));
    (void)group.run(kLimit);  // buffers fill
    (void)group.run(2 * kLimit);
    (void)group.run(kSpan);
    EXPECT_GE(group.run(kSpan), 0.9 * alone());
    EXPECT_TRUE(group.hears(kSlow, 5 * kSecond));
    expect_excluded(group, kSlow);
    for (const Rank rank : {1, 2, 3})
        group.expect_prefix(rank);
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Buffers, Line, testing::Values(0, 64U << 10),
                         [](const auto& line) { return line.param == 0 ? "endless" : "64_KiB"; });

// N-21
TEST(SilentMember, one_whose_node_answers_pings_is_named_and_waited_for) {
    Multicast group(wire());
    ASSERT_TRUE(group.formed());
    (void)group.run(kSpan);
    group.cluster().net().faults().mute(kSlow);
    (void)group.run(3 * kLimit);
    EXPECT_GE(group.told(0, kSlow, Err::kPeerSilent), 20U);
    EXPECT_EQ(group.cluster().count(Counter::held_by_slow), 0U);
    EXPECT_EQ(group.run(kSpan), 0);
    EXPECT_TRUE(group.client(0).peers_died.empty());
}

TEST(SilentMember, one_whose_node_answers_pings_is_excluded) {
    Multicast group(wire());
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true));
    (void)group.run(kSpan);
    group.cluster().net().faults().mute(kSlow);
    (void)group.run(2 * kLimit);
    EXPECT_GE(group.run(kSpan), 0.9 * alone());
    EXPECT_TRUE(group.hears(kSlow, kSecond));
    expect_excluded(group, kSlow);
    group.expect_prefix(kSlow);
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

TEST(SilentMember, one_that_is_not_heard_is_excluded_before_its_node_is_dead) {
    Multicast group(wire());
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true));
    group.cluster().net().faults().cut(kSlow, 0, true);
    (void)group.run(3 * kLimit);
    EXPECT_GE(group.run(kSpan), 0.9 * alone());
    EXPECT_GE(group.told(0, kSlow, Err::kPeerSilent), 20U);
    EXPECT_EQ(group.client(0).peers_died, std::vector<Rank>{kSlow});
    // It cannot ask, so it learns it as the end of a node that leaves its pings unanswered.
    EXPECT_TRUE(group.hears(kSlow, 5 * kSecond));
    EXPECT_EQ(group.client(kSlow).peers_died, std::vector<Rank>{0});
    group.expect_prefix(kSlow);
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

// N-24
TEST(SlowMember, the_word_is_repeated_until_it_is_heard) {
    Multicast group(wire());
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true));
    (void)group.run(kLimit - kMillisecond, {kSlow});
    group.cluster().net().faults().cut(0, kSlow, true);
    (void)group.run(2 * kLimit, {kSlow});
    ASSERT_EQ(group.client(0).peers_died, std::vector<Rank>{kSlow});
    group.cluster().net().faults().cut(0, kSlow, false);
    EXPECT_TRUE(group.hears(kSlow, 2 * kSecond));
    EXPECT_EQ(group.told(kSlow, 0, Err::kExcluded), 1U);
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

// N-20
TEST(SlowMember, one_that_computes_for_less_than_a_tenth_of_the_time_is_not_named) {
    Multicast group(wire());
    ASSERT_TRUE(group.formed() && group.set_hold(kLimit, true));
    for (int turn = 0; turn < 8; ++turn) {
        (void)group.run(kLimit / 2, {kSlow});
        (void)group.run(6 * kLimit);
    }
    EXPECT_TRUE(group.client(0).reports.empty());
    EXPECT_EQ(group.cluster().shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
