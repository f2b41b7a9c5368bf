// SPDX-License-Identifier: BSD-3-Clause
// Tests the arguments of an operation on which all members must agree, as the tags of its messages
// abbreviate them.
#include "coll/agreement.h"

#include <gtest/gtest.h>

#include <iterator>
#include <utility>
#include <vector>

#include "coll/reduction.h"

namespace ulc::coll {
namespace {

/// Returns every type and operator that a reduction accepts. ULC_BYTES(n) appears with the sizes
/// that other types have, and some more.
std::vector<ulc_reduction> reductions() {
    std::vector<ulc_reduction> all;
    for (std::uint32_t type = ULC_INT8; type <= ULC_LONG_DOUBLE_INT; ++type)
        for (std::uint32_t op = ULC_SUM; op <= ULC_USER; ++op)
            if (op == ULC_USER || apply_of(type, op) != nullptr) all.push_back({type, op});
    for (std::uint32_t octets = 1; octets <= 32; ++octets)
        all.push_back({ULC_BYTES(octets), ULC_USER});
    return all;
}

// C-8
TEST(agreement, of_two_types_or_operators_is_never_alike_whatever_algorithm_reduces) {
    const std::vector<ulc_reduction> all = reductions();
    ASSERT_EQ(all.size(), 138U + 32U);
    unsigned algorithms_tried = 0;
    for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.op < Op::kReduce) continue;
        ++algorithms_tried;
        for (const std::uint64_t segment : {1000U, 65536U}) {
            Call call{.op = algorithm.op, .ranks = 4, .octets = 480, .segment = segment};
            for (const ulc_reduction& mine : all) {
                const client::Agreement one = agreement_of(call, algorithm, &mine, nullptr);
                for (const ulc_reduction& other : all) {
                    const client::Agreement two = agreement_of(call, algorithm, &other, nullptr);
                    const bool same = mine.type == other.type && mine.op == other.op;
                    ASSERT_EQ(one.signature.unlike(two.signature) == nullptr, same)
                        << algorithm.name << ": " << mine.type << ' ' << mine.op << " and "
                        << other.type << ' ' << other.op;
                    ASSERT_EQ(one.arguments == two.arguments, same);
                }
            }
        }
    }
    EXPECT_EQ(algorithms_tried, 17U);
}

TEST(agreement, tells_octets_of_a_user_apart_where_the_signature_does_not) {
    const Algorithm& algorithm = *find_algorithm(Op::kAllreduce, "multicast");
    const Call call{.op = Op::kAllreduce, .ranks = 4, .octets = 480, .segment = 65536};
    const auto of = [&](std::uint32_t octets) {
        const ulc_reduction user{ULC_BYTES(octets), ULC_USER};
        return agreement_of(call, algorithm, &user, nullptr);
    };
    EXPECT_EQ(of(8).signature.unlike(of(40).signature), nullptr);
    EXPECT_STREQ(of(8).unlike(of(40)), "gave another root, type, operator or length");
}

// C-10
TEST(agreement, has_algorithms_parameters_and_whether_a_users_operator_commutes) {
    const Algorithm& binomial = *find_algorithm(Op::kReduce, "binomial");
    const Algorithm& chain = *find_algorithm(Op::kReduce, "chain");
    const Call call{.op = Op::kReduce, .ranks = 4, .octets = 480, .segment = 65536};
    Call in_order = call;
    in_order.commutative = false;
    Call cut = call;
    cut.segment = 1000;
    Call wide = call;
    wide.concurrent = 2;
    const ulc_reduction user{ULC_INT32, ULC_USER};
    const client::Agreement mine = agreement_of(call, binomial, &user, nullptr);
    for (const client::Agreement& other :
         {agreement_of(in_order, binomial, &user, nullptr),
          agreement_of(cut, binomial, &user, nullptr), agreement_of(wide, binomial, &user, nullptr),
          agreement_of(call, chain, &user, nullptr)})
        EXPECT_STREQ(mine.unlike(other), "took another algorithm");
}

// C-9
TEST(agreement, has_all_lengths_that_all_know_and_none_that_only_two_know) {
    std::size_t lengths[4] = {1, 2, 3, 4};
    const std::size_t offsets[4] = {0, 10, 20, 30};
    const Blocks blocks{.lengths = lengths, .offsets = offsets};
    const auto arguments_of = [&](Op op) {
        const Algorithm& algorithm = *find_algorithm(op, op == Op::kAlltoallv   ? "pairwise"
                                                         : op == Op::kAllgather ? "ring"
                                                                                : "direct");
        const Call call{.op = op, .ranks = 4, .octets = lengths[1], .segment = 65536};
        return agreement_of(call, algorithm, nullptr, &blocks).arguments;
    };
    constexpr Op kOperations[] = {Op::kAllgather, Op::kGatherv, Op::kScatterv, Op::kAlltoallv};
    std::vector<std::uint32_t> before;
    for (const Op op : kOperations)
        before.push_back(arguments_of(op));
    std::swap(lengths[1], lengths[2]);
    EXPECT_NE(arguments_of(Op::kAllgather), before[0]);
    for (std::size_t i = 1; i < std::size(kOperations); ++i)
        EXPECT_EQ(arguments_of(kOperations[i]), before[i]);
}

// C-8, C-9, C-10, C-11, C-14: the examples of docs/protocol/COLLECTIVES.md.
TEST(agreement, has_the_values_of_the_specification) {
    const auto expect = [](const client::Agreement& got, std::uint64_t signature,
                           std::uint32_t arguments, std::uint32_t algorithm) {
        EXPECT_EQ(got.signature.bits(), signature);
        EXPECT_EQ(got.arguments, arguments);
        EXPECT_EQ(got.algorithm, algorithm);
    };
    Call call{.op = Op::kBroadcast, .ranks = 10, .root = 1, .octets = 480, .segment = 65536};
    const Algorithm& multicast = *find_algorithm(Op::kBroadcast, "multicast");
    expect(agreement_of(call, multicast, nullptr, nullptr), 0x11456, 0x2cfa0, 0xbe0a52);
    call.op = Op::kReduce;
    call.root = 9;
    call.segment = 1000;
    call.concurrent = 2;
    const ulc_reduction sum{ULC_INT32, ULC_SUM};
    const Algorithm& chain = *find_algorithm(Op::kReduce, "chain");
    expect(agreement_of(call, chain, &sum, nullptr), 0x51d96, 0x298cf9, 0x72cbe7);
    std::size_t lengths[4] = {1, 2, 3, 4};
    const std::size_t offsets[4] = {0, 1, 3, 6};
    const Blocks blocks{.lengths = lengths, .offsets = offsets};
    const Call gather{.op = Op::kAllgather, .ranks = 4, .octets = 2, .segment = 65536};
    const Algorithm& ring = *find_algorithm(Op::kAllgather, "ring");
    expect(agreement_of(gather, ring, nullptr, &blocks), 0x386b2, 0x2503d557, 0xddd3b9);
}

}  // namespace
}  // namespace ulc::coll
