// SPDX-License-Identifier: BSD-3-Clause
// Tests of the rings of entries: laps, wrap of the counter, invalid entries, and two threads that
// exchange blocks.
#include "abi/entry_rings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "abi/region.h"
#include "base/prng.h"

namespace ulc::abi {
namespace {

constexpr std::uint32_t kEntries = 64;

struct Ring {
    explicit Ring(std::uint32_t start = 0) {
        // Sets the ring as if every earlier lap had been written.
        for (std::uint32_t i = 0; i < kEntries && start != 0; ++i)
            entries[(start + i) & (kEntries - 1)] = entry_mark(start + i - kEntries, kEntries);
        producer = ReleaseProducer(entries, kEntries, start);
        consumer = ReleaseConsumer(entries, kEntries, start);
    }
    std::uint32_t entries[kEntries]{};
    ReleaseProducer producer;
    ReleaseConsumer consumer;
};

// Gives back a random number of blocks at a time, at most as many as there are entries.
void run_through(Ring& ring, std::uint32_t blocks) {
    Prng prng(blocks);
    std::deque<std::uint32_t> due;
    for (std::uint32_t in = 0; in < blocks || !due.empty();) {
        for (auto burst = prng.below(kEntries + 1);
             burst > 0 && in < blocks && due.size() < kEntries; --burst, ++in) {
            due.push_back(static_cast<std::uint32_t>(prng.below(1U << 24)) * kReleaseUnit);
            ring.producer.push(due.back());
        }
        std::uint32_t offset = 0;
        for (auto burst = prng.below(kEntries + 1); burst > 0; --burst) {
            ASSERT_EQ(ring.consumer.take(offset), !due.empty());
            if (due.empty()) break;
            ASSERT_EQ(offset, due.front());
            due.pop_front();
        }
    }
}

TEST(ReleaseRing, zeroed_memory_holds_nothing) {
    Ring ring;
    std::uint32_t offset = 0;
    EXPECT_FALSE(ring.consumer.take(offset));
}

TEST(ReleaseRing, keeps_order_over_many_laps) {
    Ring ring;
    run_through(ring, 50'000);
}

TEST(ReleaseRing, keeps_order_while_the_counter_wraps) {
    for (const std::uint32_t before : {1U, 63U, 64U, 65U, 1000U}) {
        Ring ring(0U - before);
        run_through(ring, 3000);
    }
}

TEST(ReleaseRing, neighbouring_laps_never_share_a_mark) {
    for (const std::uint32_t entries : {kEntriesMin, 8192U, kEntriesMax}) {
        for (const std::uint32_t n :
             {0U, 1U, entries, 127 * entries, 128 * entries, 0U - entries, 0U - 1U, 0x80000000U}) {
            EXPECT_NE(entry_mark(n, entries), 0U);
            EXPECT_NE(entry_mark(n, entries), entry_mark(n - entries, entries));
        }
    }
}

TEST(ReleaseRing, what_bears_another_mark_has_not_come) {
    std::uint32_t offset = 0;
    for (const std::uint32_t lap : {1U, 2U, 127U}) {
        Ring ring;
        ring.entries[0] = entry_mark(lap * kEntries, kEntries) | 7;
        EXPECT_FALSE(ring.consumer.take(offset));
    }
    Ring ring;
    ring.producer.push(64);
    ring.entries[0] &= 0x7fffffffU;
    EXPECT_FALSE(ring.consumer.take(offset));
}

TEST(ReleaseRing, a_region_has_an_entry_for_each_block_of_its_arena) {
    for (const std::uint32_t arena : {4096U, 65536U, 100'000U, 2U << 20, 1U << 30}) {
        const RegionLayout layout = compute_layout({8, 8, 4096, arena}).value();
        EXPECT_GE(layout.rq_entries, layout.rx_arena_octets >> rx_granule_shift(arena));
        EXPECT_LT(layout.rq_entries, 2 * rx_blocks_max(arena));
    }
}

// The engine lends each block by a completion and writes into it; the client reads the block and
// gives it back. The contents show a block that came back too early, twice or never. The thread
// sanitizer shows a block that is read while it is written.
TEST(ReleaseRingThreads, a_block_is_the_clients_from_its_completion_until_its_release) {
    constexpr std::uint32_t kBlocks = 64;
    constexpr std::uint64_t kMessages = 100'000;
    const RegionLayout layout = compute_layout({8, 8, 4096, kBlocks * 64}).value();
    const std::unique_ptr<void, void (*)(void*)> memory(
        std::aligned_alloc(kPageOctets, layout.region_octets), std::free);
    std::memset(memory.get(), 0, layout.region_octets);
    initialise_control(memory.get(), layout, 1, 1);
    const Region region(memory.get(), layout);

    std::thread engine([&] {
        CompletionProducer out = region.completion_producer();
        ReleaseConsumer back = region.release_consumer();
        std::vector<std::uint32_t> free;
        for (std::uint32_t block = 0; block < kBlocks; ++block)
            free.push_back(block * 64);
        for (std::uint64_t n = 0; n < kMessages;) {
            std::uint32_t offset = 0;
            while (back.take(offset))
                free.push_back(offset);
            CompletionRecord* record = free.empty() ? nullptr : out.claim();
            if (record == nullptr) {
                std::this_thread::yield();
                continue;
            }
            std::memcpy(region.rx(free.back(), 8), &n, 8);
            record->tag = n++;
            record->body.block.offset = free.back();
            free.pop_back();
            out.publish();
        }
    });
    CompletionConsumer in = region.completion_consumer();
    ReleaseProducer back = region.release_producer();
    Prng prng(1);
    std::deque<std::pair<std::uint64_t, std::uint32_t>> held;
    for (std::uint64_t n = 0; n < kMessages || !held.empty();) {
        if (const CompletionRecord* record = in.front()) {
            ASSERT_EQ(record->tag, n++);
            held.emplace_back(record->tag, record->body.block.offset);
            in.pop();
        } else if (held.size() < kBlocks / 2 && n < kMessages) {
            std::this_thread::yield();
            continue;
        }
        for (auto count = prng.below(3); count > 0 && !held.empty(); --count) {
            std::uint64_t there = 0;
            std::memcpy(&there, region.rx(held.front().second, 8), 8);
            ASSERT_EQ(there, held.front().first);
            back.push(held.front().second);
            held.pop_front();
        }
    }
    engine.join();
}

}  // namespace
}  // namespace ulc::abi
