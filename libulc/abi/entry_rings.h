// SPDX-License-Identifier: BSD-3-Clause
// Two rings of an endpoint whose entries are 32-bit words, and which are never full:
//
//   rq  client → engine   blocks of the rx arena that the client gives back
//   dq  engine → client   sends that are done: their cookies and statuses
//
// Both are separate from the submissions and the completions, so that memory comes back behind
// nothing. Releases behind submissions would wait for sends, which wait for memory of others, and
// ranks in a circle would deadlock. Ends of sends among the completions would fill that ring while
// a client sends and does not poll; then the engine could take no more of its sends, and those who
// wait for these messages would wait for its next poll.
//
//   31  30     24 23                      0
//   +--+---------+-------------------------+     n counts entries and never stops (32 bits, wraps)
//   |1 | lap n   |  value                  |     lap n = n / entries mod 128
//   +--+---------+-------------------------+     value: rq offset of the block / 64;
//                                                       dq status · 2^16 + cookie
//
// An entry contains its mark, so sixteen of them and their marks cost one cache line, and there is
// no shared index. There is no return channel either, because a ring has an entry for each thing
// that can be out: the blocks of the arena, the sends (sends_max). Before a side can write entry n,
// it was given n + 1 things; of those the other side had at most `entries` out at a time, so it
// took entry n - entries before it gave the last of them.
//
// Memory order:
//   A  producer: store(entry, release)   with   consumer: load(entry, acquire)   the producer uses
//                                                                                the thing no more
// and the overwriting of an entry is ordered by orders A of abi/slot_ring.h, by which a side learns
// of the thing. rq has no doorbell: an engine that is short of memory polls by itself
// (Outlet::reclaim), at the latest after a nap. An entry of dq wakes the client as a completion
// does.
//
// Trust: as for the other rings. A client that writes anything else, or has more sends out, damages
// only its own memory: the engine detects a block that the client does not hold, and a mark that is
// not next means that no entry has come.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/check.h"
#include "base/error.h"

namespace ulc::abi {

inline constexpr std::uint32_t kEntriesMin = 64;
inline constexpr std::uint32_t kEntriesMax = 1U << 16;
inline constexpr std::uint32_t kReleaseUnit = 64;  ///< bytes; blocks begin at multiples
/// Entries of dq: sends with a cookie that a client may have out; cookies are below. One for each
/// block of a small arena of `tx_octets`. A larger one needs no more: its blocks are larger.
[[nodiscard]] constexpr std::uint32_t sends_max(std::uint32_t tx_octets) noexcept {
    return std::clamp(std::bit_ceil(tx_octets / kReleaseUnit), kEntriesMin, 4096U);
}

[[nodiscard]] constexpr bool entries_valid(std::uint32_t entries) noexcept {
    return entries >= kEntriesMin && entries <= kEntriesMax && (entries & (entries - 1)) == 0;
}

/// Returns entry n without its value. Never 0, so zeroed memory holds no entry; neighbouring laps
/// differ, also where n wraps.
[[nodiscard]] constexpr std::uint32_t entry_mark(std::uint32_t n, std::uint32_t entries) noexcept {
    return (0x80U | (n >> std::countr_zero(entries) & 0x7fU)) << 24;
}

/// The producing half. One thread.
class EntryProducer {
public:
    /// Returns the number of entries produced, free running.
    [[nodiscard]] std::uint32_t produced() const noexcept { return next_; }
    /// Writes or reads the private cursor (base/state/archive.h).
    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(next_);
    }

protected:
    EntryProducer() = default;
    /// `start`: as in SlotProducer.
    EntryProducer(std::uint32_t* ring, std::uint32_t entries, std::uint32_t start) noexcept
        : ring_(ring), entries_(entries), next_(start) {
        ULC_CHECK(entries_valid(entries));
    }
    void push_value(std::uint32_t value) noexcept {
        std::atomic_ref<std::uint32_t>(ring_[next_ & (entries_ - 1)])
            .store(entry_mark(next_, entries_) | value, std::memory_order_release);  // A
        ++next_;
    }

private:
    std::uint32_t* ring_ = nullptr;
    std::uint32_t entries_ = 0;
    std::uint32_t next_ = 0;
};

/// The consuming half. One thread.
class EntryConsumer {
public:
    /// Returns true if an entry is there.
    [[nodiscard]] bool ready() const noexcept {
        return (load_next() & kMarkBits) == entry_mark(next_, entries_);
    }
    /// Writes or reads the private cursor.
    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(next_);
    }

protected:
    EntryConsumer() = default;
    EntryConsumer(std::uint32_t* ring, std::uint32_t entries, std::uint32_t start) noexcept
        : ring_(ring), entries_(entries), next_(start) {
        ULC_CHECK(entries_valid(entries));
    }
    [[nodiscard]] bool take_value(std::uint32_t& value) noexcept {
        const std::uint32_t entry = load_next();
        if ((entry & kMarkBits) != entry_mark(next_, entries_)) return false;
        value = entry & ~kMarkBits;
        ++next_;
        return true;
    }

private:
    static constexpr std::uint32_t kMarkBits = 0xff000000U;
    [[nodiscard]] std::uint32_t load_next() const noexcept {
        return std::atomic_ref<std::uint32_t>(ring_[next_ & (entries_ - 1)])
            .load(std::memory_order_acquire);  // A
    }

    std::uint32_t* ring_ = nullptr;
    std::uint32_t entries_ = 0;
    std::uint32_t next_ = 0;
};

/// The client's half of rq.
class ReleaseProducer : public EntryProducer {
public:
    ReleaseProducer() = default;
    ReleaseProducer(std::uint32_t* ring, std::uint32_t entries, std::uint32_t start = 0) noexcept
        : EntryProducer(ring, entries, start) {}
    /// Gives back the block at `offset`, a multiple of 64 below 1 GiB that came in a completion and
    /// was not given back since.
    void push(std::uint32_t offset) noexcept { push_value(offset / kReleaseUnit); }
};

/// The engine's half of rq.
class ReleaseConsumer : public EntryConsumer {
public:
    ReleaseConsumer() = default;
    ReleaseConsumer(std::uint32_t* ring, std::uint32_t entries, std::uint32_t start = 0) noexcept
        : EntryConsumer(ring, entries, start) {}
    /// Takes the offset of the next block, which the caller must validate. Returns false if there
    /// is none.
    [[nodiscard]] bool take(std::uint32_t& offset) noexcept {
        std::uint32_t value = 0;
        if (!take_value(value)) return false;
        offset = value * kReleaseUnit;
        return true;
    }
};

/// A send that is done.
struct SendDone {
    std::uint32_t cookie;  ///< the low 16 bits of its record's
    Err status;
};

/// The engine's half of dq.
class SendDoneProducer : public EntryProducer {
public:
    SendDoneProducer() = default;
    SendDoneProducer(std::uint32_t* ring, std::uint32_t entries, std::uint32_t start = 0) noexcept
        : EntryProducer(ring, entries, start) {}
    void push(std::uint32_t cookie, Err status) noexcept {
        push_value((static_cast<std::uint32_t>(status) & 0xffU) << 16 | (cookie & 0xffffU));
    }
};

/// The client's half of dq.
class SendDoneConsumer : public EntryConsumer {
public:
    SendDoneConsumer() = default;
    SendDoneConsumer(std::uint32_t* ring, std::uint32_t entries, std::uint32_t start = 0) noexcept
        : EntryConsumer(ring, entries, start) {}
    /// Takes the next one. Returns false if there is none.
    [[nodiscard]] bool take(SendDone& done) noexcept {
        std::uint32_t value = 0;
        if (!take_value(value)) return false;
        done = {value & 0xffffU, static_cast<Err>(value >> 16)};
        return true;
    }
};

}  // namespace ulc::abi
