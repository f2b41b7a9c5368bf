// SPDX-License-Identifier: BSD-3-Clause
// The allocator of an endpoint's receive arena (endpoint/rx_arena.h): all memory comes back, blocks
// never overlap, and the client cannot free a block that it does not hold.
#include "endpoint/rx_arena.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/prng.h"

namespace ulc::endpoint {
namespace {

TEST(RxArena, gives_all_and_takes_all_back) {
    RxArena arena(4096);
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t b = arena.allocate(64); b != RxArena::kNone; b = arena.allocate(64))
        blocks.push_back(b);
    EXPECT_EQ(blocks.size(), 64U);
    EXPECT_EQ(arena.free_octets(), 0U);
    for (const std::uint32_t b : blocks)
        arena.free(b);
    EXPECT_EQ(arena.free_octets(), 4096U);
    EXPECT_NE(arena.allocate(4096), RxArena::kNone) << "neighbours coalesce";
}

TEST(RxArena, refuses_what_the_client_does_not_hold) {
    RxArena arena(4096);
    std::uint16_t owner = 0;
    const std::uint32_t a = arena.allocate(200);
    EXPECT_EQ(arena.release(a, owner), RxArena::Release::kBad) << "not lent yet";
    arena.lend(a);
    EXPECT_EQ(arena.release(a + 64, owner), RxArena::Release::kBad) << "inside a block";
    EXPECT_EQ(arena.release(a + 1, owner), RxArena::Release::kBad) << "no granule";
    EXPECT_EQ(arena.release(4096, owner), RxArena::Release::kBad) << "outside";
    EXPECT_EQ(arena.release(UINT32_MAX, owner), RxArena::Release::kBad);
    EXPECT_EQ(arena.release(a, owner), RxArena::Release::kFreed);
    EXPECT_EQ(arena.release(a, owner), RxArena::Release::kBad) << "twice";
}

TEST(RxArena, a_reserve_goes_back_to_its_owner) {
    RxArena arena(8192);
    const std::uint32_t reserve = arena.reserve(1500, 7);
    ASSERT_NE(reserve, RxArena::kNone);
    while (arena.allocate(64) != RxArena::kNone) {
    }
    std::uint16_t owner = 0;
    arena.lend(reserve);
    EXPECT_EQ(arena.release(reserve, owner), RxArena::Release::kReserve);
    EXPECT_EQ(owner, 7U);
    EXPECT_EQ(arena.allocate(64), RxArena::kNone) << "a reserve belongs to one endpoint";
}

TEST(RxArena, has_few_granules_in_a_large_arena) {
    for (const std::uint32_t octets : {4096U, 1U << 20, 2U << 20, 64U << 20, 1U << 30}) {
        RxArena arena(octets);
        EXPECT_EQ(arena.free_octets(), octets);
        EXPECT_NE(arena.allocate(octets), RxArena::kNone);
    }
}

// Compares the arena with a map of the blocks held: no overlap and no loss, for many seeds.
TEST(RxArena, random_use_never_overlaps_and_never_leaks) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Prng prng(seed);
        RxArena arena(1U << 18);
        std::map<std::uint32_t, std::uint32_t> held;
        for (int step = 0; step < 20'000; ++step) {
            if (prng.chance(0.5)) {
                const auto octets =
                    static_cast<std::uint32_t>(1 + prng.below(prng.chance(0.1) ? 60'000 : 2'000));
                const std::uint32_t at = arena.allocate(octets);
                if (at == RxArena::kNone) continue;
                ASSERT_GE(arena.capacity(at), octets);
                auto next = held.lower_bound(at);
                if (next != held.end()) {
                    ASSERT_LE(at + arena.capacity(at), next->first);
                }
                if (next != held.begin()) {
                    const auto before = std::prev(next);
                    ASSERT_LE(before->first + before->second, at);
                }
                held[at] = arena.capacity(at);
                arena.lend(at);
            } else if (!held.empty()) {
                auto it = held.lower_bound(static_cast<std::uint32_t>(prng.below(1U << 18)));
                if (it == held.end()) it = held.begin();
                std::uint16_t owner = 0;
                ASSERT_EQ(arena.release(it->first, owner), RxArena::Release::kFreed);
                held.erase(it);
            }
            ASSERT_EQ(arena.lent_blocks(), held.size());
        }
        for (const auto& [at, octets] : held) {
            std::uint16_t owner = 0;
            ASSERT_EQ(arena.release(at, owner), RxArena::Release::kFreed);
        }
        EXPECT_EQ(arena.free_octets(), 1U << 18);
        EXPECT_NE(arena.allocate(1U << 18), RxArena::kNone) << "seed " << seed;
    }
}

}  // namespace
}  // namespace ulc::endpoint
