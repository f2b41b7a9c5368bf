// SPDX-License-Identifier: BSD-3-Clause
// The transmit ring: frames out, in order, and the result of each. HRM chapter 4, "Transmit
// descriptors".
//
//        oldest_                    next_
//          v                          v
//   [free][own][own | own][own][setup][free][free]      TDES1<TER> in the last one: the chip wraps
//          one frame of up to two buffers a descriptor; its record is at its last descriptor
//
// A frame's descriptors are given to the chip from the last to the first, so that it never sees the
// front of a frame without its end. No clock, no register: the caller rings the doorbell (CSR1).
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "drivers/tulip/descriptor.h"

namespace ulc::tulip {

using nic::TxDone;
using nic::TxResult;
using nic::TxSegment;

class TxRing {
public:
    /// Creates the ring; allocates. `descriptors` (2 or more, longword-aligned) belong to the
    /// caller and outlive this.
    explicit TxRing(std::span<Descriptor> descriptors);

    /// Frees all descriptors and forgets their frames without a report: take them by drop() first.
    /// The chip must be stopped.
    void reset() noexcept;

    /// Gives a frame to the chip. Returns false if there is no space for all of `segments`; nothing
    /// is given then. `frame` comes back by reap() or drop(), not before.
    [[nodiscard]] bool post(std::span<const TxSegment> segments, void* frame,
                            std::uint8_t tries) noexcept;

    /// Gives a setup frame of kSetupFrameOctets, which must not change until reap() reports it.
    [[nodiscard]] bool post_setup(std::uint32_t bus_address, bool hash) noexcept;

    /// Returns the oldest frame that the chip has finished; false if there is none.
    [[nodiscard]] bool reap(TxDone& done) noexcept;

    /// Returns the oldest frame, finished or not; false if there is none. The chip must be stopped.
    [[nodiscard]] bool drop(TxDone& done) noexcept;

    /// Returns the number of frames and setup frames that reap() has not reported.
    [[nodiscard]] std::uint32_t pending() const noexcept { return pending_; }
    /// Returns the number of free descriptors.
    [[nodiscard]] std::uint32_t room() const noexcept { return free_; }
    /// Returns true if the chip has finished the descriptor `offset` places after the next to be
    /// filled: ethdev calls it the status of a transmit descriptor.
    [[nodiscard]] bool done_at(std::uint32_t offset) noexcept;
    [[nodiscard]] std::uint32_t size() const noexcept {
        return static_cast<std::uint32_t>(descriptors_.size());
    }

private:
    struct Record {
        void* frame;
        std::uint32_t last;  ///< the frame's last descriptor; valid at its first one
        std::uint8_t tries;
        bool setup;
    };

    [[nodiscard]] std::uint32_t after(std::uint32_t index, std::uint32_t steps) const noexcept;
    void fill(std::uint32_t index, std::uint32_t control, const TxSegment& first,
              const TxSegment* second) noexcept;
    void take_oldest(TxDone& done, std::uint32_t status) noexcept;

    std::span<Descriptor> descriptors_;
    std::unique_ptr<Record[]> records_;  ///< by index of a frame's first descriptor
    std::uint32_t oldest_ = 0;
    std::uint32_t next_ = 0;
    std::uint32_t free_;
    std::uint32_t pending_ = 0;
};

}  // namespace ulc::tulip
