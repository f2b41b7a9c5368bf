// SPDX-License-Identifier: BSD-3-Clause
// Buffers of an MPI program in ULC's layout: contiguous bytes. Memory with that layout is used
// where it is; any other is packed into scratch memory, and unpacked from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "coll/mpi/session.h"

namespace ulc::mpi {

/// An address for buffers without bytes: ULC takes nullptr for MPI_IN_PLACE.
inline unsigned char no_bytes[16];

[[nodiscard]] inline unsigned char* moved(const void* memory, std::ptrdiff_t by) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory) + static_cast<std::uintptr_t>(by);
    return reinterpret_cast<unsigned char*>(address);  // MPI_BOTTOM is the address 0
}

[[nodiscard]] inline std::size_t count_of(const ulc_mpi_blocks& blocks, std::size_t rank) {
    return static_cast<std::size_t>(blocks.wide_counts != nullptr ? blocks.wide_counts[rank]
                                                                  : blocks.counts[rank]);
}
/// The displacement of a block in bytes.
[[nodiscard]] inline std::ptrdiff_t offset_of(const ulc_mpi_blocks& blocks, std::size_t rank,
                                              std::ptrdiff_t extent) {
    return extent * (blocks.wide_counts != nullptr ? blocks.wide_displacements[rank]
                                                   : blocks.displacements[rank]);
}

/// `count` elements of a type at one address.
class Buffer {
public:
    /// fill: the elements are wanted in the packed form too. False: no memory, or the MPI could
    /// not pack.
    [[nodiscard]] bool take(const ulc_mpi_type& type, const void* memory, std::size_t count,
                            bool fill) {
        type_ = type;
        memory_ = memory;
        count_ = count;
        is_input_ = fill;
        data_ = no_bytes;
        if (count * type.size == 0) return true;
        if (type.tight || session().hooks().contiguous(&type, count)) {
            data_ = moved(memory, type.true_lb);
            return true;
        }
        scratch_.reset(new (std::nothrow) unsigned char[count * type.size]);
        data_ = scratch_.get();
        if (data_ == nullptr) return false;
        return refill();
    }
    /// Packs what was taken with `fill` again. False: the MPI could not.
    [[nodiscard]] bool refill() {
        return !is_input_ || !is_scratch() ||
               session().hooks().pack(&type_, count_, memory_, data_) == 0;
    }
    /// Takes memory as it is, whatever its type.
    void take_plain(const void* memory) { data_ = memory != nullptr ? moved(memory, 0) : no_bytes; }
    /// Puts the packed elements where they belong.
    [[nodiscard]] bool give_back() {
        return !is_scratch() ||
               session().hooks().unpack(&type_, count_, moved(memory_, 0), data_) == 0;
    }
    [[nodiscard]] bool is_scratch() const { return scratch_ != nullptr; }
    [[nodiscard]] unsigned char* data() { return data_; }

private:
    ulc_mpi_type type_{};
    const void* memory_ = nullptr;
    std::size_t count_ = 0;
    bool is_input_ = false;
    unsigned char* data_ = no_bytes;
    std::unique_ptr<unsigned char[]> scratch_;
};

/// Blocks by rank, each with its own count and displacement.
class Blocks {
public:
    /// Takes `ranks` blocks, each like Buffer::take().
    [[nodiscard]] bool take(const ulc_mpi_type& type, const void* memory,
                            const ulc_mpi_blocks& blocks, std::size_t ranks, bool fill);
    [[nodiscard]] bool give_back();
    /// Packs what was taken with `fill` again, as Buffer::refill().
    [[nodiscard]] bool refill();
    /// The address of a block in the caller's memory; only for blocks that are packed.
    [[nodiscard]] const void* block(std::size_t rank) const {
        return moved(memory_, places_[rank]);
    }
    [[nodiscard]] bool is_scratch() const { return scratch_ != nullptr; }
    [[nodiscard]] unsigned char* data() { return data_; }
    [[nodiscard]] const std::size_t* lengths() const { return lengths_.data(); }
    [[nodiscard]] const std::size_t* offsets() const { return offsets_.data(); }

private:
    ulc_mpi_type type_{};
    const void* memory_ = nullptr;
    bool is_input_ = false;
    unsigned char* data_ = no_bytes;
    std::unique_ptr<unsigned char[]> scratch_;
    std::vector<std::size_t> lengths_;
    std::vector<std::size_t> offsets_;
    std::vector<std::ptrdiff_t> places_;  ///< in the caller's memory, of packed ones
};

/// Blocks that each have an address and a type.
class TypedBlocks {
public:
    /// Takes `count` blocks, each like Buffer::take().
    [[nodiscard]] bool take(const ulc_mpi_block* blocks, std::size_t count, bool fill);
    [[nodiscard]] bool give_back();
    /// Packs what was taken with `fill` again, as Buffer::refill().
    [[nodiscard]] bool refill();
    [[nodiscard]] unsigned char* data() { return data_; }
    [[nodiscard]] const std::size_t* lengths() const { return lengths_.data(); }
    [[nodiscard]] const std::size_t* offsets() const { return offsets_.data(); }

private:
    /// True if each block lies in memory as it is packed.
    [[nodiscard]] bool lie_packed() const;
    [[nodiscard]] std::uintptr_t first_byte(std::size_t i) const;
    /// True if two blocks are the same memory; of an input, neighbours share a packed copy.
    [[nodiscard]] bool is_same(std::size_t i, std::size_t j) const;

    std::vector<ulc_mpi_block> blocks_;
    bool is_input_ = false;
    unsigned char* data_ = no_bytes;
    std::unique_ptr<unsigned char[]> scratch_;
    std::vector<std::size_t> lengths_;
    std::vector<std::size_t> offsets_;
};

}  // namespace ulc::mpi
