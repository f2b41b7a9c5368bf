// SPDX-License-Identifier: BSD-3-Clause
// Tests every cell (operation, algorithm, ranks 1-17, size) under random loss, and checks every
// byte. The seed determines the random choices in a cell (loss, root, in place or not, lengths by
// rank, type and operator, ":k" and "@segment", which ranks offload, how ranks drift apart).
//
// Under the sanitizers a run takes a share of the cells, drawn from the seed; the suite "cells"
// takes all of them in the release build:
//   ULC_COLL_CELLS=1 build/release/tests/sim/sim_coll_cells     (ULC_SIM_SEED=n for other seeds)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "coll/reduction.h"
#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/collective_actor.h"

namespace ulc::sim {
namespace {

constexpr std::uint16_t kRanksMax = 17;
constexpr double kShare = 0.03;
constexpr double kLossMin = 0.005;
constexpr double kLossMax = 0.05;
/// Average losses of the broadcast behind all cells: no loss at all in one of 10^8 runs.
constexpr double kFramesLost = 20;
/// Sizes: nothing, inside a record, inside a packet, the longest packet and one byte more, some
/// packets, several segments.
constexpr std::size_t kSizes[] = {0, 1, 40, 600, 1460, 1487, 9000, 70000};

double share_of_cells() {
    const char* given = std::getenv("ULC_COLL_CELLS");
    return given == nullptr ? kShare : std::strtod(given, nullptr);
}

std::uint64_t seed_of_run() {
    const char* given = std::getenv("ULC_SIM_SEED");
    return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

void draw_operator(Operation& one, Prng& prng) {
    one.user = prng.chance(0.3);
    one.commutes = one.user && prng.chance(0.5);
    do {
        one.type = static_cast<std::uint32_t>(ULC_INT8 + prng.below(ULC_LONG_DOUBLE_INT));
        one.op = static_cast<std::uint32_t>(ULC_SUM + prng.below(ULC_MAXLOC));
    } while (coll::apply_of(one.type, one.op) == nullptr);
}

Operation cell(const coll::Algorithm& algorithm, std::uint16_t ranks, std::size_t octets,
               Prng& prng) {
    Operation one;
    one.kind = kind_of(algorithm.op);
    one.algorithm = algorithm.name;
    if (prng.chance(0.5)) one.algorithm += ":" + std::to_string(1 + prng.below(5));
    if (prng.chance(0.5)) one.algorithm += "@" + std::to_string(200 + prng.below(5000));
    one.octets = octets;
    one.root = static_cast<std::uint16_t>(prng.below(ranks));
    one.in_place = prng.chance(0.5);
    if (one.kind >= CollectiveKind::kReduce) draw_operator(one, prng);
    if (one.user) one.octets = octets / 2 * 2;
    const bool either =
        algorithm.op == coll::Op::kAllgather || algorithm.op == coll::Op::kReduceScatter;
    one.uneven = operation_of(one.kind) != algorithm.op || (either && prng.chance(0.5));
    return one;
}

std::string name_of(const Operation& one, std::uint16_t ranks) {
    return std::string(coll::name_of(operation_of(one.kind))) + (one.uneven ? "v " : " ") +
           one.algorithm + ", " + std::to_string(ranks) + " ranks, root " +
           std::to_string(one.root) + ", " + std::to_string(one.octets) + " octets" +
           (one.in_place ? ", in place" : "") + (one.user ? ", the user's operator" : "");
}

/// Returns a broadcast long enough that the wire loses some of it, however few the cells are and
/// however little they send.
Operation long_broadcast(std::uint16_t ranks, double loss) {
    Operation one{.kind = CollectiveKind::kBroadcast, .algorithm = "multicast"};
    one.octets = static_cast<std::size_t>(kFramesLost * 1500 / loss) / (ranks - 1U);
    return one;
}

std::uint64_t frames_lost(LibCluster& lib) {
    std::uint64_t lost = 0;
    for (std::uint16_t port = 0; port < lib.ranks(); ++port)
        lost += lib.cluster().net().faults().counts(port).lost;
    return lost;
}

class CollectiveCells : public testing::TestWithParam<std::uint16_t> {};

TEST_P(CollectiveCells, give_every_octet_under_random_loss) {
    const std::uint16_t ranks = GetParam();
    const std::uint64_t seed = seed_of_run();
    const double share = share_of_cells();
    Prng prng(seed * 100 + ranks);
    std::vector<Operation> program;
    for (const coll::Algorithm& algorithm : coll::algorithms()) {
        for (const std::size_t octets : kSizes) {
            const Operation one = cell(algorithm, ranks, octets, prng);
            if (prng.chance(share)) program.push_back(one);
        }
    }
    ClusterConfig config;
    config.seed = config.net.seed = seed;
    config.net.ports = ranks;
    config.embedded = Embedded::kHalf;
    const double loss =
        std::max(kLossMin, kLossMax * static_cast<double>(1 + prng.below(100)) / 100);
    if (ranks > 1) program.push_back(long_broadcast(ranks, loss));
    config.net.faults = {.loss = loss, .duplicate = loss / 2, .reorder = loss};
    LibCluster lib(config, 0, [&](std::uint16_t) {
        client::Limits limits;
        limits.offload = prng.below(2);
        return limits;
    });
    ASSERT_TRUE(lib.form());
    std::vector<CollectiveActor> actors;
    for (std::uint16_t rank = 0; rank < ranks; ++rank)
        actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), program,
                            seed * 1000 + rank);
    const auto over = [&] {
        return std::ranges::all_of(actors, [](const CollectiveActor& a) { return a.done(); }) ||
               std::ranges::any_of(actors,
                                   [](const CollectiveActor& a) { return a.ended() && !a.done(); });
    };
    EXPECT_TRUE(lib.run(600 * kSecond, over,
                        [&](std::uint16_t rank, Nanos now) { return actors[rank].step(now); }));
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        const CollectiveActor& actor = actors[rank];
        if (actor.done() && actor.wrong().empty()) continue;
        ADD_FAILURE() << "rank " << rank << ": "
                      << name_of(program[std::min(actor.at(), program.size() - 1)], ranks) << ": "
                      << ulc_error_text(actor.error()) << " " << actor.wrong() << " "
                      << actor.error_text() << "\nreplay: ULC_SIM_SEED=" << seed
                      << " ULC_COLL_CELLS=" << share << " (loss " << loss << ")";
        return;
    }
    const std::uint64_t lost = frames_lost(lib);
    std::printf("%zu cells, loss %.1f %%, %llu frames lost, %.3f s of virtual time\n",
                program.size(), 100 * loss, static_cast<unsigned long long>(lost),
                static_cast<double>(lib.cluster().now()) / static_cast<double>(kSecond));
    EXPECT_TRUE(lost > 0 || ranks == 1) << "the wire lost nothing";
    EXPECT_EQ(lib.shut_down(), 0U) << "segments leaked";
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectiveCells, testing::Range<std::uint16_t>(1, kRanksMax + 1),
                         [](const auto& ranks) { return std::to_string(ranks.param); });

}  // namespace
}  // namespace ulc::sim
