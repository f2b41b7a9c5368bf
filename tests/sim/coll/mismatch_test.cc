// SPDX-License-Identifier: BSD-3-Clause
// Tests members of a collective that give different arguments: they are found and named, and no
// member waits without end. Also where all members wait, or only two know a length. A member that
// comes late is no error.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "coll/agreement.h"
#include "coll/algorithm.h"
#include "tests/sim/coll/cast.h"

namespace ulc::sim {
namespace {

using Kind = CollectiveKind;

struct Disagreement {
    const char* what;
    Operation most;
    Operation one;
};

const std::vector<Disagreement>& disagreements() {
    static const std::vector<Disagreement> all{
        {"another length", {Kind::kBroadcast, "", 100}, {Kind::kBroadcast, "", 60}},
        {"another length", {Kind::kBroadcast, "", 0}, {Kind::kBroadcast, "", 60}},
        {"another length",
         {Kind::kBroadcast, "multicast@1000", 2000},
         {Kind::kBroadcast, "multicast@1000", 1000}},
        {"another length", {Kind::kAllgather, "", 40}, {Kind::kAllgather, "", 41}},
        {"another length", {Kind::kAllreduce, "", 400}, {Kind::kAllreduce, "", 0}},
        {"another length",
         {Kind::kAllgather, "", 40, 0, false, true},
         {Kind::kAllgather, "", 44, 0, false, true}},
        {"another length", {Kind::kReduceScatter, "", 40}, {Kind::kReduceScatter, "", 41}},
        {"another length",
         {Kind::kReduceScatter, "", 40, 0, false, true},
         {Kind::kReduceScatter, "", 44, 0, false, true}},
        {"another length", {Kind::kScan, "", 100}, {Kind::kScan, "", 60}},
        {"another length", {Kind::kExscan, "", 100}, {Kind::kExscan, "", 60}},
        {"another root", {Kind::kBroadcast, "", 100, 0}, {Kind::kBroadcast, "", 100, 2}},
        {"another root", {Kind::kGather, "", 100, 0}, {Kind::kGather, "", 100, 3}},
        {"another root", {Kind::kScatter, "", 100, 0}, {Kind::kScatter, "", 100, 3}},
        {"another root", {Kind::kReduce, "", 100, 3}, {Kind::kReduce, "", 100, 1}},
        {"another operation", meeting(), {Kind::kBroadcast, "", 100}},
        {"another operation", {Kind::kScan, "", 100}, {Kind::kExscan, "", 100}},
        {"another operation", {Kind::kBroadcast, "", 100}, {Kind::kBarrier, "gather_broadcast"}},
        {"another operation", {Kind::kBarrier, "gather_broadcast"}, {Kind::kBroadcast, "", 100}},
        {"another operation", {Kind::kAllreduce, "", 40}, {Kind::kAlltoall, "", 10}},
        {"another type, operator",
         {Kind::kAllreduce, "", 40},
         {.kind = Kind::kAllreduce, .octets = 40, .user = true}},
        {"algorithm",  // with operands in order the root is a different one
         {.kind = Kind::kReduce, .algorithm = "binomial", .octets = 40, .root = 3, .user = true},
         {.kind = Kind::kReduce,
          .algorithm = "binomial",
          .octets = 40,
          .root = 3,
          .user = true,
          .commutes = true}},
    };
    return all;
}

client::Limits impatient_and_offloading(std::uint16_t rank) {
    client::Limits limits = impatient(rank);
    limits.offload = 1;
    return limits;
}

void expect_found(const Disagreement& d, std::uint16_t odd,
                  client::Limits (*limits)(std::uint16_t)) {
    LibCluster lib(config_of(4, 3), 0, limits);
    ASSERT_TRUE(lib.form());
    // A mismatch that is not noticed at once shows in the barriers: no rank completes all of them.
    std::vector<std::vector<Operation>> programs(4, {d.most, meeting(), meeting(), meeting()});
    programs[odd][0] = d.one;
    Cast cast(lib, programs);
    const std::string what = std::string(coll::name_of(operation_of(d.most.kind))) + ' ' +
                             d.most.algorithm + ": " + d.what + ", odd " + std::to_string(odd);
    EXPECT_TRUE(cast.run(2 * kSecond)) << what;
    bool named = false;
    for (std::size_t rank = 0; rank < 4; ++rank) {
        const CollectiveActor& actor = cast.actors[rank];
        EXPECT_EQ(actor.error(), ULC_ERR_MISMATCH) << what << " rank " << rank;
        named = named || actor.error_text().find(d.what) != std::string::npos;
    }
    EXPECT_TRUE(named) << what << ": " << cast.actors[0].error_text() << "; "
                       << cast.actors[odd].error_text();
}

// C-3, C-4, C-5
TEST(CollectiveMismatch, a_rank_that_disagrees_is_found_and_named_and_nobody_waits) {
    for (const Disagreement& d : disagreements())
        for (const std::uint16_t odd : {0, 1, 2})
            expect_found(d, odd, impatient);
}

/// Returns pairs of numbers of segments of 100 bytes, below 100, that the signature does not
/// distinguish.
std::vector<std::pair<std::size_t, std::size_t>> alike(const Operation& operation) {
    const ulc_reduction sum{ULC_UINT8, ULC_SUM};
    const coll::Op op = operation_of(operation.kind);
    const std::string name = operation.algorithm.substr(0, operation.algorithm.find('@'));
    const coll::Algorithm& algorithm = *coll::find_algorithm(op, name);
    std::vector<client::Signature> signatures;
    for (std::size_t segments = 0; segments < 100; ++segments) {
        const coll::Call call{.op = op, .ranks = 4, .octets = 100 * segments, .segment = 100};
        const bool reduces = operation.kind >= Kind::kReduce;
        signatures.push_back(
            coll::agreement_of(call, algorithm, reduces ? &sum : nullptr, nullptr).signature);
    }
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t few = 1; few < 100; ++few)
        for (std::size_t more = few + 1; more < 100; ++more)
            if (signatures[few].unlike(signatures[more]) == nullptr) all.emplace_back(few, more);
    return all;
}

// C-6, C-7
TEST(CollectiveMismatch, whole_segments_more_or_less_are_found_where_signatures_look_alike) {
    const std::vector<Operation> operations{
        {Kind::kBroadcast, "multicast@100"},  {Kind::kBroadcast, "binomial@100"},
        {Kind::kGather, "direct@100"},        {Kind::kScatter, "direct@100"},
        {Kind::kAllgather, "concurrent@100"}, {Kind::kAlltoall, "pairwise@100"},
        {Kind::kReduce, "chain@100"},         {Kind::kAllreduce, "multicast@100"},
    };
    for (Operation most : operations) {
        const auto pairs = alike(most);
        ASSERT_FALSE(pairs.empty());
        auto [octets, others] = pairs.front();
        for (const bool longer : {false, true}) {
            Operation one = most;
            most.octets = 100 * octets;
            one.octets = 100 * others;
            if (longer) std::swap(most.octets, one.octets);
            for (const std::uint16_t odd : {0, 2}) {
                expect_found({"another length", most, one}, odd, impatient);
                expect_found({"another length", most, one}, odd, impatient_and_offloading);
            }
        }
    }
}

// C-8
TEST(CollectiveMismatch, another_type_or_operator_is_found_whatever_algorithm_reduces) {
    const std::pair<ulc_reduction, ulc_reduction> pairs[] = {
        {{ULC_INT32, ULC_SUM}, {ULC_FLOAT, ULC_SUM}},
        {{ULC_INT32, ULC_SUM}, {ULC_INT32, ULC_MAX}},
        {{ULC_INT64, ULC_MIN}, {ULC_UINT64, ULC_MIN}},
        {{ULC_DOUBLE, ULC_PROD}, {ULC_FLOAT_COMPLEX, ULC_PROD}},
        {{ULC_INT64, ULC_BAND}, {ULC_INT32, ULC_BAND}},
    };
    for (const coll::Algorithm& algorithm : coll::algorithms()) {
        if (algorithm.op < coll::Op::kReduce) continue;
        for (const auto& [mine, other] : pairs) {
            Operation most{kind_of(algorithm.op), std::string(algorithm.name), 480};
            most.type = mine.type;
            most.op = mine.op;
            Operation one = most;
            one.type = other.type;
            one.op = other.op;
            expect_found({"another type, operator", most, one}, 1, impatient);
        }
    }
}

/// Blocks about which two members disagree, in an operation in which each knows only its own: of 0,
/// 1, 2 and 3 segments.
constexpr std::size_t kSegment = 1000;

struct Miscount {
    std::uint16_t odd = 0;    ///< this member gives another length …
    std::uint16_t about = 0;  ///< … for its exchange with this one; itself: with the root
    std::ptrdiff_t by = 0;
};

/// Returns the segments that one of two of four ranks gives the other, in the direction with fewer
/// (the mistake is about both directions).
std::size_t fewest_exchanged(unsigned one, unsigned other) {
    return std::min((one + 2 * other) % 4 * 5 % 4, (other + 2 * one) % 4 * 5 % 4);
}

/// Returns miscounts by a segment, by a byte, to nothing and from nothing.
std::vector<Miscount> miscounts_of(const Operation& operation) {
    std::vector<Miscount> all;
    for (std::uint16_t odd = 0; odd < 4; ++odd) {
        for (std::uint16_t about = 0; about < 4; ++about) {
            const bool exchange = operation.kind == Kind::kAlltoall;
            const bool meets = exchange || odd == operation.root;
            if ((odd == about) == meets) continue;
            const auto length = static_cast<std::ptrdiff_t>(
                kSegment * (exchange ? fewest_exchanged(odd, about) : about * 5U % 4));
            const auto segment = static_cast<std::ptrdiff_t>(kSegment);
            for (const std::ptrdiff_t by : {segment, -segment, std::ptrdiff_t{1}, -length})
                if (by != 0 && length + by >= 0) all.push_back({odd, about, by});
        }
    }
    return all;
}

void expect_named(const Operation& operation, const Miscount& wrong, bool alone) {
    LibCluster lib(config_of(4, 3), 0, impatient);
    ASSERT_TRUE(lib.form());
    std::vector<Operation> program{operation};
    if (!alone) program.insert(program.end(), 3, meeting());
    std::vector<std::vector<Operation>> programs(4, program);
    programs[wrong.odd][0].mistake = wrong.by;
    programs[wrong.odd][0].mistaken_about = wrong.about;
    Cast cast(lib, programs);
    const std::string what = std::string(coll::name_of(operation_of(operation.kind))) + "v " +
                             operation.algorithm + " root " + std::to_string(operation.root) +
                             ", rank " + std::to_string(wrong.odd) + " about rank " +
                             std::to_string(wrong.about) + " by " + std::to_string(wrong.by);
    EXPECT_TRUE(cast.run(2 * kSecond)) << what;
    const std::uint16_t other = wrong.about == wrong.odd ? operation.root : wrong.about;
    bool named = false;
    for (const auto& [judge, judged] : {std::pair(wrong.odd, other), std::pair(other, wrong.odd)}) {
        const std::string text = "rank " + std::to_string(judged) + " gave another length";
        named |= cast.actors[judge].error_text().find(text) != std::string::npos;
    }
    EXPECT_TRUE(named) << what << ": " << cast.actors[wrong.odd].error_text() << "; "
                       << cast.actors[other].error_text();
    for (const CollectiveActor& actor : cast.actors) {
        const bool done = alone && actor.done();  // its part was over
        EXPECT_TRUE(done || actor.error() == ULC_ERR_MISMATCH) << what << ": " << actor.error();
    }
}

// C-4, C-9
TEST(CollectiveMismatch, a_length_that_only_two_members_know_is_compared_by_them) {
    const std::vector<Operation> operations{
        {Kind::kGather, "direct@1000", 2 * kSegment, 0},
        {Kind::kGather, "direct@1000", 2 * kSegment, 3},
        {Kind::kGather, "token@1000", 2 * kSegment, 3},
        {Kind::kScatter, "direct@1000", 2 * kSegment, 0},
        {Kind::kScatter, "direct@1000", 2 * kSegment, 3},
        {Kind::kAlltoall, "pairwise@1000", 2 * kSegment},
        {Kind::kAlltoall, "pairwise:3@1000", 2 * kSegment},
    };
    for (Operation operation : operations) {
        operation.uneven = true;
        for (const Miscount& wrong : miscounts_of(operation))
            for (const bool alone : {false, true})
                expect_named(operation, wrong, alone);
    }
}

/// Makes rank 0 and the others take each other for the root: all wait, and no rank has sent
/// anything.
std::vector<std::vector<Operation>> all_wait() {
    std::vector<std::vector<Operation>> programs(4, {{Kind::kBroadcast, "", 100, 0}});
    programs[0][0].root = 3;
    return programs;
}

// C-12
TEST(CollectiveMismatch, members_that_all_wait_are_told_within_their_patience_and_not_before) {
    LibCluster lib(config_of(4, 3), 0, impatient);
    ASSERT_TRUE(lib.form());
    Cast cast(lib, all_wait());
    EXPECT_FALSE(cast.run(15 * kMillisecond));
    EXPECT_TRUE(cast.run(10 * kMillisecond));
    for (const CollectiveActor& actor : cast.actors)
        EXPECT_EQ(actor.error(), ULC_ERR_MISMATCH);
}

// C-10, C-15
TEST(CollectiveMismatch, whoever_takes_another_algorithm_is_named) {
    LibCluster lib(config_of(4, 3), 0, impatient);
    ASSERT_TRUE(lib.form());
    std::vector<std::vector<Operation>> programs(
        4, {{Kind::kBroadcast, "multicast", 100}, meeting(), meeting()});
    programs[3][0].algorithm = "binomial";  // waits for rank 2, whose part is over
    Cast cast(lib, programs);
    EXPECT_TRUE(cast.run(kSecond));
    for (const CollectiveActor& actor : cast.actors)
        EXPECT_EQ(actor.error(), ULC_ERR_MISMATCH);
    EXPECT_NE(cast.actors[3].error_text().find("took another algorithm"), std::string::npos)
        << cast.actors[3].error_text();
}

TEST(CollectiveMismatch, without_signatures_nobody_asks) {
    const auto unchecked = [](std::uint16_t rank) {
        client::Limits limits = impatient(rank);
        limits.check_collectives = 0;
        return limits;
    };
    LibCluster lib(config_of(4, 3), 0, unchecked);
    ASSERT_TRUE(lib.form());
    Cast cast(lib, all_wait());
    EXPECT_FALSE(cast.run(kSecond));
    of_the_dead.insert(of_the_dead.end(), {cast.actors[0].running(), cast.actors[1].running(),
                                           cast.actors[2].running(), cast.actors[3].running()});
}

// A rank that computes for a minute, or has not called yet, does not disagree. The ranks that wait
// ask it at growing intervals.
// C-16
TEST(CollectiveMismatch, a_member_that_comes_late_is_no_error) {
    for (const std::uint16_t late : {0, 2}) {
        ClusterConfig config = config_of(4, 3);
        config.net.faults = {.loss = 0.02, .duplicate = 0.01, .reorder = 0.02};
        LibCluster lib(config, 0, impatient);
        ASSERT_TRUE(lib.form());
        std::vector<Operation> program;
        for (std::uint8_t kind = 0; kind < kCollectiveKinds; ++kind)
            program.push_back({static_cast<Kind>(kind), "", 5000, 1});
        Cast cast(lib, std::vector<std::vector<Operation>>(4, program));
        lib.cluster().pause_client(late, lib.cluster().now() + 60 * kSecond);
        EXPECT_TRUE(cast.run(62 * kSecond)) << late;
        for (const CollectiveActor& actor : cast.actors) {
            EXPECT_TRUE(actor.done()) << actor.at() << ' ' << actor.error_text();
            EXPECT_EQ(actor.wrong(), "");
        }
    }
}

// C-3, C-7
TEST(CollectiveMismatch, signatures_can_be_switched_off_at_any_rank) {
    const auto limits = [](std::uint16_t rank) {
        client::Limits one;
        one.check_collectives = rank % 2;
        return one;
    };
    LibCluster lib(config_of(4, 5), 0, limits);
    ASSERT_TRUE(lib.form());
    std::vector<Operation> program;
    for (std::uint8_t kind = 0; kind < kCollectiveKinds; ++kind)
        program.push_back({static_cast<Kind>(kind), "", 100, 1});
    Cast cast(lib, std::vector<std::vector<Operation>>(4, program));
    EXPECT_TRUE(cast.run(kSecond));
    for (const CollectiveActor& actor : cast.actors) {
        EXPECT_TRUE(actor.done()) << actor.at() << ' ' << actor.error_text();
        EXPECT_EQ(actor.wrong(), "");
    }
}

}  // namespace
}  // namespace ulc::sim
