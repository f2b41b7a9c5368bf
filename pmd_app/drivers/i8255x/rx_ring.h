// SPDX-License-Identifier: BSD-3-Clause
// The receive frame area as a ring: each place always has a buffer, with its descriptor directly
// before it (SDM chapter 6, "Receive frame area", simplified mode; QEMU has no other).
//
//            oldest_                     tail_
//              v                           v
//   [given ][done ][done ][chip's][chip's EL]        EL: the chip stops behind this one
//    batch_
//
// A place that is given back goes behind the tail, but the chip learns of it only when a quarter of
// the ring has come together (or the ring is restarted): EL is set in the newest and then cleared
// in the old tail. The chip may have read the old tail's EL before; it then stops there although
// the ring goes on. may_have_stopped() says when that is possible: the caller reads the state of
// the receive unit at most four times a round. No clock, no register. One thread.
#pragma once

#include <cstdint>
#include <memory>

#include "drivers/i8255x/descriptor.h"

namespace ulc::i8255x {

using nic::RxFrame;
using nic::RxVerdict;

/// Memory into which the chip may write: a descriptor, and directly behind it the buffer. Both
/// addresses are those of the descriptor, and longword-aligned; all buffers have the ring's size.
struct RxBuffer {
    void* owner;
    ReceiveDescriptor* descriptor;
    std::uint32_t bus_address;
};

class RxRing {
public:
    /// Creates the ring; allocates. `places` is 2 or more, `buffer_octets` a multiple of 4 up to
    /// kReceiveBufferOctetsMax. Each place needs a buffer by arm() before rearm_all().
    RxRing(std::uint32_t places, std::uint32_t buffer_octets);

    /// Puts a buffer in place `index`. The chip must be stopped.
    void arm(std::uint32_t index, RxBuffer buffer) noexcept;
    /// Gives all buffers to the chip, oldest first in place 0. The chip must be stopped; it starts
    /// at start_bus().
    void rearm_all() noexcept;

    /// Returns the state of the oldest place; `frame` is set with kFrame only. Changes nothing.
    /// kUnsettled: the chip set C without EOF and F, as QEMU does, which writes C first; after a
    /// read of any register the content is there, and `is_settled` is true for the next call.
    [[nodiscard]] RxVerdict peek(RxFrame& frame, bool is_settled) noexcept;
    /// Gives the oldest place a new buffer; the old one belongs to the caller.
    void replace(RxBuffer fresh) noexcept;
    /// Leaves the oldest place its buffer, whose content is lost.
    void recycle() noexcept;

    /// Returns true if the chip may have stopped for want of descriptors since the last restart.
    [[nodiscard]] bool may_have_stopped() const noexcept { return may_have_stopped_; }
    /// The caller read that the chip receives.
    void still_runs() noexcept { may_have_stopped_ = false; }
    /// Lets the chip have all that was given back. Returns the bus address at which it must start,
    /// or 0 if it has filled every place.
    [[nodiscard]] std::uint32_t restart() noexcept;

    /// Returns true if the chip has filled the `offset`-th place from the oldest.
    [[nodiscard]] bool done_at(std::uint32_t offset) noexcept;
    [[nodiscard]] void* owner_at(std::uint32_t index) const noexcept {
        return places_[index].buffer.owner;
    }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

private:
    struct Place {
        RxBuffer buffer{};
        bool was_tail = false;  ///< had EL while the chip could see it
    };

    [[nodiscard]] std::uint32_t after(std::uint32_t index, std::uint32_t steps) const noexcept;
    [[nodiscard]] bool is_done(std::uint32_t index) const noexcept;
    void prepare(std::uint32_t index) noexcept;
    void give_back() noexcept;
    void move_tail() noexcept;

    std::unique_ptr<Place[]> places_;
    std::uint32_t size_;
    std::uint32_t buffer_octets_;
    std::uint32_t oldest_ = 0;
    std::uint32_t tail_ = 0;
    std::uint32_t batch_ = 0;  ///< places behind the tail that the chip does not know of
    bool may_have_stopped_ = false;
};

}  // namespace ulc::i8255x
