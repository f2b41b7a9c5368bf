// SPDX-License-Identifier: BSD-3-Clause
// Upgrades at each event of short runs that have what is hard to carry over: links, long messages
// that were announced, endpoints that leave, groups under repair. Each run shows the same frames at
// the same times, the same completions and the same counters as without upgrades.
#include <gtest/gtest.h>
#include <ulc.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"
#include "tests/sim/trace/recorder.h"

namespace ulc::sim {
namespace {

using Done = std::function<bool()>;

/// Replaces the engines of all nodes in the events from `first` on, each `every`; 0: in none.
struct Plan {
    std::uint64_t first = 0;
    std::uint64_t every = 0;
    std::uint64_t events = 0;
    std::uint64_t upgrades = 0;

    void event(SimCluster& cluster) {
        const std::uint64_t n = events++;
        if (every == 0 || n < first || (n - first) % every != 0) return;
        for (std::uint16_t node = 0; node < cluster.nodes(); ++node) {
            if (!cluster.alive(node)) continue;
            ASSERT_TRUE(cluster.upgrade_node(node)) << cluster.upgrade_error();
            cluster.engine(node).check_invariants();
            ++upgrades;
        }
    }
    /// Runs until done(), with the upgrades of the plan.
    [[nodiscard]] bool run(SimCluster& cluster, const Done& done, Nanos limit = 10 * kSecond) {
        return cluster.run(limit, [&] {
            event(cluster);
            return testing::Test::HasFatalFailure() || done();
        });
    }
};

ClusterConfig three_nodes(Recorder& recorder) {
    ClusterConfig config;
    config.net.ports = 3;
    config.net.segments = 512;
    config.recorder = &recorder;
    return config;
}

using Scenario = std::function<void(const ClusterConfig&, Plan&)>;

/// Compares runs with the one without: upgrades in every event, in every third one, and in single
/// ones, as many as five.
void compare(const Scenario& scenario) {
    Recorder without;
    Plan none;
    scenario(three_nodes(without), none);
    ASSERT_FALSE(testing::Test::HasFailure());
    std::vector<Plan> plans{{0, 1}, {1, 3}};
    for (std::uint64_t alone = 0; alone < none.events; alone += 1 + none.events / 4)
        plans.push_back({alone, UINT64_MAX});
    for (Plan& plan : plans) {
        Recorder with;
        scenario(three_nodes(with), plan);
        EXPECT_EQ(without.difference(with), "");
        EXPECT_GT(plan.upgrades, 0U);
        if (testing::Test::HasFailure())
            FAIL() << "upgrades from event " << plan.first << " on, each " << plan.every;
    }
}

void poll_all(SimCluster& cluster) {
    for (std::size_t n = 0; n < cluster.size(); ++n)
        if (!cluster.gone(n)) cluster.client(n).poll();
}

[[nodiscard]] std::size_t received(SimCluster& cluster, std::size_t client) {
    return cluster.client(client).messages.size();
}

TEST(UpgradeEvents, links) {
    compare([](const ClusterConfig& given, Plan& plan) {
        ClusterConfig config = given;
        config.net.faults = {.loss = 0.1, .duplicate = 0.05, .reorder = 0.1};
        SimCluster cluster(config);
        for (std::uint16_t node = 0; node < 3; ++node) {
            cluster.add_client(node);
            ASSERT_TRUE(cluster.client(node).open_links(3, static_cast<std::uint8_t>(1 + node)));
            cluster.touch(node);
        }
        const auto polled = [&](const Done& done) {
            return plan.run(cluster, [&] {
                poll_all(cluster);
                return done();
            });
        };
        ASSERT_TRUE(polled([&] { return cluster.client(2).links_open; }));
        ASSERT_TRUE(polled([&] { return cluster.client(1).links_open; }));
        for (std::uint16_t from = 1; from < 3; ++from) {
            ASSERT_NE(cluster.client(from).link(cluster.client(0).address), 0U);
            cluster.touch(from);
        }
        ASSERT_TRUE(polled([&] { return cluster.client(0).linked.size() == 2; }));
        ASSERT_TRUE(polled([&] { return cluster.client(1).link_done.size() == 1; }));
        ASSERT_TRUE(polled([&] { return cluster.client(2).link_done.size() == 1; }));
        for (std::uint64_t n = 0; n < 6; ++n) {
            for (const auto& [slot, called] : cluster.client(0).linked)
                ASSERT_TRUE(cluster.client(0).send(slot, n, Oracle::payload(n, 700 * n)));
            ASSERT_TRUE(cluster.client(1).send(0, n, Oracle::payload(n, 300)));
            cluster.touch(0);
            cluster.touch(1);
        }
        ASSERT_TRUE(polled([&] {
            return received(cluster, 0) == 6 && received(cluster, 1) == 6 &&
                   received(cluster, 2) == 6;
        }));
        ASSERT_TRUE(cluster.client(1).unlink(0));
        cluster.touch(1);
        ASSERT_TRUE(polled([&] {
            return cluster.client(1).unlinked.size() == 1 &&
                   cluster.client(0).peers_left.size() == 1;
        }));
        ASSERT_TRUE(cluster.client(0).unlink(cluster.client(0).peers_left[0]));
        cluster.touch(0);
        cluster.kill_client(2);
        ASSERT_TRUE(polled([&] {
            return cluster.client(0).unlinked.size() == 1 &&
                   cluster.client(0).peers_died.size() == 1;
        }));
        EXPECT_EQ(cluster.shut_down(), 0U);
    });
}

TEST(UpgradeEvents, long_messages_that_are_announced) {
    compare([](const ClusterConfig& given, Plan& plan) {
        ClusterConfig config = given;
        config.net.faults = {.loss = 0.02, .reorder = 0.02};
        LibCluster lib(config, 3);
        ASSERT_TRUE(lib.form());
        constexpr std::size_t kMessages = 3;
        std::vector<std::vector<std::byte>> sent(kMessages);
        std::vector<std::vector<std::byte>> taken(kMessages);
        std::array<std::array<ulc_piece, 2>, kMessages> pieces{};
        std::vector<ulc_request> sends(kMessages);
        std::vector<ulc_request> receives(kMessages);
        const auto from = [](std::size_t n) { return static_cast<std::uint16_t>(n % 3); };
        const auto to = [](std::size_t n) { return static_cast<std::uint16_t>((n + 1) % 3); };
        for (std::uint16_t rank = 0; rank < 3; ++rank)
            ASSERT_EQ(ulc_set_rendezvous(lib.endpoint(rank), 10'000, 50'000), ULC_OK);
        for (std::size_t n = 0; n < kMessages; ++n) {
            sent[n] = Oracle::payload(n, 20'000 + 5'000 * n);
            taken[n].resize(sent[n].size());
            pieces[n] = {{{sent[n].data(), 9999}, {sent[n].data() + 9999, sent[n].size() - 9999}}};
            ASSERT_EQ(ulc_sendv(lib.endpoint(from(n)), to(n), n, pieces[n].data(), 2, 0, &sends[n]),
                      ULC_OK);
        }
        std::size_t posted = 0;
        const auto done = [&] {
            plan.event(lib.cluster());
            if (testing::Test::HasFatalFailure()) return true;
            if (posted < kMessages && plan.events % 64 == 0) {
                EXPECT_EQ(
                    ulc_receive(lib.endpoint(to(posted)), from(posted), posted, ~0ULL >> 2,
                                taken[posted].data(), taken[posted].size(), &receives[posted]),
                    ULC_OK);
                ++posted;
            }
            for (std::size_t n = 0; n < kMessages; ++n)
                if (n >= posted ||
                    ulc_test(lib.endpoint(from(n)), &sends[n], nullptr) == ULC_ERR_AGAIN ||
                    ulc_test(lib.endpoint(to(n)), &receives[n], nullptr) == ULC_ERR_AGAIN)
                    return false;
            return true;
        };
        ASSERT_TRUE(lib.run(10 * kSecond, done, [](std::uint16_t, Nanos) { return kNever; }));
        EXPECT_EQ(sent, taken);
        EXPECT_EQ(lib.shut_down(), 0U);
    });
}

TEST(UpgradeEvents, endpoints_that_leave) {
    compare([](const ClusterConfig& config, Plan& plan) {
        SimCluster cluster(config);
        ASSERT_TRUE(
            cluster.form(4, [](std::size_t rank) { return static_cast<std::uint16_t>(rank % 3); }));
        for (std::uint64_t n = 0; n < 8; ++n)
            for (std::size_t rank = 1; rank < 4; ++rank)
                ASSERT_TRUE(cluster.client(rank).send(0, n, Oracle::payload(n, 200 * n)));
        ASSERT_TRUE(cluster.client(1).leave());
        cluster.net().faults().lose_next(1, 0, 3);
        cluster.close_client(2);  // it lingers
        for (std::uint16_t node = 0; node < 3; ++node)
            cluster.touch(node);
        const auto polled = [&](const Done& done) {
            return plan.run(cluster, [&] {
                poll_all(cluster);
                return done();
            });
        };
        ASSERT_TRUE(polled([&] { return received(cluster, 0) == 24; }));
        ASSERT_TRUE(polled(
            [&] { return cluster.client(1).left && cluster.client(0).peers_left.size() == 2; }));
        cluster.kill_client(3);
        ASSERT_TRUE(polled([&] { return cluster.client(0).peers_died.size() == 1; }));
        for (const std::uint16_t node : {0, 0, 1}) {
            const std::size_t fresh = cluster.add_client(node);
            config.recorder->note_end("handle of a new endpoint", cluster.endpoint(fresh));
        }
        EXPECT_EQ(cluster.shut_down(), 0U);
    });
}

TEST(UpgradeEvents, a_group_under_repair) {
    compare([](const ClusterConfig& given, Plan& plan) {
        ClusterConfig config = given;
        config.net.faults = {.reorder = 0.2};
        SimCluster cluster(config);
        ASSERT_TRUE(
            cluster.form(4, [](std::size_t rank) { return static_cast<std::uint16_t>(rank % 3); }));
        const auto polled = [&](const Done& done) {
            return plan.run(cluster, [&] {
                poll_all(cluster);
                return done();
            });
        };
        constexpr GroupHandle kGroup = kGroupBit | 99U;
        const std::vector<Rank> members{0, 1, 2, 3};
        for (std::size_t rank = 0; rank < 4; ++rank) {
            ASSERT_TRUE(cluster.client(rank).add_group(kGroup, members));
            cluster.touch(cluster.node_of(rank));
        }
        ASSERT_TRUE(polled([&] {
            for (std::size_t rank = 0; rank < 4; ++rank)
                if (cluster.client(rank).groups.empty()) return false;
            return true;
        }));
        cluster.net().faults().lose_next(0, 1, 3);
        cluster.net().faults().lose_next(0, 2, 1);
        for (std::uint64_t n = 0; n < 8; ++n) {
            ASSERT_TRUE(cluster.client(0).send(kGroup, n, Oracle::payload(n, 400 * n),
                                               n % 3 == 2 ? 6U : 0U));
            ASSERT_TRUE(cluster.client(1).send(kGroup, n, Oracle::payload(n, 100)));
        }
        cluster.touch(0);
        cluster.touch(1);
        ASSERT_TRUE(polled([&] {
            return received(cluster, 0) == 8 && received(cluster, 1) == 8 &&
                   received(cluster, 2) == 16 && received(cluster, 3) == 14;
        }));
        EXPECT_GT(cluster.count(Counter::repair_multicast) + cluster.count(Counter::repair_unicast),
                  0U);
        EXPECT_EQ(cluster.shut_down(), 0U);
    });
}

/// Three clients on one node send at once, of these users: whose frames go first is part of the
/// state.
void share_an_engine(const std::array<engine::UserId, 3>& users) {
    compare([&users](const ClusterConfig& given, Plan& plan) {
        ClusterConfig config = given;
        config.engine.frames_per_round = 2;
        SimCluster cluster(config);
        for (std::size_t n = 0; n < users.size(); ++n)
            cluster.add_client(0, users[n]);
        cluster.add_client(1);
        for (std::uint16_t rank = 0; rank < 4; ++rank) {
            ASSERT_TRUE(cluster.client(rank).join("shared", rank, 4));
            cluster.touch(cluster.node_of(rank));
        }
        const auto polled = [&](const Done& done) {
            return plan.run(cluster, [&] {
                poll_all(cluster);
                return done();
            });
        };
        ASSERT_TRUE(polled([&] {
            for (std::size_t rank = 0; rank < 4; ++rank)
                if (!cluster.client(rank).formed()) return false;
            return true;
        }));
        for (std::uint64_t n = 0; n < 8; ++n)
            for (std::size_t rank = 0; rank < users.size(); ++rank)
                ASSERT_TRUE(cluster.client(rank).send(3, n, Oracle::payload(n, 1000)));
        cluster.touch(0);
        ASSERT_TRUE(polled([&] { return received(cluster, 3) == 8 * users.size(); }));
        EXPECT_EQ(cluster.shut_down(), 0U);
    });
}

TEST(UpgradeEvents, endpoints_of_one_user) { share_an_engine({7, 7, 7}); }

TEST(UpgradeEvents, endpoints_of_two_users) { share_an_engine({7, 8, 7}); }

}  // namespace
}  // namespace ulc::sim
