// SPDX-License-Identifier: BSD-3-Clause
// Tests of the arithmetic of a region: it lays out regions, and validates layouts made by others.
#include "abi/region.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace ulc::abi {
namespace {

RegionLayout good() {
    auto layout = compute_layout({});
    EXPECT_TRUE(layout.ok());
    return layout.value();
}

TEST(Region, a_computed_layout_passes_its_own_validation) {
    for (const std::uint32_t slots : {8U, 256U, 65536U}) {
        for (const std::uint32_t arena : {4096U, 4160U, 1U << 20, 1U << 30}) {
            const auto layout = compute_layout({slots, slots, arena, arena});
            ASSERT_TRUE(layout.ok());
            EXPECT_EQ(validate_layout(layout.value(), layout.value().region_octets), Err::kOk);
            EXPECT_EQ(layout.value().region_octets % kPageOctets, 0U);
        }
    }
}

TEST(Region, refuses_sizes_out_of_bounds) {
    EXPECT_EQ(compute_layout({0, 8, 4096, 4096}).error(), Err::kInvalid);
    EXPECT_EQ(compute_layout({4, 8, 4096, 4096}).error(), Err::kInvalid);
    EXPECT_EQ(compute_layout({8, 12, 4096, 4096}).error(), Err::kInvalid);
    EXPECT_EQ(compute_layout({1U << 17, 8, 4096, 4096}).error(), Err::kInvalid);
    EXPECT_EQ(compute_layout({8, 8, 4095, 4096}).error(), Err::kInvalid);
    EXPECT_EQ(compute_layout({8, 8, 4096, 0}).error(), Err::kInvalid);
    EXPECT_EQ(compute_layout({8, 8, (1U << 30) + 64, 4096}).error(), Err::kInvalid);
}

TEST(Region, refuses_a_layout_larger_than_the_mapping) {
    const RegionLayout layout = good();
    EXPECT_EQ(validate_layout(layout, layout.region_octets - 1), Err::kCorrupt);
    EXPECT_EQ(validate_layout(layout, 0), Err::kCorrupt);
}

// Sets each field to every value near a boundary. A layout is accepted only if every part lies
// inside, is aligned and overlaps no other part.
TEST(Region, refuses_hostile_values_of_every_field) {
    const RegionLayout base = good();
    using Field = std::uint32_t RegionLayout::*;
    constexpr Field kFields[] = {&RegionLayout::sq_offset,       &RegionLayout::sq_slots,
                                 &RegionLayout::cq_offset,       &RegionLayout::cq_slots,
                                 &RegionLayout::rq_offset,       &RegionLayout::rq_entries,
                                 &RegionLayout::dq_offset,       &RegionLayout::dq_entries,
                                 &RegionLayout::tx_arena_offset, &RegionLayout::tx_arena_octets,
                                 &RegionLayout::rx_arena_offset, &RegionLayout::rx_arena_octets};
    constexpr std::uint32_t kValues[] = {0,          1,          63,         64,        4095,
                                         4096,       4097,       65535,      65536,     0x7fffffff,
                                         0x80000000, 0xfffff000, 0xffffffc0, 0xffffffff};
    for (const Field field : kFields) {
        for (const std::uint32_t value : kValues) {
            RegionLayout layout = base;
            layout.*field = value;
            if (validate_layout(layout, base.region_octets) != Err::kOk) continue;
            const auto inside = [&](std::uint64_t offset, std::uint64_t octets) {
                return offset >= kPageOctets && offset + octets <= base.region_octets;
            };
            EXPECT_TRUE(inside(layout.sq_offset,
                               std::uint64_t{layout.sq_slots} * sizeof(SubmissionRecord)));
            EXPECT_TRUE(inside(layout.cq_offset,
                               std::uint64_t{layout.cq_slots} * sizeof(SubmissionRecord)));
            EXPECT_TRUE(inside(layout.rq_offset, std::uint64_t{layout.rq_entries} * 4));
            EXPECT_GE(layout.rq_entries, rx_blocks_max(layout.rx_arena_octets));
            EXPECT_TRUE(inside(layout.dq_offset, std::uint64_t{layout.dq_entries} * 4));
            EXPECT_TRUE(inside(layout.tx_arena_offset, layout.tx_arena_octets));
            EXPECT_TRUE(inside(layout.rx_arena_offset, layout.rx_arena_octets));
        }
    }
}

TEST(Region, refuses_overlapping_parts) {
    RegionLayout layout = good();
    layout.cq_offset = layout.sq_offset;
    EXPECT_EQ(validate_layout(layout, layout.region_octets), Err::kCorrupt);
    layout = good();
    layout.tx_arena_octets += kPageOctets;
    EXPECT_EQ(validate_layout(layout, layout.region_octets), Err::kCorrupt);
}

TEST(Region, gives_pointers_only_into_its_arenas) {
    const auto layout = compute_layout({8, 8, 4096, 8192}).value();
    const std::unique_ptr<void, void (*)(void*)> memory(
        std::aligned_alloc(kPageOctets, layout.region_octets), std::free);
    const Region region(memory.get(), layout);
    auto* base = static_cast<std::byte*>(memory.get());
    EXPECT_EQ(region.tx(0, 4096), base + layout.tx_arena_offset);
    EXPECT_EQ(region.tx(4096, 0), base + layout.tx_arena_offset + 4096);
    EXPECT_EQ(region.rx(64, 8128), base + layout.rx_arena_offset + 64);
    EXPECT_EQ(region.tx(0, 4097), nullptr);
    EXPECT_EQ(region.tx(4097, 0), nullptr);
    EXPECT_EQ(region.rx(0xffffffff, 0xffffffff), nullptr);
    EXPECT_EQ(region.rx(1, 0xffffffff), nullptr);
}

TEST(Region, the_control_page_tells_magic_version_and_size) {
    const auto layout = compute_layout({8, 8, 4096, 4096}).value();
    alignas(kPageOctets) static unsigned char page[kPageOctets];
    initialise_control(page, layout, 7, 9);
    auto& control = *reinterpret_cast<EndpointControl*>(page);
    EXPECT_EQ(validate_control(control), Err::kOk);
    control.abi_version += 1;
    EXPECT_EQ(validate_control(control), Err::kVersion);
    control.abi_version -= 1;
    control.control_octets += 8;
    EXPECT_EQ(validate_control(control), Err::kVersion);
    control.magic ^= 1;
    EXPECT_EQ(validate_control(control), Err::kCorrupt);
}

}  // namespace
}  // namespace ulc::abi
