// SPDX-License-Identifier: BSD-3-Clause
// Users that share an engine: whatever endpoints of user A hold or send, user B keeps its share of
// frames and of the wire. ULC_NEIGHBOURS_ALL=1 runs each number of A's endpoints from 1 to 60.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr std::uint16_t kHere = 0;
constexpr std::uint16_t kThere = 1;
constexpr engine::UserId kUserA = 1000;
constexpr engine::UserId kUserB = 1001;
constexpr std::size_t kMessageOctets = 1200;
constexpr unsigned kMessages = 500;
constexpr unsigned kRoundTrips = 100;

enum class Style : std::uint8_t {
    kStall,  ///< A sends what it can and takes nothing
    kFlood,  ///< A sends what it can and takes everything
    kStop,   ///< A does so for 2 ms, and then nothing at all
};

/// Jobs of pairs, each with one endpoint that sends and one that receives.
class Neighbours {
public:
    Neighbours(std::uint16_t receivers, engine::UserId user_a) : receivers_(receivers), a_(user_a) {
        ClusterConfig config;
        config.net.ports = 2;
        cluster_ = std::make_unique<SimCluster>(config);
    }

    bool add_pair(engine::UserId user, std::uint16_t from, std::uint16_t to) {
        const std::size_t first = cluster_->add_client(from, user);
        (void)cluster_->add_client(to, user);
        const std::string name = "pair" + std::to_string(first);
        for (Rank rank = 0; rank < 2; ++rank) {
            if (!cluster_->client(first + rank).join(name, rank, 2)) return false;
            cluster_->touch(cluster_->node_of(first + rank));
        }
        return cluster_->run(kSecond, [&] {
            for (Rank rank = 0; rank < 2; ++rank)
                cluster_->client(first + rank).poll();
            return cluster_->client(first).formed() && cluster_->client(first + 1).formed();
        });
    }

    /// A's pairs first, then B's one from here to there.
    bool form(unsigned of_a) {
        for (unsigned n = 0; n < of_a; ++n)
            if (!add_pair(a_, kHere, receivers_)) return false;
        b_ = cluster_->size();
        return add_pair(kUserB, kHere, kThere);
    }

    /// One look of A's clients at their rings.
    void disturb(Style style) {
        if (style == Style::kStop && cluster_->now() > began_ + 2 * kMillisecond) return;
        for (std::size_t n = 0; n < b_; n += 2) {
            RingClient& sender = cluster_->client(n);
            sender.poll();
            sender.sends_done.clear();
            while (sender.send(1, 0, payload_)) {
            }
            if (style == Style::kStall) continue;
            cluster_->client(n + 1).poll();
            cluster_->client(n + 1).messages.clear();
        }
    }

    /// Returns the time that B's stream takes; kNever: it did not end.
    Nanos stream(Style style) {
        const Nanos begin = cluster_->now();
        RingClient& from = cluster_->client(b_);
        RingClient& to = cluster_->client(b_ + 1);
        unsigned sent = 0;
        std::size_t received = 0;
        const bool done = cluster_->run(
            5 * kSecond, [&] { return received == kMessages; },
            [&] {
                disturb(style);
                from.poll();
                from.sends_done.clear();
                while (sent < kMessages && from.send(1, 0, payload_))
                    ++sent;
                to.poll();
                received += to.messages.size();
                to.messages.clear();
            });
        return done ? cluster_->now() - begin : kNever;
    }

    /// The slowest but one of B's round trips.
    Nanos ping(Style style) {
        RingClient& from = cluster_->client(b_);
        RingClient& to = cluster_->client(b_ + 1);
        std::vector<Nanos> times;
        for (unsigned n = 0; n < kRoundTrips; ++n) {
            const Nanos begin = cluster_->now();
            if (!from.send(1, 0, std::span(payload_).first(8))) return kNever;
            const bool done = cluster_->run(
                kSecond, [&] { return !from.messages.empty(); },
                [&] {
                    disturb(style);
                    from.poll();
                    to.poll();
                    if (!to.messages.empty()) (void)to.send(0, 0, std::span(payload_).first(8));
                    to.messages.clear();
                });
            if (!done) return kNever;
            from.messages.clear();
            times.push_back(cluster_->now() - begin);
        }
        std::ranges::sort(times);
        return times[times.size() - 2];
    }

    /// A fills what it can before B begins.
    void begin(Style style) {
        began_ = cluster_->now();
        (void)cluster_->run(
            5 * kMillisecond, [] { return false; }, [&] { disturb(style); });
    }

    [[nodiscard]] SimCluster& cluster() noexcept { return *cluster_; }

private:
    std::uint16_t receivers_;
    engine::UserId a_;
    std::unique_ptr<SimCluster> cluster_;
    std::vector<std::byte> payload_ = Oracle::payload(1, kMessageOctets);
    std::size_t b_ = 0;
    Nanos began_ = 0;
};

std::vector<unsigned> counts() {
    if (std::getenv("ULC_NEIGHBOURS_ALL") == nullptr) return {4};
    std::vector<unsigned> all(30);
    for (unsigned n = 0; n < all.size(); ++n)
        all[n] = n + 1;
    return all;
}

struct Times {
    Nanos stream = kNever;
    Nanos ping = kNever;
};

Times measure(unsigned of_a, Style style, std::uint16_t receivers, engine::UserId user_a) {
    Neighbours neighbours(receivers, user_a);
    if (!neighbours.form(of_a)) return {};
    neighbours.begin(style);
    Times times;
    times.stream = neighbours.stream(style);
    times.ping = neighbours.ping(style);
    return times;
}

struct Case {
    Style style;
    std::uint16_t receivers;  ///< A's: the node of its senders, or the other one
};

class Neighbour : public testing::TestWithParam<Case> {};

TEST_P(Neighbour, keeps_its_share_whatever_another_user_does) {
    const Times alone = measure(0, Style::kStop, kThere, kUserA);
    ASSERT_NE(alone.stream, kNever);
    for (const unsigned count : counts()) {
        const Times with = measure(count, GetParam().style, GetParam().receivers, kUserA);
        // Two users: half of the throughput, and what frames of A at the port hold up.
        EXPECT_LE(with.stream, alone.stream * 22 / 10) << count << " pairs of A, two users";
        EXPECT_LE(with.ping, alone.ping * 3) << count << " pairs of A";
    }
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
    const char* const names[] = {"stall", "flood", "stop"};
    return std::string(names[static_cast<int>(info.param.style)]) +
           (info.param.receivers == kHere ? "_here" : "_there");
}

INSTANTIATE_TEST_SUITE_P(Styles, Neighbour,
                         testing::Values(Case{Style::kStall, kThere}, Case{Style::kStall, kHere},
                                         Case{Style::kFlood, kThere}, Case{Style::kStop, kThere},
                                         Case{Style::kStop, kHere}),
                         name_of);

// Ranks of one node that compute take nothing. Those of the same user that do not compute go on.
TEST(NeighbourOfOneUser, goes_on_while_other_endpoints_of_the_user_compute) {
    const Times alone = measure(0, Style::kStop, kThere, kUserB);
    for (const std::uint16_t receivers : {kHere, kThere}) {
        const Times with = measure(8, Style::kStall, receivers, kUserB);
        EXPECT_LE(with.stream, alone.stream * 3);
        EXPECT_LE(with.ping, alone.ping * 3);
    }
}

}  // namespace
}  // namespace ulc::sim
