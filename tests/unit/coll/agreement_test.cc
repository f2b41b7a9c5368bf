// What members of an operation must have given alike, as the tags of its messages abbreviate it.
#include "coll/agreement.h"

#include <gtest/gtest.h>

#include <iterator>
#include <utility>
#include <vector>

#include "coll/reduction.h"

namespace ulc::coll {
namespace {

/// Every type and operator that a reduction takes, of ULC_OCTETS(n) those of the sizes that other types have, and some.
std::vector<ulc_reduction> reductions() {
    std::vector<ulc_reduction> all;
    for (std::uint32_t type = ULC_INT8; type <= ULC_LONG_DOUBLE_INT; ++type)
        for (std::uint32_t op = ULC_SUM; op <= ULC_USER; ++op)
            if (op == ULC_USER || apply_of(type, op) != nullptr) all.push_back({type, op});
    for (std::uint32_t octets = 1; octets <= 32; ++octets)
        all.push_back({ULC_OCTETS(octets), ULC_USER});
    return all;
}

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
        const ulc_reduction user{ULC_OCTETS(octets), ULC_USER};
        return agreement_of(call, algorithm, &user, nullptr);
    };
    EXPECT_EQ(of(8).signature.unlike(of(40).signature), nullptr);
    EXPECT_STREQ(of(8).unlike(of(40)), "gave another root, type, operator or length");
}

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

}  // namespace
}  // namespace ulc::coll
