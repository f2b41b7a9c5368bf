// SPDX-License-Identifier: BSD-3-Clause
// Layout of an endpoint's region, in one place for both sides: a layout from sizes, its validation
// against a size, the control page, and the only conversion from (offset, length) to a pointer.
//
// Arithmetic on values of the other side is in 64 bits over 32-bit operands, so it cannot overflow.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "abi/endpoint_region.h"
#include "abi/entry_rings.h"
#include "abi/records.h"
#include "abi/slot_ring.h"
#include "base/error.h"

namespace ulc::abi {

inline constexpr std::uint32_t kArenaOctetsMin = 4096;
inline constexpr std::uint32_t kArenaOctetsMax = 1U << 30;
static_assert(kArenaOctetsMax / kReleaseUnit == 1U << 24,
              "an entry of the release ring names any block");

/// The blocks of an rx arena of this size begin and end at multiples of 1 << shift. Small granules
/// waste little of the arena, few granules little private memory: at most 8192 until they would be
/// larger than 256 bytes, then as many as 16 bits can number.
[[nodiscard]] constexpr std::uint32_t rx_granule_shift(std::uint32_t octets) noexcept {
    std::uint32_t shift = 6;
    while (shift < 8 && (octets >> shift) > 8192)
        ++shift;
    while ((octets >> shift) >= UINT16_MAX)
        ++shift;
    return shift;
}
static_assert(kReleaseUnit == 1U << 6);

/// Returns the maximum of blocks that the client can hold.
[[nodiscard]] constexpr std::uint32_t rx_blocks_max(std::uint32_t octets) noexcept {
    return octets >> rx_granule_shift(octets);
}

/// Sizes that a client may request; the engine's configuration caps them.
struct RegionSizes {
    std::uint32_t sq_slots = 256;
    std::uint32_t cq_slots = 512;
    std::uint32_t tx_arena_octets = 1U << 20;
    std::uint32_t rx_arena_octets = 2U << 20;
};

/// Computes a layout: control page, rings and arenas, each on separate pages. The release ring
/// shares pages with the submissions before it, since the client writes both; the ends of sends
/// with the completions, since the engine writes both. Errors: kInvalid
/// (slots not a power of two or out of bounds, an arena out of bounds).
[[nodiscard]] inline Result<RegionLayout> compute_layout(const RegionSizes& sizes) noexcept {
    if (!slots_valid(sizes.sq_slots) || !slots_valid(sizes.cq_slots)) return Err::kInvalid;
    if (sizes.tx_arena_octets < kArenaOctetsMin || sizes.tx_arena_octets > kArenaOctetsMax)
        return Err::kInvalid;
    if (sizes.rx_arena_octets < kArenaOctetsMin || sizes.rx_arena_octets > kArenaOctetsMax)
        return Err::kInvalid;
    const auto paged = [](std::uint64_t octets) {
        return (octets + kPageOctets - 1) & ~(std::uint64_t{kPageOctets} - 1);
    };
    std::uint64_t at = kPageOctets;
    RegionLayout layout{};
    layout.sq_slots = sizes.sq_slots;
    layout.sq_offset = static_cast<std::uint32_t>(at);
    const std::uint64_t sq_octets = std::uint64_t{sizes.sq_slots} * sizeof(SubmissionRecord);
    layout.rq_offset = static_cast<std::uint32_t>(at + sq_octets);
    layout.rq_entries = std::bit_ceil(rx_blocks_max(sizes.rx_arena_octets));
    at += paged(sq_octets + std::uint64_t{layout.rq_entries} * sizeof(std::uint32_t));
    layout.cq_slots = sizes.cq_slots;
    layout.cq_offset = static_cast<std::uint32_t>(at);
    const std::uint64_t cq_octets = std::uint64_t{sizes.cq_slots} * sizeof(CompletionRecord);
    layout.tx_arena_octets =
        sizes.tx_arena_octets & ~static_cast<std::uint32_t>(kArenaAlignment - 1);
    layout.dq_offset = static_cast<std::uint32_t>(at + cq_octets);
    layout.dq_entries = sends_max(layout.tx_arena_octets);
    at += paged(cq_octets + std::uint64_t{layout.dq_entries} * sizeof(std::uint32_t));
    layout.tx_arena_offset = static_cast<std::uint32_t>(at);
    at += paged(layout.tx_arena_octets);
    layout.rx_arena_offset = static_cast<std::uint32_t>(at);
    layout.rx_arena_octets =
        sizes.rx_arena_octets & ~static_cast<std::uint32_t>(kArenaAlignment - 1);
    at += paged(layout.rx_arena_octets);
    layout.region_octets = at;  // at most 2 GiB + 9 MiB: offsets fit into 32 bits
    return layout;
}

/// Checks that every part is inside `mapped_octets`, aligned, without overlap and in order. The
/// engine never needs it (it uses its own layout); the client calls it once. Errors: kCorrupt.
[[nodiscard]] inline Err validate_layout(const RegionLayout& layout,
                                         std::uint64_t mapped_octets) noexcept {
    if (layout.region_octets > mapped_octets) return Err::kCorrupt;
    if (!slots_valid(layout.sq_slots) || !slots_valid(layout.cq_slots)) return Err::kCorrupt;
    if (!entries_valid(layout.rq_entries) || !entries_valid(layout.dq_entries))
        return Err::kCorrupt;
    struct Part {
        std::uint64_t offset;
        std::uint64_t octets;
        std::uint64_t alignment;
    };
    const Part parts[] = {
        {0, kPageOctets, kPageOctets},
        {layout.sq_offset, std::uint64_t{layout.sq_slots} * sizeof(SubmissionRecord), kCacheLine},
        {layout.rq_offset, std::uint64_t{layout.rq_entries} * sizeof(std::uint32_t), kCacheLine},
        {layout.cq_offset, std::uint64_t{layout.cq_slots} * sizeof(CompletionRecord), kCacheLine},
        {layout.dq_offset, std::uint64_t{layout.dq_entries} * sizeof(std::uint32_t), kCacheLine},
        {layout.tx_arena_offset, layout.tx_arena_octets, kArenaAlignment},
        {layout.rx_arena_offset, layout.rx_arena_octets, kArenaAlignment},
    };
    std::uint64_t end = 0;
    for (const Part& part : parts) {
        if (part.offset < end || part.offset % part.alignment != 0 || part.octets == 0)
            return Err::kCorrupt;
        end = part.offset + part.octets;
    }
    if (layout.tx_arena_octets > kArenaOctetsMax || layout.rx_arena_octets > kArenaOctetsMax)
        return Err::kCorrupt;
    if (layout.rq_entries < rx_blocks_max(layout.rx_arena_octets)) return Err::kCorrupt;
    return end > layout.region_octets ? Err::kCorrupt : Err::kOk;
}

/// Engine: fills the control page of a fresh, zeroed region before the client maps it.
inline void initialise_control(void* region, const RegionLayout& layout,
                               std::uint32_t endpoint_handle, std::uint32_t engine_pid) noexcept {
    auto* control = ::new (region) EndpointControl{};
    control->magic = kRegionMagic;
    control->abi_version = kAbiVersion;
    control->control_octets = sizeof(EndpointControl);
    control->layout = layout;
    control->endpoint_handle = endpoint_handle;
    control->engine_pid = engine_pid;
}

/// Client: validates a control page. Errors: kCorrupt (not a region of ours), kVersion (another
/// ABI).
[[nodiscard]] inline Err validate_control(const EndpointControl& control) noexcept {
    if (control.magic != kRegionMagic) return Err::kCorrupt;
    if (control.abi_version != kAbiVersion || control.control_octets != sizeof(EndpointControl))
        return Err::kVersion;
    return Err::kOk;
}

/// A mapped region with a trusted copy of its layout (the engine's own, or one that passed
/// validate_layout()). Cheap to copy; does not own the mapping.
class Region {
public:
    Region() = default;
    Region(void* base, const RegionLayout& layout, Reach reach = Reach::kRegion) noexcept
        : base_(static_cast<std::byte*>(base)), layout_(layout), reach_(reach) {}

    [[nodiscard]] explicit operator bool() const noexcept { return base_ != nullptr; }
    [[nodiscard]] void* base() const noexcept { return base_; }
    [[nodiscard]] bool reaches_process() const noexcept { return reach_ == Reach::kProcess; }
    [[nodiscard]] const RegionLayout& layout() const noexcept { return layout_; }
    [[nodiscard]] EndpointControl& control() const noexcept {
        return *reinterpret_cast<EndpointControl*>(base_);
    }

    [[nodiscard]] SubmissionProducer submission_producer() const noexcept {
        return {sq(), layout_.sq_slots, &control().sq_consumed};
    }
    [[nodiscard]] SubmissionConsumer submission_consumer() const noexcept {
        return {sq(), layout_.sq_slots, &control().sq_consumed};
    }
    [[nodiscard]] CompletionProducer completion_producer() const noexcept {
        return {cq(), layout_.cq_slots, &control().cq_consumed};
    }
    [[nodiscard]] CompletionConsumer completion_consumer() const noexcept {
        return {cq(), layout_.cq_slots, &control().cq_consumed};
    }

    [[nodiscard]] ReleaseProducer release_producer() const noexcept {
        return {rq(), layout_.rq_entries};
    }
    [[nodiscard]] ReleaseConsumer release_consumer() const noexcept {
        return {rq(), layout_.rq_entries};
    }
    [[nodiscard]] SendDoneProducer send_done_producer() const noexcept {
        return {dq(), layout_.dq_entries};
    }
    [[nodiscard]] SendDoneConsumer send_done_consumer() const noexcept {
        return {dq(), layout_.dq_entries};
    }

    /// Returns [offset, offset + length) of the tx arena, or nullptr if it is not wholly inside.
    /// Offsets count from the arena's start; length 0 at the end is inside.
    [[nodiscard]] std::byte* tx(std::uint32_t offset, std::uint32_t length) const noexcept {
        return part(layout_.tx_arena_offset, layout_.tx_arena_octets, offset, length);
    }
    /// Returns the same of the rx arena.
    [[nodiscard]] std::byte* rx(std::uint32_t offset, std::uint32_t length) const noexcept {
        return part(layout_.rx_arena_offset, layout_.rx_arena_octets, offset, length);
    }

private:
    [[nodiscard]] SubmissionRecord* sq() const noexcept {
        return reinterpret_cast<SubmissionRecord*>(base_ + layout_.sq_offset);
    }
    [[nodiscard]] CompletionRecord* cq() const noexcept {
        return reinterpret_cast<CompletionRecord*>(base_ + layout_.cq_offset);
    }
    [[nodiscard]] std::uint32_t* rq() const noexcept {
        return reinterpret_cast<std::uint32_t*>(base_ + layout_.rq_offset);
    }
    [[nodiscard]] std::uint32_t* dq() const noexcept {
        return reinterpret_cast<std::uint32_t*>(base_ + layout_.dq_offset);
    }
    [[nodiscard]] std::byte* part(std::uint32_t start, std::uint32_t octets, std::uint32_t offset,
                                  std::uint32_t length) const noexcept {
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
        if (std::uint64_t{offset} + length > octets) return nullptr;
#else
        static_cast<void>(octets);
        static_cast<void>(length);
#endif
        return base_ + start + offset;
    }

    std::byte* base_ = nullptr;
    RegionLayout layout_{};
    Reach reach_ = Reach::kRegion;
};

}  // namespace ulc::abi
