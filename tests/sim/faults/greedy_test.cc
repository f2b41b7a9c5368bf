// SPDX-License-Identifier: BSD-3-Clause
// A user that takes all it can of endpoints, groups and jobs, or writes bad records without end:
// another user attaches and forms a job within a second, and the wire sees few broadcasts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr engine::UserId kUserA = 1000;
constexpr engine::UserId kUserB = 1001;

ClusterConfig shared_engines() {
    ClusterConfig config;
    config.net.ports = 2;
    config.sizes = {64, 64, 64U << 10, 64U << 10};
    config.engine.endpoints_max = 16;
    config.engine.groups_max = 32;
    config.engine.accounts.user_share = 90;
    config.engine.accounts.jobs_per_second = 10;
    config.engine.accounts.errors_per_second = 1000;
    return config;
}

/// Counts the broadcast frames that leave port 0.
class BroadcastTap : public Tap {
public:
    void on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                  Nanos) override {
        if (outbound && port == 0 && frame[0] == std::byte{0xff}) ++count;
    }
    std::uint64_t count = 0;
};

/// Joins a job of two as rank 1, whose rank 0 never comes, for that long.
void join_no_job(RingClient& client, unsigned number, Nanos patience) {
    abi::JoinRequest request{};
    const std::string name = "no-such-job" + std::to_string(number);
    std::memcpy(request.name, name.data(), name.size());
    request.name_length = static_cast<std::uint16_t>(name.size());
    request.rank = 1;
    request.size = 2;
    request.timeout_ns = patience;
    std::memcpy(client.region().tx(0, sizeof request), &request, sizeof request);
    abi::SubmissionRecord record{};
    record.kind = abi::SubmitKind::kJoinJob;
    record.body.block = {0, sizeof request, 0, 0, 0, 0};
    client.job_status = static_cast<int>(Err::kAgain);
    (void)client.submit(record);
}

/// A job of B on both nodes forms within a second, while `tick` runs. False: it did not.
bool forms_within_a_second(SimCluster& cluster, const std::function<void()>& tick) {
    const std::size_t first = cluster.add_client(0, kUserB);
    (void)cluster.add_client(1, kUserB);
    for (Rank rank = 0; rank < 2; ++rank)
        if (!cluster.client(first + rank).join("of-b", rank, 2)) return false;
    return cluster.run(
        kSecond,
        [&] {
            cluster.client(first).poll();
            cluster.client(first + 1).poll();
            return cluster.client(first).formed() && cluster.client(first + 1).formed();
        },
        tick);
}

// Short jobs of one user that come faster than its rate wait for their turn.
TEST(Greedy, jobs_beyond_the_rate_form_within_their_join_time) {
    ClusterConfig config = shared_engines();
    config.engine.accounts.jobs_burst = 2;
    SimCluster cluster(config);
    constexpr std::size_t kJobs = 6;
    for (std::size_t job = 0; job < kJobs; ++job) {
        const std::string name = "short-" + std::to_string(job);
        for (Rank rank = 0; rank < 2; ++rank) {
            const std::size_t client = cluster.add_client(rank, kUserA);
            ASSERT_TRUE(cluster.client(client).join(name, rank, 2));
        }
    }
    const Nanos begun = cluster.now();
    EXPECT_TRUE(cluster.run(
        kSecond,
        [&] {
            for (std::size_t client = 0; client < 2 * kJobs; ++client)
                if (!cluster.client(client).formed()) return false;
            return true;
        },
        [&] {
            for (std::size_t client = 0; client < 2 * kJobs; ++client)
                cluster.client(client).poll();
        }));
    EXPECT_GE(cluster.now() - begun, 4 * kSecond / 10) << "the rate held";
    EXPECT_EQ(cluster.count(Counter::refused_jobs), 0U);
}

// Jobs within a node send nothing, so they do not use up the rate of those between nodes.
TEST(Greedy, jobs_within_a_node_leave_the_turns_to_others) {
    ClusterConfig config = shared_engines();
    config.engine.accounts.jobs_burst = 2;
    SimCluster cluster(config);
    constexpr std::size_t kLocal = 6;
    for (std::size_t job = 0; job <= kLocal; ++job) {
        const std::string name = "short-" + std::to_string(job);
        for (Rank rank = 0; rank < 2; ++rank) {
            const std::size_t client = cluster.add_client(job < kLocal ? 0 : rank, kUserA);
            ASSERT_TRUE(cluster.client(client).join(name, rank, 2));
        }
        const auto formed = [&] {
            for (const std::size_t client : {2 * job, 2 * job + 1}) {
                cluster.client(client).poll();
                if (!cluster.client(client).formed()) return false;
            }
            return true;
        };
        EXPECT_TRUE(cluster.run(3 * kSecond / 10, formed)) << name;
    }
    EXPECT_EQ(cluster.count(Counter::refused_jobs), 0U);
}

/// Attaches endpoints of A on node 0 until the engine refuses one.
std::vector<std::unique_ptr<RegionMemory>> take_all_endpoints(SimCluster& cluster,
                                                              const abi::RegionSizes& sizes) {
    std::vector<std::unique_ptr<RegionMemory>> taken;
    for (;;) {
        auto memory = std::make_unique<RegionMemory>(sizes);
        const auto id = cluster.engine(0).attach(memory->base(), memory->layout(), 0, 0,
                                                 abi::Reach::kRegion, kUserA);
        if (!id.ok()) return taken;
        taken.push_back(std::move(memory));
    }
}

TEST(Greedy, all_endpoints_of_one_user_leave_some_to_another) {
    const ClusterConfig config = shared_engines();
    SimCluster cluster(config);
    const auto taken = take_all_endpoints(cluster, config.sizes);
    EXPECT_EQ(taken.size(), 14U);
    EXPECT_EQ(cluster.count(Counter::refused_attaches), 1U);
    EXPECT_TRUE(forms_within_a_second(cluster, [] {}));
}

TEST(Greedy, locked_memory_stays_below_the_total) {
    ClusterConfig config = shared_engines();
    const std::uint64_t each = RegionMemory(config.sizes).layout().region_octets;
    config.engine.endpoints_max = 64;
    config.engine.accounts.octets = 20 * each;
    SimCluster cluster(config);
    const auto taken = take_all_endpoints(cluster, config.sizes);
    EXPECT_EQ(taken.size(), 18U);
    EXPECT_TRUE(forms_within_a_second(cluster, [] {}));
    EXPECT_FALSE(cluster.engine(0).reserve(0, {kUserB, each}).ok());
}

TEST(Greedy, all_groups_of_one_user_leave_the_world_groups_to_jobs) {
    for (const std::uint32_t share : {90U, 100U}) {  // 100: A may take all
        ClusterConfig config = shared_engines();
        config.engine.accounts.user_share = share;
        SimCluster cluster(config);
        ASSERT_TRUE(cluster.form(2, [](std::size_t) { return std::uint16_t{0}; }));
        RingClient& a = cluster.client(0);
        const std::vector<Rank> both{0, 1};
        for (GroupHandle handle = 0x80000001U; handle < 0x80000001U + 40; ++handle) {
            ASSERT_TRUE(a.add_group(handle, both));
            ASSERT_TRUE(cluster.run(
                kSecond, [&] { return a.groups.contains(handle); }, [&] { a.poll(); }));
        }
        const auto refused = std::ranges::count_if(
            a.groups, [](const auto& one) { return one.second == static_cast<int>(Err::kLimit); });
        EXPECT_EQ(refused, share == 100 ? 8 : 12) << share;
        EXPECT_EQ(cluster.count(Counter::refused_groups), static_cast<std::uint64_t>(refused));
        EXPECT_TRUE(forms_within_a_second(cluster, [] {}));
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

// Each endpoint of A begins a job that never forms. Only jobs are scarce.
TEST(Greedy, all_jobs_of_one_user_leave_some_to_another) {
    for (const std::uint32_t share : {90U, 100U}) {  // 100: A may take all
        ClusterConfig config = shared_engines();
        config.engine.endpoints_max = 64;
        config.engine.jobs.jobs_max = 16;
        config.engine.accounts.user_share = share;
        SimCluster cluster(config);
        std::vector<std::size_t> of_a(20);
        for (std::size_t& index : of_a)
            index = cluster.add_client(0, kUserA);
        for (unsigned n = 0; n < of_a.size(); ++n)
            join_no_job(cluster.client(of_a[n]), n, 60 * kSecond);
        const auto refused = [&] {
            return std::ranges::count_if(of_a, [&](std::size_t index) {
                return cluster.client(index).job_status == static_cast<int>(Err::kLimit);
            });
        };
        const auto poll = [&] {
            for (const std::size_t index : of_a)
                cluster.client(index).poll();
        };
        EXPECT_TRUE(cluster.run(
            kSecond, [&] { return refused() == (share == 100 ? 4 : 6); }, poll));
        EXPECT_EQ(cluster.count(Counter::refused_jobs), static_cast<std::uint64_t>(refused()));
        EXPECT_EQ(forms_within_a_second(cluster, poll), share != 100);
    }
}

/// Eight endpoints of A try up to 4,000 jobs a second, each for `patience`.
void try_jobs_without_end(Nanos patience) {
    SimCluster cluster(shared_engines());
    std::array<std::size_t, 8> of_a{};
    for (std::size_t& index : of_a)
        index = cluster.add_client(0, kUserA);
    unsigned begun = 0;
    const auto join_all = [&] {
        for (const std::size_t index : of_a) {
            RingClient& client = cluster.client(index);
            client.poll();
            const bool waits = client.job_status == static_cast<int>(Err::kAgain);
            if (!waits || begun < of_a.size()) join_no_job(client, begun++, patience);
        }
    };
    const auto greedy_for = [&](Nanos span) {
        for (const Nanos end = cluster.now() + span; cluster.now() < end;) {
            join_all();
            cluster.touch(0);
            (void)cluster.run(2 * kMillisecond, [] { return false; });
        }
    };
    greedy_for(8 * kSecond);  // what is allowed at once is over
    BroadcastTap tap;
    cluster.net().set_tap(&tap);
    const unsigned begun_before = begun;
    greedy_for(3 * kSecond);
    EXPECT_GE(begun - begun_before, 3 * kSecond / patience * 8) << "A has tried";
    EXPECT_GT(tap.count, 0U);
    EXPECT_LE(tap.count, 3 * 100U);
    EXPECT_TRUE(forms_within_a_second(cluster, join_all));
    cluster.net().set_tap(nullptr);
}

// J-5
TEST(Greedy, jobs_without_end_are_few_broadcasts_and_hold_up_no_other_user) {
    for (const Nanos patience : {20 * kMillisecond, 200 * kMillisecond, kSecond}) {
        SCOPED_TRACE(patience);
        try_jobs_without_end(patience);
    }
}

TEST(Greedy, bad_records_without_end_close_the_endpoint) {
    SimCluster cluster(shared_engines());
    const std::size_t index = cluster.add_client(0, kUserA);
    RingClient& client = cluster.client(index);
    abi::SubmissionRecord record{};
    record.kind = abi::SubmitKind::kExpect;  // of a rank, without a job
    const auto flood = [&](unsigned each) {
        for (unsigned n = 0; n < each; ++n)
            (void)client.submit(record);
    };
    // 900 in each second go on.
    for (int second = 0; second < 3; ++second) {
        for (int n = 0; n < 30; ++n) {
            flood(30);
            (void)cluster.run(
                33 * kMillisecond, [] { return false; }, [] {});
        }
        (void)cluster.run(
            20 * kMillisecond, [] { return false; }, [] {});
    }
    EXPECT_EQ(client.closed(), 0);
    EXPECT_TRUE(cluster.run(
        100 * kMillisecond, [&] { return client.closed() != 0; }, [&] { flood(64); }));
    EXPECT_EQ(client.closed(), static_cast<int>(Err::kCorrupt));
    EXPECT_EQ(cluster.count(Counter::clients_over_errors), 1U);
    EXPECT_TRUE(forms_within_a_second(cluster, [] {}));
}

}  // namespace
}  // namespace ulc::sim
