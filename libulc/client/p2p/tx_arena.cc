// SPDX-License-Identifier: BSD-3-Clause
#include "client/p2p/tx_arena.h"

#include <bit>
#include <cstring>
#include <new>

#include "base/check.h"

namespace ulc::client {

TxArena::TxArena(std::byte* base, std::uint32_t octets) noexcept
    : base_(base), units_(octets >> kUnitShift), state_(new (std::nothrow) std::uint8_t[units_]) {
    for (unsigned order = 0; order < kOrders; ++order) {
        free_heads_[order] = kNone;
        kept_[order] = kNone;
    }
    if (!ok()) return;
    std::memset(state_.get(), kInterior, units_);
    // The largest aligned powers of two that fit, from the left.
    std::uint32_t unit = 0;
    while (unit < units_) {
        const std::uint32_t left = units_ - unit;
        unsigned order = static_cast<unsigned>(std::bit_width(left)) - 1;
        if (unit != 0) {
            const auto aligned = static_cast<unsigned>(std::countr_zero(unit));
            if (aligned < order) order = aligned;
        }
        if (order >= kOrders) order = kOrders - 1;
        if (order > top_order_) top_order_ = order;
        insert(unit, order);
        unit += std::uint32_t{1} << order;
    }
}

TxArena::FreeLinks& TxArena::links(std::uint32_t unit) const noexcept {
    return *reinterpret_cast<FreeLinks*>(base_ + (std::size_t{unit} << kUnitShift));
}

void TxArena::insert(std::uint32_t unit, unsigned order) noexcept {
    state_[unit] = static_cast<std::uint8_t>(kFreeBit | order);
    links(unit) = {free_heads_[order], kNone};
    if (free_heads_[order] != kNone) links(free_heads_[order]).prev = unit;
    free_heads_[order] = unit;
}

void TxArena::remove(std::uint32_t unit, unsigned order) noexcept {
    const FreeLinks here = links(unit);
    if (here.prev != kNone) {
        links(here.prev).next = here.next;
    } else {
        ULC_CHECK(free_heads_[order] == unit);
        free_heads_[order] = here.next;
    }
    if (here.next != kNone) links(here.next).prev = here.prev;
    state_[unit] = kInterior;
}

void TxArena::merge(std::uint32_t unit, unsigned order) noexcept {
    while (order < top_order_) {
        const std::uint32_t buddy = unit ^ (std::uint32_t{1} << order);
        if (buddy >= units_ || state_[buddy] != (kFreeBit | order)) break;
        remove(buddy, order);
        state_[unit] = kInterior;
        if (buddy < unit) unit = buddy;
        ++order;
    }
    insert(unit, order);
}

std::uint32_t TxArena::take(unsigned order) noexcept {
    unsigned from = order;
    while (from <= top_order_ && free_heads_[from] == kNone)
        ++from;
    if (from > top_order_) return kNone;
    const std::uint32_t unit = free_heads_[from];
    remove(unit, from);
    while (from > order) {
        --from;
        insert(unit + (std::uint32_t{1} << from), from);
    }
    return unit;
}

bool TxArena::flush_kept() noexcept {
    bool any = false;
    for (unsigned order = 0; order < kOrders; ++order) {
        if (kept_[order] == kNone) continue;
        const std::uint32_t unit = kept_[order];
        kept_[order] = kNone;
        merge(unit, order);
        any = true;
    }
    return any;
}

std::uint32_t TxArena::allocate(std::uint32_t octets) noexcept {
    if (octets > this->octets()) return kNone;
    const std::uint32_t units = octets == 0 ? 1 : (octets + (1U << kUnitShift) - 1) >> kUnitShift;
    const auto order = static_cast<unsigned>(std::bit_width(units - 1));
    if (order > top_order_) return kNone;
    std::uint32_t unit = kept_[order];
    if (unit != kNone) {
        kept_[order] = kNone;
    } else {
        unit = take(order);
        if (unit == kNone && flush_kept()) unit = take(order);
        if (unit == kNone) return kNone;
    }
    state_[unit] = static_cast<std::uint8_t>(order);
    used_ += std::uint32_t{1} << (order + kUnitShift);
    return unit << kUnitShift;
}

bool TxArena::free(std::uint32_t offset) noexcept {
    const std::uint32_t unit = offset >> kUnitShift;
    if ((offset & ((1U << kUnitShift) - 1)) != 0 || unit >= units_) return false;
    const std::uint8_t state = state_[unit];
    if (state == kInterior || (state & kFreeBit) != 0) return false;
    const unsigned order = state;
    used_ -= std::uint32_t{1} << (order + kUnitShift);
    state_[unit] = kInterior;
    if (kept_[order] == kNone) {
        kept_[order] = unit;
    } else {
        merge(unit, order);
    }
    return true;
}

bool TxArena::contains(const void* pointer, std::size_t length,
                       std::uint32_t* offset) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(pointer);
    const auto start = reinterpret_cast<std::uintptr_t>(base_);
    if (at < start || at - start > octets() || length > octets() - (at - start)) return false;
    *offset = static_cast<std::uint32_t>(at - start);
    return true;
}

}  // namespace ulc::client
