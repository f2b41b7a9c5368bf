// SPDX-License-Identifier: BSD-3-Clause
// The client's allocator of the tx arena (client/p2p/tx_arena.h): blocks never overlap, freed
// blocks merge again, and only an allocated block is taken back.
#include "client/p2p/tx_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "base/prng.h"

namespace ulc::client {
namespace {

struct Memory {
    explicit Memory(std::uint32_t octets)
        : bytes(new (std::align_val_t{64}) std::byte[octets]), arena(bytes, octets) {}
    ~Memory() { ::operator delete[](bytes, std::align_val_t{64}); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::byte* bytes;
    TxArena arena;
};

TEST(TxArena, gives_the_whole_arena_as_one_block_when_it_is_a_power_of_two) {
    Memory memory(1U << 16);
    EXPECT_EQ(memory.arena.largest_block(), 1U << 16);
    const std::uint32_t block = memory.arena.allocate(1U << 16);
    EXPECT_EQ(block, 0U);
    EXPECT_EQ(memory.arena.allocate(1), TxArena::kNone);
    EXPECT_TRUE(memory.arena.free(block));
    EXPECT_EQ(memory.arena.used(), 0U);
}

TEST(TxArena, merges_again_what_was_split) {
    Memory memory(1U << 14);
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t block; (block = memory.arena.allocate(64)) != TxArena::kNone;)
        blocks.push_back(block);
    EXPECT_EQ(blocks.size(), (1U << 14) / 64);
    for (const std::uint32_t block : blocks)
        EXPECT_TRUE(memory.arena.free(block));
    EXPECT_EQ(memory.arena.allocate(1U << 14), 0U);
}

TEST(TxArena, gives_an_equal_block_back_at_once) {
    Memory memory(1U << 14);
    const std::uint32_t block = memory.arena.allocate(1000);
    EXPECT_TRUE(memory.arena.free(block));
    EXPECT_EQ(memory.arena.allocate(900), block);
}

TEST(TxArena, refuses_what_is_not_an_allocated_block) {
    Memory memory(1U << 14);
    const std::uint32_t block = memory.arena.allocate(256);
    EXPECT_FALSE(memory.arena.free(block + 64));
    EXPECT_FALSE(memory.arena.free(block + 1));
    EXPECT_FALSE(memory.arena.free(1U << 14));
    EXPECT_FALSE(memory.arena.free(UINT32_MAX));
    EXPECT_TRUE(memory.arena.free(block));
    EXPECT_FALSE(memory.arena.free(block)) << "twice";
}

TEST(TxArena, refuses_more_than_there_is) {
    Memory memory(1U << 14);
    EXPECT_EQ(memory.arena.allocate((1U << 14) + 1), TxArena::kNone);
    EXPECT_EQ(memory.arena.allocate(UINT32_MAX), TxArena::kNone);
}

// Every block keeps its contents while others come and go, at any arena size. At the end all memory
// has returned.
TEST(TxArena, blocks_never_overlap) {
    for (const std::uint32_t octets : {4096U, 4160U, 100'032U, 1U << 18}) {
        Memory memory(octets);
        Prng prng(octets);
        std::map<std::uint32_t, std::uint32_t> live;
        for (int step = 0; step < 20'000; ++step) {
            const bool grow = prng.chance(0.55);
            if (grow) {
                const auto length = static_cast<std::uint32_t>(1 + prng.below(octets / 6));
                const std::uint32_t block = memory.arena.allocate(length);
                if (block == TxArena::kNone) continue;
                ASSERT_LE(std::uint64_t{block} + length, octets);
                ASSERT_EQ(block % 64, 0U);
                std::memset(memory.arena.at(block), static_cast<int>(block / 64 % 251), length);
                ASSERT_TRUE(live.emplace(block, length).second);
            } else if (!live.empty()) {
                auto it = live.lower_bound(static_cast<std::uint32_t>(prng.below(octets)));
                if (it == live.end()) it = live.begin();
                for (std::uint32_t i = 0; i < it->second; ++i)
                    ASSERT_EQ(memory.arena.at(it->first)[i],
                              static_cast<std::byte>(it->first / 64 % 251));
                ASSERT_TRUE(memory.arena.free(it->first));
                live.erase(it);
            }
        }
        for (const auto& [block, length] : live)
            ASSERT_TRUE(memory.arena.free(block));
        EXPECT_EQ(memory.arena.used(), 0U);
        EXPECT_NE(memory.arena.allocate(memory.arena.largest_block()), TxArena::kNone);
    }
}

}  // namespace
}  // namespace ulc::client
