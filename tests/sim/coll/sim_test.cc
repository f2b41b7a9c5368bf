// SPDX-License-Identifier: BSD-3-Clause
// Tests collectives over real client and engine objects under random loss: every operation and
// algorithm, 2 to 9 ranks, rotating roots, several seeds. Ranks run skewed, so that operations
// overlap; every byte of every result is checked.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/collective_actor.h"

namespace ulc::sim {
namespace {

/// Adds each algorithm of each reduction, with UINT8 sum and with a user's operators, of which one
/// commutes.
void add_reductions(std::vector<Operation>& program, std::uint16_t ranks, std::size_t octets) {
    const std::pair<CollectiveKind, const char*> all[] = {
        {CollectiveKind::kReduce, "flat@1000"},
        {CollectiveKind::kReduce, "binomial@3000"},
        {CollectiveKind::kReduce, "chain@700"},
        {CollectiveKind::kAllreduce, "multicast@2000"},
        {CollectiveKind::kAllreduce, "binomial_multicast@1000"},
        {CollectiveKind::kAllreduce, "chain_multicast@3000"},
        {CollectiveKind::kAllreduce, "pairwise_multicast:2@700"},
        {CollectiveKind::kAllreduce, "binomial"},
        {CollectiveKind::kReduceScatter, "multicast"},
        {CollectiveKind::kReduceScatter, "pairwise:2@500"},
        {CollectiveKind::kReduceScatter, "binomial@3000"},
        {CollectiveKind::kReduceScatter, ""},
        {CollectiveKind::kScan, "multicast"},
        {CollectiveKind::kScan, "chain@1000"},
        {CollectiveKind::kScan, "doubling"},
        {CollectiveKind::kExscan, "multicast"},
        {CollectiveKind::kExscan, "chain@3000"},
        {CollectiveKind::kExscan, "doubling"}};
    unsigned turn = static_cast<unsigned>(program.size());
    for (const auto& [kind, name] : all) {
        ++turn;
        Operation one{kind, name, octets, static_cast<std::uint16_t>(turn % ranks)};
        one.in_place = turn % 2 == 0;
        one.uneven = kind == CollectiveKind::kReduceScatter && turn % 3 != 0;
        one.user = turn % 4 < 2;
        one.commutes = one.user && turn % 3 != 0;
        program.push_back(one);
    }
}

/// Returns every algorithm with small and large payloads, and with all roots.
std::vector<Operation> whole_program(std::uint16_t ranks) {
    std::vector<Operation> program;
    std::uint16_t root = 0;
    for (const std::size_t octets : {0U, 1U, 40U, 1000U, 5000U, 40000U}) {
        for (const char* name : {"gather_broadcast", "dissemination", "chain:2"}) {
            program.push_back({.kind = CollectiveKind::kBarrier, .algorithm = name});
        }
        for (const char* name : {"multicast", "binomial", "multicast@1000", "binomial@1000"}) {
            program.push_back({CollectiveKind::kBroadcast, name, octets, root, false});
            root = static_cast<std::uint16_t>((root + 1) % ranks);
        }
        for (const char* name :
             {"round_robin@2000", "concurrent", "concurrent:3@700", "ring", "ring@2000"}) {
            program.push_back({CollectiveKind::kAllgather, name, octets, 0, octets % 1000 != 0});
        }
        const bool in_place = octets % 2 == 0;
        for (const char* name : {"direct", "token:2@3000", "binomial", "direct@1000"}) {
            program.push_back({CollectiveKind::kGather, name, octets, root, in_place});
            root = static_cast<std::uint16_t>((root + 1) % ranks);
        }
        for (const char* name : {"packed", "direct@3000", "binomial@1000"}) {
            program.push_back({CollectiveKind::kScatter, name, octets, root, in_place});
            root = static_cast<std::uint16_t>((root + 1) % ranks);
        }
        for (const char* name : {"pairwise", "pairwise:3@2000", "multicast"})
            program.push_back({CollectiveKind::kAlltoall, name, octets, 0, in_place});
        for (const CollectiveKind kind : {CollectiveKind::kGather, CollectiveKind::kScatter,
                                          CollectiveKind::kAllgather, CollectiveKind::kAlltoall})
            program.push_back({kind, {}, octets, root, !in_place, true});
        add_reductions(program, ranks, octets / 2 * 2);
    }
    program.push_back({CollectiveKind::kBroadcast, {}, 100, 0, false});
    program.push_back({CollectiveKind::kAllgather, {}, 100, 0, true});
    program.push_back({});
    return program;
}

ClusterConfig config_of(std::uint16_t ranks, double loss, std::uint64_t seed) {
    ClusterConfig config;
    config.seed = seed;
    config.embedded = Embedded::kHalf;
    config.net.ports = ranks;
    config.net.seed = seed;
    config.net.faults = {.loss = loss, .duplicate = loss / 2, .reorder = loss};
    return config;
}

std::string run_all(LibCluster& lib, std::vector<CollectiveActor>& actors, Nanos limit) {
    const auto ended = [&] {
        for (const CollectiveActor& actor : actors) {
            if (!actor.done() && actor.error() == ULC_OK && actor.wrong().empty()) return false;
        }
        return true;
    };
    const bool in_time = lib.run(
        limit, ended, [&](std::uint16_t rank, Nanos now) { return actors[rank].step(now); });
    std::string text;
    for (std::size_t rank = 0; rank < actors.size(); ++rank) {
        const CollectiveActor& actor = actors[rank];
        if (actor.done() && actor.wrong().empty()) continue;
        text += "rank " + std::to_string(rank) + " at " + std::to_string(actor.at()) + " " +
                ulc_error_text(actor.error()) + " " + actor.wrong() + "\n";
    }
    return in_time ? text : "not in time: " + text;
}

class Collectives : public testing::TestWithParam<std::uint16_t> {};

TEST_P(Collectives, give_every_octet_to_every_rank_under_loss) {
    const std::uint16_t ranks = GetParam();
    const char* one = std::getenv("ULC_SIM_SEED");
    const std::uint64_t first = one == nullptr ? 1 : std::strtoull(one, nullptr, 10);
    const std::uint64_t last = one == nullptr && ranks <= 5 ? 2 : first;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        LibCluster lib(config_of(ranks, 0.02, seed));
        ASSERT_TRUE(lib.form()) << "replay: ULC_SIM_SEED=" << seed;
        const std::vector<Operation> program = whole_program(ranks);
        std::vector<CollectiveActor> actors;
        for (std::uint16_t rank = 0; rank < ranks; ++rank) {
            actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), program,
                                seed * 100 + rank);
        }
        ASSERT_EQ(run_all(lib, actors, 60 * kSecond), "") << "replay: ULC_SIM_SEED=" << seed;
        EXPECT_EQ(lib.shut_down(), 0U) << "segments leaked";
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Range<std::uint16_t>(2, 10),
                         [](const auto& ranks) { return std::to_string(ranks.param); });

// An operation that a test() starts may be done at once, with no event to come: a caller that then
// waits must not miss it.
TEST(Collectives, need_no_test_without_an_event) {
    for (const std::uint16_t ranks : {2, 5}) {
        LibCluster lib(config_of(ranks, 0, 3));
        ASSERT_TRUE(lib.form());
        const std::vector<Operation> program = whole_program(ranks);
        std::vector<CollectiveActor> actors;
        for (std::uint16_t rank = 0; rank < ranks; ++rank) {
            actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), program, rank);
        }
        std::vector<bool> begun(ranks, false);
        const auto all_done = [&] {
            return std::all_of(actors.begin(), actors.end(),
                               [](const CollectiveActor& actor) { return actor.done(); });
        };
        EXPECT_TRUE(lib.run(5 * kSecond, all_done, [&](std::uint16_t rank, Nanos) {
            if (begun[rank] && lib.events(rank) == 0) return kNever;
            begun[rank] = true;
            actors[rank].run_until_waiting();
            return kNever;
        })) << ranks;
    }
}

TEST(Collectives, put_a_broadcast_on_the_wire_once) {
    constexpr std::size_t kOctets = 64 * 1024;
    LibCluster lib(config_of(8, 0, 1));
    ASSERT_TRUE(lib.form());
    const std::vector<Operation> program{
        {CollectiveKind::kBroadcast, "multicast", kOctets, 3, false}};
    std::vector<CollectiveActor> actors;
    for (std::uint16_t rank = 0; rank < 8; ++rank) {
        actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), program, rank);
    }
    ASSERT_EQ(run_all(lib, actors, kSecond), "");
    const std::uint64_t least = (kOctets + 1485) / 1486;
    EXPECT_GE(lib.cluster().net().stats(3).mcast_frames, least);
    EXPECT_LE(lib.cluster().net().stats(3).mcast_frames, least + 2);
}

TEST(Collectives, run_at_once_on_overlapping_groups) {
    constexpr std::uint16_t kRanks = 5;
    LibCluster lib(config_of(kRanks, 0.02, 5));
    ASSERT_TRUE(lib.form());
    const std::vector<std::vector<std::uint16_t>> groups{{0, 1, 2}, {4, 2, 1, 3}};
    std::vector<ulc_group> handles[kRanks];
    for (const auto& ranks : groups) {
        std::vector<ulc_request> requests(kRanks);
        std::vector<std::optional<ulc_status>> made(kRanks);
        for (const std::uint16_t rank : ranks) {
            ASSERT_EQ(ulc_group_create(lib.endpoint(rank), ranks.data(),
                                       static_cast<std::uint16_t>(ranks.size()), &requests[rank]),
                      ULC_OK);
        }
        const auto all_made = [&] {
            for (const std::uint16_t rank : ranks) {
                if (!made[rank]) return false;
            }
            return true;
        };
        ASSERT_TRUE(lib.run(kSecond, all_made, [&](std::uint16_t rank, Nanos) {
            ulc_status status{};
            const bool member = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
            if (member && !made[rank] &&
                ulc_test(lib.endpoint(rank), &requests[rank], &status) == ULC_OK) {
                made[rank] = status;
            }
            return kNever;
        }));
        for (const std::uint16_t rank : ranks) {
            ASSERT_EQ(made[rank]->error, ULC_OK);
            handles[rank].push_back(made[rank]->group);
        }
    }
    const std::vector<Operation> program = whole_program(3);
    std::vector<std::vector<CollectiveActor>> actors(kRanks);
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
        handles[rank].push_back(ulc_world(lib.endpoint(rank)));
        for (const ulc_group group : handles[rank]) {
            actors[rank].emplace_back(lib.endpoint(rank), group, program, rank * 10 + group);
        }
    }
    const auto ended = [&] {
        for (const auto& of_rank : actors) {
            for (const CollectiveActor& actor : of_rank) {
                if (!actor.done() && actor.error() == ULC_OK) return false;
            }
        }
        return true;
    };
    EXPECT_TRUE(lib.run(60 * kSecond, ended, [&](std::uint16_t rank, Nanos now) {
        Nanos next = kNever;
        for (CollectiveActor& actor : actors[rank])
            next = std::min(next, actor.step(now));
        return next;
    }));
    for (const auto& of_rank : actors) {
        for (const CollectiveActor& actor : of_rank) {
            EXPECT_TRUE(actor.done()) << actor.at() << ulc_error_text(actor.error());
            EXPECT_EQ(actor.wrong(), "");
        }
    }
}

}  // namespace
}  // namespace ulc::sim
