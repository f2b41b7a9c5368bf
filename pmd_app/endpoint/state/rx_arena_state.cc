// SPDX-License-Identifier: BSD-3-Clause
// State of rx_arena.h: its blocks from the first to the last, then the order of its free blocks,
// which decides where the next one is taken.
#include <algorithm>
#include <vector>

#include "base/state/containers.h"
#include "endpoint/rx_arena.h"

namespace ulc::endpoint {
namespace {

constexpr const char* kNoFit = "the blocks of an arena do not fill it";

}  // namespace

void RxArena::fields(state::Archive& archive) {
    ULC_STATE(archive, RxArena, 1, (octets_),
              (shift_, count_, free_, lent_, bins_used_, bins_, granules_));
    if (archive.importing()) return read_blocks(archive);
    std::size_t blocks = 0;
    for (std::uint32_t at = 0; at < count_; at += granules_[at].size)
        ++blocks;
    (void)archive.count(blocks, count_, kNoFit);
    for (std::uint32_t at = 0; at < count_; at += granules_[at].size) {
        Granule& block = granules_[at];
        auto state = static_cast<std::uint8_t>(block.state);
        std::uint16_t owner = block.is_reserve ? block.next : kNoOwner;
        archive.values(block.size, state, block.is_reserve, owner);
    }
    for (const std::uint16_t first : bins_) {
        std::vector<std::uint16_t> heads;
        for (std::uint16_t at = first; at != kEnd; at = granules_[at].next)
            heads.push_back(at);
        archive.values(heads);
    }
}

void RxArena::read_blocks(state::Archive& archive) {
    if (!archive.require(octets_ == std::uint64_t{count_} << shift_, "an arena has another size"))
        return;
    std::fill_n(granules_.get(), count_, Granule{});
    std::ranges::fill(bins_, kEnd);
    free_ = lent_ = bins_used_ = 0;
    std::uint32_t at = 0;
    for (std::size_t left = archive.count(0, count_, kNoFit); left > 0; --left) {
        std::uint16_t size = 0;
        std::uint16_t owner = kNoOwner;
        std::uint8_t state = kInterior;
        bool is_reserve = false;
        archive.values(size, state, is_reserve, owner);
        const bool known = state == kFree || ((state == kHeld || state == kLent));
        if (!archive.require(
                known && size > 0 && size <= count_ - at && !(is_reserve && state == kFree),
                kNoFit))
            return;
        granules_[at] = {size, 0, owner, static_cast<State>(state), is_reserve};
        free_ += state == kFree ? size : 0U;
        lent_ += state == kLent ? 1U : 0U;
        at += size;
    }
    if (!archive.require(at == count_, kNoFit)) return;
    std::uint32_t listed = 0;
    for (std::uint16_t& bin : bins_) {
        std::vector<std::uint16_t> heads;
        archive.values(heads);
        for (std::size_t n = heads.size(); n-- > 0;) {  // insert() puts it first
            const std::uint16_t head = heads[n];
            // A free block that is listed has its end marked; one that is not has `next` kNoOwner.
            if (!archive.require(head < count_ && granules_[head].state == kFree &&
                                     granules_[head].prev == 0 && granules_[head].next == kNoOwner,
                                 "a free block of an arena is not there"))
                return;
            granules_[head].prev = 1;
            listed += granules_[head].size;
        }
        for (std::size_t n = heads.size(); n-- > 0;)
            insert(heads[n], granules_[heads[n]].size);
        if (!heads.empty() &&
            !archive.require(bin == heads[0], "a free block of an arena is in another list"))
            return;
    }
    archive.require(listed == free_, "a free block of an arena is in no list");
}

}  // namespace ulc::endpoint
