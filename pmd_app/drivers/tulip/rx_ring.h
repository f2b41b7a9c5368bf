// SPDX-License-Identifier: BSD-3-Clause
// The receive ring: every descriptor always holds a buffer, so the ring is always complete. HRM
// chapter 4, "Receive descriptors".
//
// The caller checks the oldest descriptor (peek), and then either takes the frame and puts a fresh
// buffer in its place (replace), or leaves the buffer where it is (recycle): there is no state in
// which a descriptor has none. No clock, no register: the caller rings the doorbell (CSR2) after
// the chip has run dry. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "drivers/tulip/descriptor.h"

namespace ulc::tulip {

using nic::RxFrame;
using nic::RxVerdict;

/// Memory into which the chip may write. `bus_address` is longword-aligned; all buffers have the
/// ring's size.
struct RxBuffer {
    void* owner;
    std::uint32_t bus_address;
};

class RxRing {
public:
    /// Creates the ring; allocates. `descriptors` (2 or more) outlive this; `buffer_octets`: a
    /// multiple of 4 up to kReceiveBufferOctetsMax. Each descriptor needs a buffer by arm() before
    /// the chip starts.
    RxRing(std::span<Descriptor> descriptors, std::uint32_t buffer_octets);

    /// Puts a buffer in place `index` and gives it to the chip, which must be stopped.
    void arm(std::uint32_t index, RxBuffer buffer) noexcept;
    /// Gives all buffers to the chip again, oldest first in place 0; for a chip that was reset.
    void rearm_all() noexcept;

    /// Returns the state of the oldest place; `frame` is set with kFrame only. Changes nothing.
    [[nodiscard]] RxVerdict peek(RxFrame& frame) noexcept;
    /// Gives the oldest place a new buffer; the old one belongs to the caller.
    void replace(RxBuffer fresh) noexcept;
    /// Leaves the oldest place its buffer, whose content is lost.
    void recycle() noexcept;

    /// Returns true if the chip has filled the `offset`-th place from the oldest.
    [[nodiscard]] bool done_at(std::uint32_t offset) noexcept;
    [[nodiscard]] void* owner_at(std::uint32_t index) const noexcept { return owners_[index]; }
    [[nodiscard]] std::uint32_t size() const noexcept {
        return static_cast<std::uint32_t>(descriptors_.size());
    }

private:
    void give_place(std::uint32_t index) noexcept;
    void advance() noexcept;

    std::span<Descriptor> descriptors_;
    std::unique_ptr<void*[]> owners_;
    std::uint32_t buffer_octets_;
    std::uint32_t oldest_ = 0;
};

}  // namespace ulc::tulip
