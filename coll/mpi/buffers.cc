// SPDX-License-Identifier: BSD-3-Clause
#include "coll/mpi/buffers.h"

#include <algorithm>
#include <cstring>

namespace ulc::mpi {

bool Blocks::take(const ulc_mpi_type& type, const void* memory, const ulc_mpi_blocks& blocks,
                  std::size_t ranks, bool fill) {
    type_ = type;
    memory_ = memory;
    is_input_ = fill;
    lengths_.resize(ranks);
    offsets_.resize(ranks);
    std::size_t total = 0;
    std::ptrdiff_t lowest = PTRDIFF_MAX;
    for (std::size_t r = 0; r < ranks; ++r) {
        lengths_[r] = count_of(blocks, r) * type.size;
        total += lengths_[r];
        if (lengths_[r] != 0) lowest = std::min(lowest, offset_of(blocks, r, type.extent));
    }
    if (total == 0) return true;
    if (type.tight) {
        // Displacements may be negative; ULC's offsets are not.
        data_ = moved(memory, lowest + type.true_lb);
        for (std::size_t r = 0; r < ranks; ++r) {
            const std::ptrdiff_t at = offset_of(blocks, r, type.extent);
            offsets_[r] = lengths_[r] == 0 ? 0 : static_cast<std::size_t>(at - lowest);
        }
        return true;
    }
    scratch_.reset(new (std::nothrow) unsigned char[total]);
    data_ = scratch_.get();
    if (data_ == nullptr) return false;
    places_.resize(ranks);
    std::size_t at = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
        offsets_[r] = at;
        places_[r] = offset_of(blocks, r, type.extent);
        at += lengths_[r];
    }
    return refill();
}

bool Blocks::refill() {
    if (!is_input_ || !is_scratch()) return true;
    for (std::size_t r = 0; r < lengths_.size(); ++r) {
        if (lengths_[r] != 0 && session().hooks().pack(&type_, lengths_[r] / type_.size, block(r),
                                                       data_ + offsets_[r]) != 0)
            return false;
    }
    return true;
}

bool Blocks::give_back() {
    if (!is_scratch()) return true;
    for (std::size_t r = 0; r < lengths_.size(); ++r) {
        if (lengths_[r] != 0 &&
            session().hooks().unpack(&type_, lengths_[r] / type_.size, moved(block(r), 0),
                                     data_ + offsets_[r]) != 0)
            return false;
    }
    return true;
}

bool TypedBlocks::take(const ulc_mpi_block* blocks, std::size_t count, bool fill) {
    std::size_t total = 0;
    is_input_ = fill;
    try {
        blocks_.assign(blocks, blocks + count);
        lengths_.resize(count);
        offsets_.resize(count);
    } catch (const std::bad_alloc&) {
        return false;
    }
    for (std::size_t i = 0; i < count; ++i)
        total += lengths_[i] = blocks[i].count * blocks[i].type.size;
    if (total == 0) return true;
    if (lie_packed()) {
        auto lowest = UINTPTR_MAX;
        for (std::size_t i = 0; i < count; ++i)
            if (lengths_[i] != 0) lowest = std::min(lowest, first_byte(i));
        for (std::size_t i = 0; i < count; ++i)
            offsets_[i] = lengths_[i] == 0 ? 0 : first_byte(i) - lowest;
        data_ = reinterpret_cast<unsigned char*>(lowest);
        return true;
    }
    scratch_.reset(new (std::nothrow) unsigned char[total]);
    data_ = scratch_.get();
    if (data_ == nullptr) return false;
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0 && is_input_ && is_same(i - 1, i)) {
            offsets_[i] = offsets_[i - 1];
            continue;
        }
        offsets_[i] = at;
        at += lengths_[i];
    }
    return refill();
}

bool TypedBlocks::is_same(std::size_t i, std::size_t j) const {
    return blocks_[i].memory == blocks_[j].memory && blocks_[i].count == blocks_[j].count &&
           blocks_[i].type.handle == blocks_[j].type.handle;
}

bool TypedBlocks::lie_packed() const {
    return std::all_of(blocks_.begin(), blocks_.end(), [](const ulc_mpi_block& block) {
        return block.count * block.type.size == 0 || block.type.tight != 0 ||
               session().hooks().contiguous(&block.type, block.count) != 0;
    });
}

std::uintptr_t TypedBlocks::first_byte(std::size_t i) const {
    return reinterpret_cast<std::uintptr_t>(moved(blocks_[i].memory, blocks_[i].type.true_lb));
}

bool TypedBlocks::refill() {
    for (std::size_t i = 0; is_input_ && scratch_ != nullptr && i < blocks_.size(); ++i) {
        const ulc_mpi_block& block = blocks_[i];
        if (i > 0 && offsets_[i] == offsets_[i - 1] && lengths_[i] == lengths_[i - 1]) continue;
        if (lengths_[i] != 0 && session().hooks().pack(&block.type, block.count, block.memory,
                                                       data_ + offsets_[i]) != 0)
            return false;
    }
    return true;
}

bool TypedBlocks::give_back() {
    for (std::size_t i = 0; scratch_ != nullptr && i < blocks_.size(); ++i) {
        const ulc_mpi_block& block = blocks_[i];
        if (lengths_[i] != 0 &&
            session().hooks().unpack(&block.type, block.count, moved(block.memory, 0),
                                     data_ + offsets_[i]) != 0)
            return false;
    }
    return true;
}

}  // namespace ulc::mpi
