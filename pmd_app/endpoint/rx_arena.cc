// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/rx_arena.h"

#include <bit>
#include <new>

#include "abi/region.h"
#include "base/check.h"

namespace ulc::endpoint {
namespace {

int bin_of(std::uint32_t size) { return std::bit_width(size) - 1; }

}  // namespace

RxArena::RxArena(std::uint32_t octets)
    : octets_(octets), shift_(abi::rx_granule_shift(octets)), count_(octets >> shift_) {
    ULC_CHECK(octets >= 4096 && octets % 64 == 0 && octets <= 1U << 30);
    auto* raw = static_cast<Granule*>(std::calloc(count_, sizeof(Granule)));
    if (raw == nullptr) throw std::bad_alloc();
    granules_.reset(raw);
    for (auto& bin : bins_)
        bin = kEnd;
    insert(0, count_);
    free_ = count_;
}

std::uint32_t RxArena::granules_for(std::uint32_t octets) const noexcept {
    return (octets + (1U << shift_) - 1) >> shift_;
}

void RxArena::insert(std::uint16_t head, std::uint32_t size) noexcept {
    const int bin = bin_of(size);
    Granule& block = granules_[head];
    block = {static_cast<std::uint16_t>(size), kEnd, bins_[bin], kFree, false};
    if (bins_[bin] != kEnd) granules_[bins_[bin]].prev = head;
    bins_[bin] = head;
    bins_used_ |= 1U << bin;
    if (size > 1) {
        Granule& tail = granules_[head + size - 1];
        tail.size = static_cast<std::uint16_t>(size);
        tail.state = kFreeTail;
    }
}

void RxArena::remove(std::uint16_t head) noexcept {
    Granule& block = granules_[head];
    const int bin = bin_of(block.size);
    if (block.prev != kEnd) {
        granules_[block.prev].next = block.next;
    } else {
        bins_[bin] = block.next;
        if (block.next == kEnd) bins_used_ &= ~(1U << bin);
    }
    if (block.next != kEnd) granules_[block.next].prev = block.prev;
    if (block.size > 1) granules_[head + block.size - 1].state = kInterior;
    block.state = kInterior;
}

// A free block of at least `size` granules, or kEnd.
std::uint16_t RxArena::find(std::uint32_t size) const noexcept {
    const int bin = bin_of(size);
    int looks = 0;
    for (std::uint16_t at = bins_[bin]; at != kEnd && looks < kBinScanMax;
         at = granules_[at].next, ++looks) {
        if (granules_[at].size >= size) return at;
    }
    const std::uint32_t larger = bins_used_ & ~((2U << bin) - 1);
    if (larger != 0) return bins_[std::countr_zero(larger)];
    return kEnd;
}

// Marks [head, head + size) as one block that the engine holds.
void RxArena::take(std::uint16_t head, std::uint32_t size) noexcept {
    granules_[head] = {static_cast<std::uint16_t>(size), 0, kNoOwner, kHeld, false};
    if (size > 1) granules_[head + size - 1].state = kInterior;
    free_ -= size;
}

[[gnu::flatten]] std::uint32_t RxArena::allocate(std::uint32_t octets) noexcept {
    if (octets == 0 || octets > octets_) return kNone;
    const std::uint32_t size = granules_for(octets);
    if (size > count_) return kNone;
    const std::uint16_t head = find(size);
    if (head == kEnd) return kNone;
    const std::uint32_t had = granules_[head].size;
    remove(head);
    if (had > size) insert(static_cast<std::uint16_t>(head + size), had - size);
    take(head, size);
    return std::uint32_t{head} << shift_;
}

std::uint32_t RxArena::reserve(std::uint32_t octets, std::uint16_t owner) noexcept {
    const std::uint32_t size = granules_for(octets);
    if (octets == 0 || size > count_ || bins_used_ == 0) return kNone;
    const std::uint16_t head = bins_[bin_of(bins_used_)];
    const std::uint32_t had = granules_[head].size;
    if (had < size) return kNone;
    remove(head);
    if (had > size) insert(head, had - size);
    const auto block = static_cast<std::uint16_t>(head + had - size);
    take(block, size);
    granules_[block].is_reserve = true;
    granules_[block].next = owner;
    return std::uint32_t{block} << shift_;
}

std::uint32_t RxArena::capacity(std::uint32_t offset) const noexcept {
    return std::uint32_t{granules_[offset >> shift_].size} << shift_;
}

// Makes a held block free and joins it with free neighbours.
void RxArena::give_back(std::uint16_t head) noexcept {
    std::uint32_t start = head;
    std::uint32_t size = granules_[head].size;
    free_ += size;
    granules_[head].state = kInterior;
    const std::uint32_t behind = start + size;
    if (behind < count_ && granules_[behind].state == kFree) {
        size += granules_[behind].size;
        remove(static_cast<std::uint16_t>(behind));
    }
    if (start > 0) {
        const Granule& before = granules_[start - 1];
        // A one-granule free block is its own tail.
        if (before.state == kFreeTail || (before.state == kFree && before.size == 1)) {
            start -= before.size;
            size += before.size;
            remove(static_cast<std::uint16_t>(start));
        }
    }
    insert(static_cast<std::uint16_t>(start), size);
}

void RxArena::free(std::uint32_t offset) noexcept {
    Granule& block = granules_[offset >> shift_];
    ULC_CHECK(block.state == kHeld && !block.is_reserve);
    give_back(static_cast<std::uint16_t>(offset >> shift_));
}

void RxArena::lend(std::uint32_t offset) noexcept {
    Granule& block = granules_[offset >> shift_];
    ULC_CHECK(block.state == kHeld);
    block.state = kLent;
    ++lent_;
}

[[gnu::flatten]] RxArena::Release RxArena::release(std::uint32_t offset,
                                                   std::uint16_t& owner) noexcept {
    const std::uint32_t index = offset >> shift_;
    if (index >= count_ || (index << shift_) != offset) return Release::kBad;
    Granule& block = granules_[index];
    if (block.state != kLent) return Release::kBad;
    --lent_;
    block.state = kHeld;
    if (block.is_reserve) {
        owner = block.next;
        return Release::kReserve;
    }
    give_back(static_cast<std::uint16_t>(index));
    return Release::kFreed;
}

}  // namespace ulc::endpoint
