// The receive ring: every descriptor holds a buffer of its own, so that the ring is always whole.
// HRM chapter 4, "Receive descriptors".
//
// The caller looks at the oldest descriptor (peek), and then either takes the frame and leaves a
// fresh buffer in its place (replace), or leaves the buffer where it is (recycle): there is no state
// in which a descriptor has none. No clock, no register: the caller rings the doorbell (CSR2)
// after the chip has run dry. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "drivers/tulip/descriptor.h"

namespace ulc::tulip {

/// Where the chip may write. `bus_address` is longword-aligned; all buffers have the ring's size.
struct RxBuffer {
    void* owner;
    std::uint32_t bus_address;
};

enum class RxVerdict : std::uint8_t {
    kEmpty,      ///< the chip has the descriptor still
    kFrame,      ///< a good frame
    kCrc,        ///< checksum, dribble or PHY error
    kRunt,       ///< below 64 octets, or cut by a collision
    kTooLong,    ///< more than a buffer; told once, with its first descriptor
    kRest,       ///< a later descriptor of such a frame
    kOverflow,   ///< the chip's FIFO was full
    kMalformed,  ///< a length that cannot be, or an error of no name
};

struct RxFrame {
    void* owner;           ///< of the buffer, as given
    std::uint32_t octets;  ///< without the CRC
};

class RxRing {
public:
    /// `descriptors` (2 or more) outlive this; `buffer_octets`: a multiple of 4 up to
    /// kReceiveBufferOctetsMax. Allocates. Each descriptor wants a buffer by arm() before the chip
    /// starts.
    RxRing(std::span<Descriptor> descriptors, std::uint32_t buffer_octets);

    /// Puts a buffer in place `index` and gives it to the chip, which must stand.
    void arm(std::uint32_t index, RxBuffer buffer) noexcept;
    /// Gives all buffers to the chip again, oldest first in place 0; for a chip that was reset.
    void rearm_all() noexcept;

    /// What lies in the oldest place; `frame` is set with kFrame only. Changes nothing.
    [[nodiscard]] RxVerdict peek(RxFrame& frame) noexcept;
    /// The oldest place gets a new buffer; the old one is the caller's.
    void replace(RxBuffer fresh) noexcept;
    /// The oldest place keeps its buffer, whose content is lost.
    void recycle() noexcept;

    /// Whether the chip has filled the `offset`-th place from the oldest.
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
