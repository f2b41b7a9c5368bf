// SPDX-License-Identifier: BSD-3-Clause
// The client's allocator of the tx arena: a binary buddy system. All bookkeeping is private or in
// free blocks of the client's own arena; the engine never reads it.
//
// order 0 = 64 bytes, order k = 64 << k. state_[unit] of a block's first unit: its order, and
// whether it is free. A freed block is kept aside (one per order) before it merges with its buddy,
// so that equal messages one after the other take and give the same warm block without splitting
// and merging.
//
// Constant time in the number of blocks; at most one step per order. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ulc::client {

class TxArena {
public:
    static constexpr std::uint32_t kNone = UINT32_MAX;
    static constexpr unsigned kUnitShift = 6;
    static constexpr unsigned kOrders = 25;  ///< up to 1 GiB

    /// `base`: the arena, at least one unit; `octets`: a multiple of 64, at most 1 GiB. Errors:
    /// ok() is false without memory.
    TxArena(std::byte* base, std::uint32_t octets) noexcept;
    [[nodiscard]] bool ok() const noexcept { return state_ != nullptr; }

    /// Returns the offset of a block of at least `octets`, aligned to 64; kNone: no space in one
    /// piece. 0 bytes count as one.
    [[nodiscard]] std::uint32_t allocate(std::uint32_t octets) noexcept;
    /// `offset`: from allocate(). Returns false if it is not the start of an allocated block
    /// (nothing is changed).
    bool free(std::uint32_t offset) noexcept;

    /// Allocates a block, as allocate(). nullptr: no space.
    [[nodiscard]] void* allocate_memory(std::size_t length) noexcept {
        if (length > octets()) return nullptr;
        const std::uint32_t offset = allocate(static_cast<std::uint32_t>(length));
        return offset == kNone ? nullptr : at(offset);
    }
    /// Frees a block. Memory that is not here, or nullptr, is left alone.
    void free_memory(void* memory) noexcept {
        std::uint32_t offset = 0;
        if (memory != nullptr && contains(memory, 0, &offset)) static_cast<void>(free(offset));
    }

    /// Returns the bytes in allocated blocks, rounded up to block sizes.
    [[nodiscard]] std::uint32_t used() const noexcept { return used_; }
    [[nodiscard]] std::uint32_t octets() const noexcept { return units_ << kUnitShift; }
    /// Returns the largest power of two that a block can have.
    [[nodiscard]] std::uint32_t largest_block() const noexcept {
        return std::uint32_t{1} << (top_order_ + kUnitShift);
    }
    /// Returns true if [pointer, pointer + length) is in the arena; then *offset is set.
    [[nodiscard]] bool contains(const void* pointer, std::size_t length,
                                std::uint32_t* offset) const noexcept;
    [[nodiscard]] std::byte* at(std::uint32_t offset) const noexcept { return base_ + offset; }

private:
    static constexpr std::uint8_t kInterior = 0xff;
    static constexpr std::uint8_t kFreeBit = 0x80;

    struct FreeLinks {  // in the first unit of a free block
        std::uint32_t next;
        std::uint32_t prev;
    };

    [[nodiscard]] FreeLinks& links(std::uint32_t unit) const noexcept;
    void insert(std::uint32_t unit, unsigned order) noexcept;
    void remove(std::uint32_t unit, unsigned order) noexcept;
    void merge(std::uint32_t unit, unsigned order) noexcept;
    [[nodiscard]] std::uint32_t take(unsigned order) noexcept;
    [[nodiscard]] bool flush_kept() noexcept;

    std::byte* base_;
    std::uint32_t units_;
    std::uint32_t used_ = 0;
    unsigned top_order_ = 0;
    std::unique_ptr<std::uint8_t[]> state_;
    std::uint32_t free_heads_[kOrders];
    std::uint32_t kept_[kOrders];
};

}  // namespace ulc::client
