// SPDX-License-Identifier: BSD-3-Clause
// Counters that wrap while a cluster works: generations of handles, of node indices, and the
// tickets of departures. Endpoints come and go across the wraps, next to a pair that stays. Each
// message arrives once, in order, at the endpoint that it was sent to.
//
// Node indices and tickets begin shortly before their wrap in each engine. Handles begin at random,
// so a seed is searched whose engine begins shortly before it. ULC_WRAP_ROUNDS: number of seeds;
// ULC_WRAP_SEED: the first. tools/soak wraps runs the long form.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr std::uint32_t kGenerations = 1U << (31 - kHandleIndexBits);
constexpr std::uint32_t kBefore = 300;    ///< generations before the wrap, at most
constexpr std::uint32_t kLeast = 100;     ///< generations before the wrap, at least
constexpr std::uint32_t kTickets = 1024;  ///< frames before the wrap of tickets
constexpr std::uint32_t kAfter = 30;      ///< cycles after it
constexpr unsigned kMessages = 4;         ///< sent by each rank in a cycle

constexpr std::uint16_t kHere = 0;   ///< the node whose handles wrap
constexpr std::uint16_t kStays = 1;  ///< node where the peer of the pair that stays is
constexpr std::uint16_t kGoes = 2;   ///< node where the peers come and go

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
    const char* given = std::getenv(variable);
    return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

ClusterConfig three_nodes(std::uint64_t seed) {
    ClusterConfig config;
    config.seed = seed;
    config.net.seed = seed;
    config.net.ports = 3;
    config.net.segments = 256;
    config.net.faults = {.loss = 0.02, .duplicate = 0.05, .reorder = 0.1};
    config.sizes = {16, 16, 16U << 10, 16U << 10};
    config.engine.endpoints_max = 2;
    config.engine.groups_max = 8;
    config.engine.jobs.jobs_max = 2 * kBefore;  // an ended job keeps its place for a while
    config.engine.accounts.user_share = 100;
    config.engine.accounts.jobs_per_second = 0;
    return config;
}

std::uint32_t generation_of(engine::EndpointId id) { return id >> kHandleIndexBits; }

/// Returns a seed whose engine at kHere gives its first endpoint a generation shortly before the
/// wrap. `first`: where the search begins.
std::uint64_t seed_before_the_wrap(std::uint64_t first) {
    for (std::uint64_t seed = first;; ++seed) {
        SimCluster cluster(three_nodes(seed));
        const engine::EndpointId id = cluster.endpoint(cluster.add_client(kHere));
        const std::uint32_t left = kGenerations - generation_of(id);
        if (left >= kLeast && left <= kBefore) return seed;
    }
}

class Wraps {
public:
    explicit Wraps(std::uint64_t seed) : cluster_(three_nodes(seed)) {}

    void run() {
        // The entry of the handles that wrap is the first one: the pair that stays has the second.
        const std::size_t first = cluster_.add_client(kHere);
        const std::size_t stays = cluster_.size();
        ASSERT_TRUE(cluster_.form(2, [](std::size_t rank) { return rank == 0 ? kHere : kStays; }));
        generation_ = generation_of(cluster_.endpoint(first));
        cluster_.kill_client(first);
        ASSERT_TRUE(ends(first));
        for (std::uint32_t n = 0, after = 0; after < kAfter; ++n) {
            cycle(n, stays);
            if (testing::Test::HasFailure()) FAIL() << "cycle " << n;
            if (wrapped_) ++after;
            ASSERT_LT(n, kBefore + kAfter) << "the handles did not wrap";
        }
        EXPECT_GT(cluster_.engine(kHere).counters().get(Counter::tx_frames), kTickets)
            << "its tickets did not wrap";
        EXPECT_GT(cluster_.count(Counter::drop_unknown_handle), 0U) << "no frame came late";
        EXPECT_TRUE(cluster_.client(stays).peers_died.empty());
        EXPECT_TRUE(cluster_.client(stays + 1).peers_died.empty());
        EXPECT_EQ(cluster_.shut_down(), 0U) << "frames are missing";
    }

private:
    bool run_until(const std::function<bool()>& done) {
        return cluster_.run(60 * kSecond, [&] {
            for (std::size_t n = 0; n < cluster_.size(); ++n)
                if (!cluster_.gone(n)) cluster_.client(n).poll();
            return done();
        });
    }
    bool ends(std::size_t client) {
        return run_until([&] {
            return cluster_.engine(cluster_.node_of(client)).detached(cluster_.endpoint(client));
        });
    }

    /// A job of two forms, exchanges messages and ends. The pair that stays does the same.
    void cycle(std::uint32_t n, std::size_t stays) {
        const std::size_t comes = cluster_.size();
        const bool formed = cluster_.form(
            2, [](std::size_t rank) { return rank == 0 ? kHere : kGoes; }, 5 * kSecond, "comes");
        ASSERT_TRUE(formed) << cluster_.client(comes).job_text << "; "
                            << cluster_.client(comes + 1).job_text;
        const std::uint32_t generation = generation_of(cluster_.endpoint(comes));
        // Generation 0 is left out.
        EXPECT_EQ(generation, generation_ + 1 == kGenerations ? 1 : generation_ + 1);
        wrapped_ |= generation < generation_;
        generation_ = generation;
        for (const std::size_t pair : {comes, stays})
            exchange(n, pair);
        if (n % 3 == 0) {  // its peer learns it by a question
            cluster_.kill_client(comes);
            ASSERT_TRUE(ends(comes));
        }
        for (const std::size_t client : {comes, comes + 1}) {
            if (cluster_.gone(client)) continue;
            ASSERT_TRUE(cluster_.client(client).leave());
            cluster_.touch(cluster_.node_of(client));
            ASSERT_TRUE(run_until([&] { return cluster_.client(client).left; }));
            cluster_.kill_client(client);
            ASSERT_TRUE(ends(client));
        }
    }

    /// Each of the pair sends some messages to the other one; `n`: their tag.
    void exchange(std::uint32_t n, std::size_t pair) {
        for (Rank rank = 0; rank < 2; ++rank) {
            for (unsigned k = 0; k < kMessages; ++k)
                ASSERT_TRUE(cluster_.client(pair + rank)
                                .send(1U - rank, n, Oracle::payload(n + k, 30 + 300 * k)));
            cluster_.touch(cluster_.node_of(pair + rank));
        }
        ASSERT_TRUE(run_until([&] {
            return cluster_.client(pair).messages.size() >= kMessages &&
                   cluster_.client(pair + 1).messages.size() >= kMessages;
        }));
        for (Rank rank = 0; rank < 2; ++rank) {
            std::vector<Message>& messages = cluster_.client(pair + rank).messages;
            ASSERT_EQ(messages.size(), kMessages);
            for (unsigned k = 0; k < kMessages; ++k) {
                EXPECT_EQ(messages[k].tag, n);
                EXPECT_EQ(messages[k].payload, Oracle::payload(n + k, 30 + 300 * k));
            }
            messages.clear();
            cluster_.client(pair + rank).sends_done.clear();
        }
    }

    SimCluster cluster_;
    std::uint32_t generation_ = 0;  ///< the last one of the first entry
    bool wrapped_ = false;
};

TEST(Wraps, are_crossed_while_endpoints_come_and_go) {
    std::uint64_t seed = number_of("ULC_WRAP_SEED", 1);
    for (std::uint64_t round = number_of("ULC_WRAP_ROUNDS", 1); round > 0; --round) {
        seed = seed_before_the_wrap(seed);
        SCOPED_TRACE("seed " + std::to_string(seed));
        Wraps(seed).run();
        if (HasFailure()) return;
        ++seed;
    }
}

}  // namespace
}  // namespace ulc::sim
