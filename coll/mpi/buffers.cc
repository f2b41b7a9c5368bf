// SPDX-License-Identifier: BSD-3-Clause
#include "coll/mpi/buffers.h"

#include <algorithm>
#include <cstring>

namespace ulc::mpi {

bool Blocks::take(const ulc_mpi_type& type, const void* memory, const ulc_mpi_blocks& blocks,
                  std::size_t ranks, bool fill) {
    type_ = type;
    memory_ = memory;
    given_ = blocks;
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
    std::size_t at = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
        offsets_[r] = at;
        if (fill && lengths_[r] != 0 &&
            session().hooks().pack(&type_, count_of(blocks, r), block(r), data_ + at) != 0)
            return false;
        at += lengths_[r];
    }
    return true;
}

bool Blocks::give_back() {
    if (!is_scratch()) return true;
    for (std::size_t r = 0; r < lengths_.size(); ++r) {
        if (lengths_[r] != 0 &&
            session().hooks().unpack(&type_, count_of(given_, r), moved(block(r), 0),
                                     data_ + offsets_[r]) != 0)
            return false;
    }
    return true;
}

}  // namespace ulc::mpi
