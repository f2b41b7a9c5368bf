// SPDX-License-Identifier: BSD-3-Clause
// Tests collectives that the engine runs while the application computes: no rank polls, tests or
// waits during that time. Nine tenths of a long broadcast are hidden. Members start late, disagree,
// die, or leave the group.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "abi/schedule.h"
#include "client/ulc_internal.h"
#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/collective_actor.h"
#include "tests/sim/programs/collective_data.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kMebi = 1U << 20;

ClusterConfig config_of(std::uint16_t ranks, double loss = 0, std::uint64_t seed = 1) {
    ClusterConfig config;
    config.seed = seed;
    config.net.ports = ranks;
    config.net.seed = seed;
    config.net.bits_per_second = 100'000'000;
    config.net.faults = {.loss = loss, .duplicate = loss / 2, .reorder = loss};
    config.sizes.tx_arena_octets = 4 * kMebi;
    return config;
}

client::Limits offloading(std::uint16_t /*rank*/) {
    client::Limits limits;
    limits.offload = 1;
    return limits;
}

/// Calls `start` once at each rank, and lets no rank poll after that.
void start_all(LibCluster& lib, const std::function<void(std::uint16_t)>& start) {
    std::vector<bool> begun(lib.ranks(), false);
    ASSERT_TRUE(lib.run(
        kSecond, [&] { return std::ranges::count(begun, false) == 0; },
        [&](std::uint16_t rank, Nanos) {
            if (!begun[rank]) start(rank);
            begun[rank] = true;
            return kNever;
        }));
}

/// Lets time pass; every application computes.
bool compute(LibCluster& lib, Nanos time) {
    const Nanos until = lib.cluster().now() + time;
    bool over = false;
    lib.cluster().at(until, [&] { over = true; });
    return lib.cluster().run(time + kSecond, [&] { return over; });
}

/// Tests all operations until each is over, except at ranks that died. Returns the result of each.
std::vector<int> finish_all(LibCluster& lib, std::vector<ulc_coll*>& running,
                            Nanos limit = 20 * kSecond) {
    std::vector<int> states(running.size(), ULC_ERR_AGAIN);
    const auto over = [&] {
        for (std::size_t rank = 0; rank < running.size(); ++rank)
            if (running[rank] != nullptr) return false;
        return true;
    };
    static_cast<void>(lib.run(limit, over, [&](std::uint16_t rank, Nanos now) {
        if (running[rank] == nullptr) return kNever;
        states[rank] = ulc_coll_test(lib.endpoint(rank), running[rank]);
        if (states[rank] == ULC_ERR_AGAIN) return now + 100 * kMicrosecond;
        running[rank] = nullptr;
        return kNever;
    }));
    return states;
}

TEST(Offload, a_barrier_completes_while_all_compute) {
    for (const char* algorithm : {"gather_broadcast", "dissemination:3", "chain:2"}) {
        constexpr std::uint16_t kRanks = 7;
        LibCluster lib(config_of(kRanks), 0, offloading);
        ASSERT_TRUE(lib.form());
        std::vector<ulc_coll*> running(kRanks);
        start_all(lib, [&](std::uint16_t rank) {
            ulc_endpoint* ep = lib.endpoint(rank);
            ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), algorithm, &running[rank]), ULC_OK);
        });
        EXPECT_TRUE(lib.cluster().run(20 * kMillisecond, [&] {
            return lib.cluster().count(Counter::offload_done) == kRanks;
        })) << algorithm;
        for (const int state : finish_all(lib, running))
            EXPECT_EQ(state, ULC_OK);
        EXPECT_EQ(lib.shut_down(), 0U);
    }
}

TEST(Offload, a_barrier_waits_for_the_last) {
    LibCluster lib(config_of(3), 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<ulc_coll*> running(3);
    start_all(lib, [&](std::uint16_t rank) {
        if (rank == 1) return;
        ulc_endpoint* ep = lib.endpoint(rank);
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &running[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 50 * kMillisecond));
    EXPECT_EQ(lib.cluster().count(Counter::offload_done), 0U);
    start_all(lib, [&](std::uint16_t rank) {
        if (rank != 1) return;
        ulc_endpoint* ep = lib.endpoint(rank);
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &running[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 20 * kMillisecond));
    EXPECT_GE(lib.cluster().count(Counter::offload_done), 2U);
    for (const int state : finish_all(lib, running))
        EXPECT_EQ(state, ULC_OK);
}

/// Broadcasts 1 MiB from rank 1: started by all at once, then computation, then tests until done.
/// Returns the time until the last rank is done.
Nanos broadcast_beside(bool offload, bool arena, Nanos computation) {
    constexpr std::uint16_t kRanks = 4;
    LibCluster lib(config_of(kRanks), 0, [&](std::uint16_t) {
        client::Limits limits;
        limits.offload = offload ? 1 : 0;
        return limits;
    });
    EXPECT_TRUE(lib.form());
    std::vector<std::vector<unsigned char>> own(kRanks, std::vector<unsigned char>(kMebi));
    std::vector<unsigned char*> memory(kRanks);
    std::vector<ulc_coll*> running(kRanks);
    const Nanos begun = lib.cluster().now();
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        memory[rank] = arena ? static_cast<unsigned char*>(ulc_alloc(ep, kMebi)) : own[rank].data();
        ASSERT_NE(memory[rank], nullptr);
        for (std::size_t i = 0; i < kMebi; ++i)
            memory[rank][i] = rank == 1 ? static_cast<unsigned char>(i * 7 + i / 4096) : 0;
        ASSERT_EQ(
            ulc_broadcast_start(ep, ulc_world(ep), 1, memory[rank], kMebi, nullptr, &running[rank]),
            ULC_OK);
    });
    EXPECT_TRUE(computation == 0 || compute(lib, computation));
    EXPECT_EQ(lib.cluster().count(Counter::offload_taken), offload ? kRanks : 0U);
    for (const int state : finish_all(lib, running))
        EXPECT_EQ(state, ULC_OK);
    const Nanos spent = lib.cluster().now() - begun;
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
        for (std::size_t i = 0; i < kMebi; ++i) {
            if (memory[rank][i] == static_cast<unsigned char>(i * 7 + i / 4096)) continue;
            ADD_FAILURE() << "rank " << rank << " octet " << i;
            break;
        }
    }
    return spent;
}

/// Returns the share of the broadcast that a computation of its length hides.
double hidden(bool offload, bool arena) {
    const Nanos alone = broadcast_beside(offload, arena, 0);
    const Nanos both = broadcast_beside(offload, arena, alone);
    const double share = 1.0 - static_cast<double>(both - alone) / static_cast<double>(alone);
    std::printf("%s, memory %s: %.1f %% hidden\n", offload ? "offloaded" : "carried out by libulc",
                arena ? "of ulc_alloc" : "elsewhere", 100 * share);
    return share;
}

TEST(Offload, hides_nine_tenths_of_a_broadcast_behind_computation) {
    EXPECT_GE(hidden(true, true), 0.9);
    EXPECT_GE(hidden(true, false), 0.9);
    EXPECT_LT(hidden(false, false), 0.9);
}

// Ranks drift apart, so messages come before, during and after the submission of schedules; some
// ranks run theirs themselves.
TEST(Offload, gives_every_octet_to_every_rank_under_loss) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const auto ranks = static_cast<std::uint16_t>(2 + seed);
        ClusterConfig config = config_of(ranks, 0.02, seed);
        config.engine.offloads_max = seed % 2 == 0 ? 1 : 8;
        LibCluster lib(config, 0, [&](std::uint16_t rank) {
            client::Limits limits;
            limits.offload = seed % 3 == 0 && rank % 2 == 0 ? 0 : 1;
            return limits;
        });
        ASSERT_TRUE(lib.form());
        std::vector<Operation> program;
        for (unsigned turn = 0; turn < 60; ++turn) {
            constexpr std::pair<CollectiveKind, const char*> kKinds[] = {
                {CollectiveKind::kBarrier, "dissemination:2"},
                {CollectiveKind::kBroadcast, "multicast@4000"},
                {CollectiveKind::kGather, "binomial"},
                {CollectiveKind::kScatter, "packed"},
                {CollectiveKind::kBroadcast, ""},
                {CollectiveKind::kAllgather, "ring@3000"},
                {CollectiveKind::kScatter, "binomial@2000"},
                {CollectiveKind::kAlltoall, "multicast"},
                {CollectiveKind::kBroadcast, "binomial@5000"},
                {CollectiveKind::kAlltoall, "pairwise:2@3000"},
            };
            Operation one;
            one.root = static_cast<std::uint16_t>(turn % ranks);
            one.kind = kKinds[turn % std::size(kKinds)].first;
            one.algorithm = kKinds[turn % std::size(kKinds)].second;
            const bool broadcasts = one.kind == CollectiveKind::kBroadcast;
            one.octets = std::size_t{turn} * turn * (broadcasts ? 41 : 7);
            one.in_place = turn / 10 % 2 == 1;
            one.uneven = one.kind == CollectiveKind::kAllgather && turn / 20 == 1;
            program.push_back(one);
        }
        std::vector<CollectiveActor> actors;
        for (std::uint16_t rank = 0; rank < ranks; ++rank)
            actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), program,
                                seed * 100 + rank);
        const auto ended = [&] {
            return std::ranges::all_of(actors, [](const CollectiveActor& a) { return a.ended(); });
        };
        EXPECT_TRUE(lib.run(60 * kSecond, ended, [&](std::uint16_t rank, Nanos now) {
            return actors[rank].step(now);
        })) << seed;
        for (const CollectiveActor& actor : actors) {
            EXPECT_TRUE(actor.done()) << seed << " at " << actor.at() << " " << actor.error_text();
            EXPECT_EQ(actor.wrong(), "") << seed;
        }
        EXPECT_GT(lib.cluster().count(Counter::offload_done), 0U) << seed;
        EXPECT_EQ(lib.shut_down(), 0U) << seed;
    }
}

// The schedule begins when a third of the data is in flight: those segments belong to its client,
// the rest to the engine.
TEST(Offload, goes_on_where_the_client_was) {
    constexpr std::uint16_t kRanks = 3;
    LibCluster lib(config_of(kRanks), 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<std::vector<unsigned char>> memory(kRanks, std::vector<unsigned char>(kMebi));
    for (std::size_t i = 0; i < kMebi; ++i)
        memory[0][i] = static_cast<unsigned char>(i * 7 + i / 4096);
    std::vector<ulc_coll*> running(kRanks);
    const auto start = [&](bool late) {
        start_all(lib, [&](std::uint16_t rank) {
            if ((rank == 2) != late) return;
            ulc_endpoint* ep = lib.endpoint(rank);
            ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), 0, memory[rank].data(), kMebi, nullptr,
                                          &running[rank]),
                      ULC_OK);
        });
    };
    start(false);
    ASSERT_TRUE(compute(lib, 15 * kMillisecond));
    start(true);
    ASSERT_TRUE(lib.cluster().run(
        200 * kMillisecond, [&] { return lib.cluster().count(Counter::offload_done) == kRanks; }));
    for (const int state : finish_all(lib, running))
        EXPECT_EQ(state, ULC_OK);
    for (const std::uint16_t rank : {1, 2})
        EXPECT_TRUE(memory[rank] == memory[0]) << rank;
}

/// Runs a gather up a tree of four to rank 0, in which rank 2 starts late: by then the data of rank
/// 3 have come (whole: all of them).
std::uint64_t carried_when_late(std::size_t octets, Nanos late,
                                std::uint32_t rx_arena_octets = 256U << 10) {
    constexpr std::uint16_t kRanks = 4;
    ClusterConfig config = config_of(kRanks);
    config.sizes.rx_arena_octets = rx_arena_octets;
    LibCluster lib(config, 0, offloading);
    EXPECT_TRUE(lib.form());
    const Operation gather{
        .kind = CollectiveKind::kGather, .algorithm = "binomial", .octets = octets};
    std::vector<CollectiveData> data;
    for (std::uint16_t rank = 0; rank < kRanks; ++rank)
        data.emplace_back(gather, rank, kRanks, 3);
    std::vector<ulc_coll*> running(kRanks);
    const auto start = [&](bool second) {
        start_all(lib, [&](std::uint16_t rank) {
            ulc_endpoint* ep = lib.endpoint(rank);
            if ((rank == 2) != second) return;
            ASSERT_EQ(data[rank].start(ep, ulc_world(ep), &running[rank]), ULC_OK);
        });
    };
    start(false);
    EXPECT_TRUE(compute(lib, late));
    start(true);
    EXPECT_TRUE(compute(lib, 200 * kMillisecond));
    const std::uint64_t carried = lib.cluster().count(Counter::offload_done);
    for (const int state : finish_all(lib, running))
        EXPECT_EQ(state, ULC_OK);
    EXPECT_EQ(data[0].wrong(), "");
    EXPECT_EQ(lib.shut_down(), 0U);
    return carried;
}

TEST(Offload, passes_on_what_the_client_got_before) {
    for (const std::size_t octets : {104U, 5000U, 60'000U})
        EXPECT_EQ(carried_when_late(octets, 30 * kMillisecond), 4U) << octets;
}

// The rest of such a message goes to the client too, since only the client has the whole: rank 2
// runs its part itself, so the root waits. In an arena of 256 KiB the message is one block, which
// was not reported to the client, and the engine refuses the schedule. In an arena of 64 KiB it
// comes in chunks, and the client does not submit the schedule.
TEST(Offload, leaves_to_the_client_what_half_came_and_is_to_be_passed_on) {
    for (const std::uint32_t arena : {256U << 10, 64U << 10})
        EXPECT_EQ(carried_when_late(60'000, 3 * kMillisecond, arena), 2U) << arena;
}

// In an earlier version, scratch memory took all of the arena, and if the rest found no space,
// nothing could be sent from there any more.
TEST(Offload, leaves_room_to_send_to_who_carries_it_out_itself) {
    constexpr std::uint16_t kRanks = 5;
    ClusterConfig config = config_of(kRanks);
    config.sizes.tx_arena_octets = 256U << 10;
    LibCluster lib(config, 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<CollectiveData> data;
    std::vector<ulc_coll*> running(kRanks);
    for (std::uint16_t rank = 0; rank < kRanks; ++rank)
        data.emplace_back(
            Operation{.kind = CollectiveKind::kAlltoall, .algorithm = "multicast", .octets = 9000},
            rank, kRanks, 1);
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        ASSERT_EQ(data[rank].start(ep, ulc_world(ep), &running[rank]), ULC_OK);
    });
    EXPECT_EQ(finish_all(lib, running), std::vector<int>(kRanks, ULC_OK));
    for (const CollectiveData& one : data)
        EXPECT_EQ(one.wrong(), "");
    EXPECT_EQ(lib.shut_down(), 0U);
}

// A message for which another one must be sent first holds its memory during that time.
TEST(Offload, leaves_room_to_send_beside_operations_that_wait) {
    LibCluster lib(
        [] {
            ClusterConfig config = config_of(2);
            config.sizes.tx_arena_octets = 256U << 10;
            return config;
        }(),
        0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<std::size_t> sizes{64U << 10};
    for (std::size_t octets = 64U << 10; octets >= 64; octets /= 2)
        sizes.insert(sizes.end(), {octets, octets});
    std::vector<unsigned char> octets[2];
    std::vector<std::vector<ulc_coll*>> running(sizes.size(), std::vector<ulc_coll*>(2));
    for (std::vector<unsigned char>& one : octets)
        one.resize(sizes.size() * sizes[0]);
    const auto start = [&](std::uint16_t who) {
        start_all(lib, [&](std::uint16_t rank) {
            if (rank != who) return;
            ulc_endpoint* ep = lib.endpoint(rank);
            for (std::size_t i = 0; i < sizes.size(); ++i)
                ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), 0, &octets[rank][i * sizes[0]],
                                              sizes[i], nullptr, &running[i][rank]),
                          ULC_OK);
        });
    };
    start(1);
    std::vector<unsigned char> message(60'000);
    ulc_request sent{};
    ulc_request received{};
    bool over = false;
    ASSERT_EQ(ulc_send(lib.endpoint(1), 0, 5, message.data(), message.size(), &sent), ULC_OK);
    ASSERT_EQ(
        ulc_receive(lib.endpoint(0), 1, 5, UINT64_MAX, message.data(), message.size(), &received),
        ULC_OK);
    EXPECT_TRUE(lib.run(
        kSecond, [&] { return over; },
        [&](std::uint16_t rank, Nanos) {
            ulc_status status{};
            over |= rank == 0 && ulc_test(lib.endpoint(0), &received, &status) == ULC_OK;
            return kNever;
        }));
    start(0);
    for (auto& one : running)
        EXPECT_EQ(finish_all(lib, one), std::vector<int>(2, ULC_OK));
}

// The test starts more operations than the engine takes: libulc runs the rest, and neither kind
// waits for the other.
TEST(Offload, takes_as_many_as_configured_and_leaves_the_rest) {
    constexpr std::uint16_t kRanks = 3;
    ClusterConfig config = config_of(kRanks);
    config.engine.offloads_max = 2;
    LibCluster lib(config, 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<std::vector<ulc_coll*>> all(6, std::vector<ulc_coll*>(kRanks));
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        for (auto& running : all)
            ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &running[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 20 * kMillisecond));
    for (std::size_t i = all.size(); i-- > 0;)
        for (const int state : finish_all(lib, all[i]))
            EXPECT_EQ(state, ULC_OK) << i;
    EXPECT_EQ(lib.cluster().count(Counter::offload_over_quota), 4U * kRanks);
}

TEST(Offload, ends_with_the_same_error_everywhere_when_a_member_dies) {
    constexpr std::uint16_t kRanks = 5;
    ClusterConfig config = config_of(kRanks);
    LibCluster lib(config, 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<ulc_coll*> running(kRanks);
    start_all(lib, [&](std::uint16_t rank) {
        if (rank == 2) return;
        ulc_endpoint* ep = lib.endpoint(rank);
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), "gather_broadcast", &running[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 5 * kMillisecond));
    lib.kill(2);
    ASSERT_TRUE(compute(lib, 5 * kSecond));
    const std::vector<int> states = finish_all(lib, running);
    for (const std::uint16_t rank : {0, 1, 3, 4})
        EXPECT_EQ(states[rank], ULC_ERR_PEER_DIED) << rank;
    EXPECT_EQ(lib.cluster().count(Counter::offload_failed), 4U);
}

TEST(Offload, finds_members_that_disagree) {
    constexpr std::uint16_t kRanks = 4;
    LibCluster lib(config_of(kRanks), 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<ulc_coll*> running(kRanks);
    std::vector<std::vector<unsigned char>> memory(kRanks, std::vector<unsigned char>(20000));
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), 0, memory[rank].data(),
                                      rank == 3 ? 19000 : 20000, nullptr, &running[rank]),
                  ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 20 * kMillisecond));
    const std::vector<int> states = finish_all(lib, running);
    EXPECT_EQ(states[3], ULC_ERR_MISMATCH);
    EXPECT_NE(std::string(ulc_last_error_text()).find("gave another length"), std::string::npos)
        << ulc_last_error_text();
}

TEST(Offload, finds_members_that_all_wait_for_one_another) {
    constexpr std::uint16_t kRanks = 4;
    const auto impatient = [](std::uint16_t rank) {
        client::Limits limits = offloading(rank);
        limits.patience_ms = 20;
        return limits;
    };
    LibCluster lib(config_of(kRanks), 0, impatient);
    ASSERT_TRUE(lib.form());
    std::vector<ulc_coll*> running(kRanks);
    std::vector<std::vector<unsigned char>> memory(kRanks, std::vector<unsigned char>(20000));
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        const std::uint16_t root = rank == 1 ? 2 : 1;
        ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), root, memory[rank].data(), 20000, nullptr,
                                      &running[rank]),
                  ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 20 * kMillisecond));
    const std::vector<int> states = finish_all(lib, running, kSecond);
    EXPECT_EQ(states, std::vector<int>(kRanks, ULC_ERR_MISMATCH));
}

TEST(Offload, is_cancelled_when_its_group_breaks) {
    constexpr std::uint16_t kRanks = 3;
    LibCluster lib(config_of(kRanks), 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<ulc_coll*> first(kRanks);
    std::vector<ulc_coll*> second(kRanks);
    unsigned char octets[64] = {};
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        if (rank == 2) {
            ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), 2, octets, sizeof octets, nullptr,
                                          &first[rank]),
                      ULC_OK);
            return;
        }
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &first[rank]), ULC_OK);
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &second[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 20 * kMillisecond));
    const std::vector<int> states = finish_all(lib, first);
    const std::vector<int> later = finish_all(lib, second);
    for (const std::uint16_t rank : {0, 1}) {
        EXPECT_EQ(states[rank], ULC_ERR_MISMATCH) << rank;
        EXPECT_EQ(later[rank], ULC_ERR_MISMATCH) << rank;
    }
    EXPECT_EQ(
        lib.cluster().count(Counter::offload_done) + lib.cluster().count(Counter::offload_failed),
        lib.cluster().count(Counter::offload_taken));
}

}  // namespace
}  // namespace ulc::sim
