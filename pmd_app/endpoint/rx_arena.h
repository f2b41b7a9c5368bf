// SPDX-License-Identifier: BSD-3-Clause
// The allocator of one endpoint's receive arena. The client shares the arena's bytes; all metadata
// are here, in private memory, so a client can neither make two blocks overlap nor free a block
// that it does not hold.
//
//   granules   |head……tail|head……tail|head=tail|…      64 bytes each, or more in a large arena
//                                                      (8 bytes of metadata a granule)
//   head       size, state, links of its bin (free) or owner (reserved)
//   tail       size and kFreeTail, so that the next block finds the free block before it
//
// First fit in a bin of equal magnitude, else the first block of the next bin that has one;
// neighbours coalesce at once. Constant time except for at most kBinScanMax checks. Engine thread
// only; no allocation after construction.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/units.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::endpoint {

class RxArena {
public:
    static constexpr std::uint32_t kNone = UINT32_MAX;  ///< no block
    static constexpr std::uint16_t kNoOwner = UINT16_MAX;

    enum class Release : std::uint8_t {
        kFreed,
        kReserve,  ///< the block is an owner's reserve: it is ready for that owner again
        kBad,      ///< not the start of a block that the client holds
    };

    /// `octets`: those of the whole arena; a multiple of 64, at least 4096, at most 1 GiB.
    explicit RxArena(std::uint32_t octets);

    /// Returns a block of at least `octets` (≥ 1), held by the engine; kNone if there is none in
    /// one piece.
    [[nodiscard]] std::uint32_t allocate(std::uint32_t octets) noexcept;
    /// Returns the same from the far end of the largest space, never given back: only `owner` uses
    /// it.
    [[nodiscard]] std::uint32_t reserve(std::uint32_t octets, std::uint16_t owner) noexcept;
    /// Returns the bytes that fit in the block.
    [[nodiscard]] std::uint32_t capacity(std::uint32_t offset) const noexcept;
    /// Gives back a block that was never lent (an aborted message). Not for reserves.
    void free(std::uint32_t offset) noexcept;
    /// Lends the block to the client, until it releases it.
    void lend(std::uint32_t offset) noexcept;
    /// Takes a block that a client gives back, unchecked. `owner` is set with kReserve.
    [[nodiscard]] Release release(std::uint32_t offset, std::uint16_t& owner) noexcept;

    [[nodiscard]] std::uint32_t octets() const noexcept { return octets_; }
    [[nodiscard]] std::uint32_t free_octets() const noexcept { return free_ << shift_; }
    [[nodiscard]] std::uint32_t lent_blocks() const noexcept { return lent_; }

    /// Writes or reads all blocks. octets: as they are here.
    void fields(state::Archive& archive);
    /// Tells whether a block begins there that the engine holds.
    [[nodiscard]] bool holds(std::uint32_t offset) const noexcept {
        const std::uint32_t at = offset >> shift_;
        return at < count_ && at << shift_ == offset && granules_[at].state == kHeld;
    }
    /// The same of a block that is lent.
    [[nodiscard]] bool lends(std::uint32_t offset) const noexcept {
        const std::uint32_t at = offset >> shift_;
        return at < count_ && at << shift_ == offset && granules_[at].state == kLent;
    }
    /// Returns how many blocks the engine holds. O(blocks).
    [[nodiscard]] std::uint32_t held_blocks() const noexcept;
    /// Fails the process if the blocks do not fill the arena, if a count or a bin is wrong, or if
    /// two free blocks are neighbours. O(blocks).
    void check_invariants() const;

private:
    friend struct Breaker;  // tests/unit/engine/invariants_test.cc

    enum State : std::uint8_t { kInterior = 0, kFree, kFreeTail, kHeld, kLent };
    struct Granule {
        std::uint16_t size;
        std::uint16_t prev;
        std::uint16_t next;  ///< owner of a reserve
        State state;
        bool is_reserve;
    };
    static_assert(sizeof(Granule) == 8);
    static constexpr std::uint16_t kEnd = UINT16_MAX;
    static constexpr int kBins = 16;
    static constexpr int kBinScanMax = 4;

    struct FreeC {
        void operator()(void* p) const noexcept { std::free(p); }
    };

    [[nodiscard]] std::uint32_t granules_for(std::uint32_t octets) const noexcept;
    [[nodiscard]] std::uint16_t find(std::uint32_t size) const noexcept;
    void insert(std::uint16_t head, std::uint32_t size) noexcept;
    void remove(std::uint16_t head) noexcept;
    void take(std::uint16_t head, std::uint32_t size) noexcept;
    void give_back(std::uint16_t head) noexcept;
    void read_blocks(state::Archive& archive);

    std::uint32_t octets_;
    std::uint32_t shift_;
    std::uint32_t count_;
    std::uint32_t free_ = 0;  ///< granules
    std::uint32_t lent_ = 0;  ///< blocks
    std::uint32_t bins_used_ = 0;
    std::uint16_t bins_[kBins];
    std::unique_ptr<Granule[], FreeC> granules_;  ///< from calloc: untouched pages cost nothing
};

}  // namespace ulc::endpoint
