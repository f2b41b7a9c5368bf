// SPDX-License-Identifier: BSD-3-Clause
// Tests the death of a rank in a collective: every other rank whose part was not over gets the same
// error in time, and these ranks continue without it, in a separate group.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/coll/cast.h"

namespace ulc::sim {
namespace {

using Kind = CollectiveKind;

constexpr std::uint16_t kRanks = 5;
constexpr Nanos kDead = 500 * kMillisecond;
/// Limit for the delay until the last rank learns of it: questions are asked in intervals, and
/// ranks poll once a millisecond.
constexpr Nanos kHears = 100 * kMillisecond;
/// An engine delivers for so long what a client sent that died in the middle of a message.
constexpr Nanos kLingers = 20 * kMillisecond;

struct Death {
    std::uint16_t victim = 0;
    bool node = false;   ///< its node dies with it; else its engine reports it
    bool comes = false;  ///< it began the operation, and dies a millisecond later
};

/// Returns the operations by the table's choice, with a length that a sender has not passed
/// completely to its engine in a millisecond; and every barrier.
std::vector<Operation> operations() {
    std::vector<Operation> all;
    for (std::uint8_t kind = 1; kind < kCollectiveKinds; ++kind)
        all.push_back({static_cast<Kind>(kind), "", 400'000});
    for (const char* name : {"gather_broadcast", "chain", "dissemination"})
        all.push_back({Kind::kBarrier, name});
    return all;
}

/// Returns true if the rank cannot complete without the victim.
bool needs(const Operation& operation, std::uint16_t rank, std::uint16_t victim) {
    switch (operation.kind) {
        case Kind::kBroadcast:
        case Kind::kScatter:
            return operation.root == victim;
        case Kind::kGather:
        case Kind::kReduce:
            return operation.root == rank;
        case Kind::kScan:
        case Kind::kExscan:
            return rank > victim;
        case Kind::kBarrier:
        case Kind::kAllgather:
        case Kind::kAlltoall:
        case Kind::kAllreduce:
        case Kind::kReduceScatter:
            break;
    }
    return true;
}

class Drama {
public:
    Drama(const Operation& operation, const Death& death, std::string what)
        : operation_(operation), death_(death), what_(std::move(what)), lib_(config()) {}

    void play() {
        ASSERT_TRUE(lib_.form()) << what_;
        Cast cast(lib_, std::vector<std::vector<Operation>>(kRanks, {operation_}));
        die_in(cast);
        EXPECT_TRUE(cast.run((death_.node ? kDead : kLingers) + kHears)) << what_;
        for (const std::uint16_t rank : survivors()) {
            const CollectiveActor& actor = cast.actors[rank];
            const bool over = actor.done() && !needs(operation_, rank, death_.victim);
            EXPECT_TRUE(over || actor.error() == ULC_ERR_PEER_DIED)
                << what_ << " rank " << rank << ": " << actor.error() << ' ' << actor.error_text();
        }
        go_on();
    }

private:
    static ClusterConfig config() {
        ClusterConfig config = config_of(kRanks, 7);
        config.engine.jobs.liveness.node_dead = kDead;
        config.engine.params.peer_dead = kDead;
        return config;
    }
    [[nodiscard]] std::vector<std::uint16_t> survivors() const {
        std::vector<std::uint16_t> ranks;
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            if (rank != death_.victim) ranks.push_back(rank);
        return ranks;
    }

    void die_in(Cast& cast) {
        const Nanos end = lib_.cluster().now() + kMillisecond;
        static_cast<void>(lib_.run(
            kMillisecond, [&] { return lib_.cluster().now() >= end; },
            [&](std::uint16_t rank, Nanos now) {
                const bool idle = rank == death_.victim && !death_.comes;
                return idle ? kNever : cast.actors[rank].step(now);
            }));
        EXPECT_FALSE(death_.comes && cast.actors[death_.victim].done()) << what_;
        of_the_dead.push_back(cast.actors[death_.victim].running());
        lib_.kill(death_.victim);
        if (death_.node) lib_.cluster().kill_node(death_.victim);
    }

    /// Lets the survivors make a group, in which every operation is right.
    void go_on() {
        const std::vector<std::uint16_t> ranks = survivors();
        std::vector<ulc_request> requests(kRanks);
        std::vector<ulc_status> made(kRanks);
        std::vector<int> begun(kRanks,
                               ULC_ERR_AGAIN);  // data for the dead rank may still fill the ring
        std::vector<int> states(kRanks, ULC_ERR_AGAIN);
        begun[death_.victim] = states[death_.victim] = ULC_OK;
        ASSERT_TRUE(lib_.run(
            kSecond, [&] { return std::ranges::count(states, ULC_ERR_AGAIN) == 0; },
            [&](std::uint16_t rank, Nanos) {
                if (begun[rank] == ULC_ERR_AGAIN)
                    begun[rank] = ulc_group_create(lib_.endpoint(rank), ranks.data(), ranks.size(),
                                                   &requests[rank]);
                if (begun[rank] == ULC_OK && states[rank] == ULC_ERR_AGAIN)
                    states[rank] = ulc_test(lib_.endpoint(rank), &requests[rank], &made[rank]);
                return kNever;
            }))
            << what_;
        std::vector<Operation> program;
        for (std::uint8_t kind = 0; kind < kCollectiveKinds; ++kind)
            program.push_back({static_cast<Kind>(kind), "", 3000, 1});
        std::vector<CollectiveActor> actors;
        for (const std::uint16_t rank : ranks) {
            ASSERT_EQ(states[rank], ULC_OK) << what_;
            ASSERT_EQ(made[rank].error, ULC_OK) << what_;
            actors.emplace_back(lib_.endpoint(rank), made[rank].group, program, rank + 1U);
        }
        EXPECT_TRUE(lib_.run(
            kSecond,
            [&] { return std::ranges::all_of(actors, [](const auto& a) { return a.ended(); }); },
            [&](std::uint16_t rank, Nanos now) {
                return actors[rank - (rank > death_.victim ? 1U : 0U)].step(now);
            }))
            << what_;
        for (const CollectiveActor& actor : actors) {
            EXPECT_TRUE(actor.done()) << what_ << ": " << actor.at() << ' ' << actor.error_text();
            EXPECT_EQ(actor.wrong(), "") << what_;
        }
    }

    Operation operation_;
    Death death_;
    std::string what_;
    LibCluster lib_;
};

/// Kills the victim in every operation, with the root that makes another rank need it.
void kill_in_every_operation(std::uint16_t victim, bool node) {
    for (Operation operation : operations()) {
        const bool to_root = operation.kind == Kind::kGather || operation.kind == Kind::kReduce;
        operation.root = to_root ? 1 : victim;
        for (const bool comes : {false, true}) {
            // A barrier is over within a millisecond, if all come.
            if (comes && operation.kind == Kind::kBarrier) continue;
            const std::string what = std::string(coll::name_of(operation_of(operation.kind))) +
                                     ' ' + operation.algorithm + " without rank " +
                                     std::to_string(victim) + (node ? " and its node" : "") +
                                     (comes ? ", that began it" : "");
            Drama({operation}, {victim, node, comes}, what).play();
        }
    }
}

TEST(CollectiveDeath, of_a_process_is_everybodys_error_and_the_rest_go_on) {
    kill_in_every_operation(2, false);
}

TEST(CollectiveDeath, of_rank_0_is_everybodys_error_and_the_rest_go_on) {
    for (const bool node : {false, true})
        kill_in_every_operation(0, node);
}

TEST(CollectiveDeath, of_a_node_is_everybodys_error_in_time_and_the_rest_go_on) {
    kill_in_every_operation(2, true);
}

}  // namespace
}  // namespace ulc::sim
