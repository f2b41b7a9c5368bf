// SPDX-License-Identifier: BSD-3-Clause
// base/tables/keyed_index.h and keyed_lists.h: against std::map, and the cost of a search.
#include "base/tables/keyed_index.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/tables/keyed_lists.h"

namespace ulc {
namespace {

TEST(KeyedIndex, finds_what_a_map_finds) {
    KeyedIndex index(1);
    std::map<std::uint64_t, std::uint32_t> map;
    Prng prng(2);
    EXPECT_EQ(index.find(7), KeyedIndex::kNone);
    index.erase(7);
    for (std::uint32_t n = 0; n < 20'000; ++n) {
        const std::uint64_t key = prng.below(500);
        if (map.contains(key)) {
            ASSERT_EQ(index.find(key), map[key]);
            index.erase(key);
            map.erase(key);
        } else {
            ASSERT_EQ(index.find(key), KeyedIndex::kNone);
            index.insert(key, n);
            map[key] = n;
        }
        ASSERT_EQ(index.size(), map.size());
    }
    for (std::uint64_t key = 0; key < 500; ++key)
        ASSERT_EQ(index.find(key), map.contains(key) ? map[key] : KeyedIndex::kNone);
    index.clear();
    EXPECT_EQ(index.find(map.begin()->first), KeyedIndex::kNone);
}

/// Returns the mean number of places that a search looks at in a table of 4,096 keys, each
/// `stride` above the one before.
double steps_of_a_search(std::uint64_t stride) {
    constexpr std::uint32_t kKeys = 4096;
    KeyedIndex index(0x5eed);
    for (std::uint32_t n = 0; n < kKeys; ++n)
        index.insert(n * stride, n);
    const std::uint64_t before = index.steps();
    for (std::uint32_t n = 0; n < 2 * kKeys; ++n)
        (void)index.find(n * stride);
    return static_cast<double>(index.steps() - before) / (2 * kKeys);
}

TEST(KeyedIndex, a_search_looks_at_few_places_whatever_the_keys) {
    for (const std::uint64_t stride :
         {std::uint64_t{1}, std::uint64_t{256}, std::uint64_t{1} << 32U, std::uint64_t{1} << 40U,
          std::uint64_t{0x0102'0304'0507}})
        EXPECT_LT(steps_of_a_search(stride), 8) << stride;
}

TEST(KeyedLists, has_the_values_of_a_key_in_order) {
    KeyedLists<unsigned> lists(1);
    std::map<std::uint64_t, std::vector<unsigned>> map;
    Prng prng(2);
    for (unsigned n = 0; n < 20'000; ++n) {
        const std::uint64_t key = prng.below(300);
        std::vector<unsigned>& there = map[key];
        if (!there.empty() && prng.chance(0.5)) {
            const unsigned value = there[prng.below(there.size())];
            lists.remove(key, value);
            std::erase(there, value);
        } else {
            lists.add(key, n);
            there.push_back(n);
        }
        const auto found = lists.find(key);
        ASSERT_EQ(std::vector<unsigned>(found.begin(), found.end()), there);
    }
    EXPECT_EQ(lists.size(), static_cast<std::size_t>(std::ranges::count_if(
                                map, [](const auto& each) { return !each.second.empty(); })));
    lists.clear();
    EXPECT_TRUE(lists.find(map.begin()->first).empty());
}

TEST(KeyedHash, tells_names_apart_and_keeps_a_secret) {
    std::map<std::uint64_t, std::string> names;
    const KeyedHash hash(1);
    for (unsigned n = 0; n < 10'000; ++n) {
        const std::string name = "job" + std::to_string(n);
        EXPECT_TRUE(names.emplace(hash.of(name.data(), name.size()), name).second) << name;
    }
    EXPECT_NE(hash.of("ab", 2), KeyedHash(2).of("ab", 2));
    EXPECT_NE(hash.of("a\0", 2), hash.of("a", 1)) << "the length counts";
}

}  // namespace
}  // namespace ulc
