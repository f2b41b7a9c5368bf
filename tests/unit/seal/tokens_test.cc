// SPDX-License-Identifier: BSD-3-Clause
// Numbers that a peer sees (seal/tokens.h) do not show those that come after them.
#include "seal/tokens.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/unit/seal/xoshiro.h"

namespace ulc::seal {
namespace {

constexpr Seed kSeed{0x0706050403020100U, 0x0f0e0d0c0b0a0908U};

template <typename Source>
std::array<std::uint64_t, 4> four_of(Source& source) {
    std::array<std::uint64_t, 4> seen{};
    for (std::uint64_t& number : seen)
        number = source.next();
    return seen;
}

TEST(Tokens, do_not_follow_from_those_before_as_numbers_of_the_generator_do) {
    Prng prng(99);
    const auto of_generator = four_of(prng);
    EXPECT_EQ(test::predicted_after(of_generator), prng.next()) << "the attack works";
    Tokens tokens(kSeed);
    const auto seen = four_of(tokens);
    const std::uint64_t next = tokens.next();
    EXPECT_NE(test::predicted_after(seen), next);
    EXPECT_NE(seen[3] + (seen[3] - seen[2]), next);
}

TEST(Tokens, are_the_same_for_one_seed_and_others_for_another) {
    std::set<std::uint64_t> all;
    constexpr std::size_t kCount = 1000;
    for (const Seed& seed : {kSeed, kSeed.of(0), kSeed.of(1), Seed(1), Seed(2), Seed(1).of(0)}) {
        Tokens tokens(seed);
        Tokens again(seed);
        for (std::size_t n = 0; n < kCount; ++n) {
            const std::uint64_t token = tokens.next();
            EXPECT_EQ(token, again.next());
            EXPECT_NE(token, 0U);
            all.insert(token);
        }
    }
    EXPECT_EQ(all.size(), 6 * kCount);
}

TEST(Tokens, below_a_bound_reach_all_of_it) {
    Tokens tokens(kSeed);
    std::array<unsigned, 10> counts{};
    for (unsigned n = 0; n < 10'000; ++n)
        ++counts.at(tokens.below(counts.size()));
    for (const unsigned count : counts)
        EXPECT_NEAR(count, 1000, 150);
    EXPECT_EQ(tokens.below(0), 0U);
}

// The kinds of numbers of a seed have different inputs.
TEST(Seeds, have_no_number_in_common_with_their_tokens) {
    std::set<std::uint64_t> all;
    Tokens tokens(kSeed);
    const TokenSeries series(kSeed);
    for (std::uint64_t n = 0; n < 100; ++n)
        for (const std::uint64_t number : {tokens.next(), series.at(n), kSeed.number(n)})
            all.insert(number);
    EXPECT_EQ(all.size(), 300U);
    EXPECT_TRUE(Seed().is_zero());
    EXPECT_FALSE(kSeed.is_zero() || Seed(1).is_zero());
}

TEST(TokenSeries, knows_the_latest_of_its_tokens) {
    const TokenSeries series(kSeed);
    constexpr std::uint64_t kMost = 64;
    for (const std::uint64_t newest : {0U, 1U, 63U, 64U, 255U, 256U, 1000U}) {
        for (std::uint64_t number = 0; number <= newest + 3; ++number) {
            const bool recent = number <= newest && newest - number < kMost;
            EXPECT_EQ(series.is_recent(series.at(number), newest, kMost), recent)
                << number << " of " << newest;
        }
    }
    EXPECT_FALSE(TokenSeries(Seed(2)).is_recent(series.at(5), 5, kMost));
}

TEST(TokenSeries, has_tokens_that_do_not_follow_from_those_before) {
    const TokenSeries series(kSeed);
    std::vector<std::uint64_t> steps;
    for (std::uint64_t n = 0; n < 100; ++n) {
        EXPECT_NE(series.at(n), 0U);
        EXPECT_EQ(series.at(n) & 0xffU, n);
        steps.push_back(series.at(n + 1) - series.at(n));
    }
    EXPECT_EQ(std::set(steps.begin(), steps.end()).size(), steps.size());
    std::array<std::uint64_t, 4> seen{};
    for (std::size_t n = 0; n < seen.size(); ++n)
        seen[n] = series.at(n);
    EXPECT_FALSE(series.is_recent(test::predicted_after(seen), 4, 64));
}

}  // namespace
}  // namespace ulc::seal
