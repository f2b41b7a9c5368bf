// SPDX-License-Identifier: BSD-3-Clause
// The third ring of an endpoint: blocks of the rx arena that the client gives back (client →
// engine). It is separate from the submissions because sends wait there for memory of others. If
// memory came back behind them, it would wait for sends, and ranks in a circle would deadlock. In
// this ring neither side waits:
//
//   31  30     24 23                      0
//   +--+---------+-------------------------+     n counts entries and never stops (32 bits, wraps)
//   |1 | lap n   |  offset of the block/64 |     lap n = n / entries mod 128
//   +--+---------+-------------------------+
//
// An entry contains its mark, so sixteen of them and their marks cost one cache line, and there is
// no shared index. There is no return channel either, because the ring is never full: it has an
// entry for each block that can exist. Before a client can write entry n it has seen n + 1 blocks
// lent; of those the engine had at most `entries` out at a time, so it took entry n - entries
// before it lent the last of them.
//
// Memory order:
//   A  client: store(entry, release)   with   engine: load(entry, acquire)    the client reads the
//                                                                             block no more
// and the overwriting of an entry is ordered by orders A of abi/slot_ring.h, by which the client
// learns of the block. No doorbell: an engine that is short of memory polls by itself
// (Deliverer::reclaim), at the latest after a nap.
//
// Trust: as for the other rings. A client that writes anything else damages only its own memory:
// the engine detects a block that the client does not hold, and a mark that is not next means that
// no entry has come.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "base/check.h"

namespace ulc::abi {

inline constexpr std::uint32_t kReleaseEntriesMin = 64;
inline constexpr std::uint32_t kReleaseEntriesMax = 1U << 16;
inline constexpr std::uint32_t kReleaseUnit = 64;  ///< bytes; blocks begin at multiples

[[nodiscard]] constexpr bool release_entries_valid(std::uint32_t entries) noexcept {
    return entries >= kReleaseEntriesMin && entries <= kReleaseEntriesMax &&
           (entries & (entries - 1)) == 0;
}

/// Returns entry n without its offset. Never 0, so zeroed memory holds no entry; neighbouring laps
/// differ, also where n wraps.
[[nodiscard]] constexpr std::uint32_t release_mark(std::uint32_t n,
                                                   std::uint32_t entries) noexcept {
    return (0x80U | (n >> std::countr_zero(entries) & 0x7fU)) << 24;
}

/// The client's half. One thread.
class ReleaseProducer {
public:
    ReleaseProducer() = default;
    /// `start`: as in SlotProducer.
    ReleaseProducer(std::uint32_t* ring, std::uint32_t entries, std::uint32_t start = 0) noexcept
        : ring_(ring), entries_(entries), next_(start) {
        ULC_CHECK(release_entries_valid(entries));
    }

    /// Gives back the block at `offset`, a multiple of 64 below 1 GiB that came in a completion and
    /// was not given back since.
    void push(std::uint32_t offset) noexcept {
        std::atomic_ref<std::uint32_t>(ring_[next_ & (entries_ - 1)])
            .store(release_mark(next_, entries_) | offset / kReleaseUnit,
                   std::memory_order_release);  // A
        ++next_;
    }

private:
    std::uint32_t* ring_ = nullptr;
    std::uint32_t entries_ = 0;
    std::uint32_t next_ = 0;
};

/// The engine's half. One thread.
class ReleaseConsumer {
public:
    ReleaseConsumer() = default;
    ReleaseConsumer(std::uint32_t* ring, std::uint32_t entries, std::uint32_t start = 0) noexcept
        : ring_(ring), entries_(entries), next_(start) {
        ULC_CHECK(release_entries_valid(entries));
    }

    /// Takes the offset of the next block, which the caller must validate. Returns false if there
    /// is none.
    [[nodiscard]] bool take(std::uint32_t& offset) noexcept {
        const std::uint32_t entry = std::atomic_ref<std::uint32_t>(ring_[next_ & (entries_ - 1)])
                                        .load(std::memory_order_acquire);  // A
        if ((entry & 0xff000000U) != release_mark(next_, entries_)) return false;
        offset = (entry & 0x00ffffffU) * kReleaseUnit;
        ++next_;
        return true;
    }
    /// Writes or reads the private cursor (base/state/archive.h).
    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(next_);
    }

private:
    std::uint32_t* ring_ = nullptr;
    std::uint32_t entries_ = 0;
    std::uint32_t next_ = 0;
};

}  // namespace ulc::abi
