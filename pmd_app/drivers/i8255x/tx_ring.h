// SPDX-License-Identifier: BSD-3-Clause
// The command block list as a ring: frames and commands out, in order, and the result of each. SDM
// chapter 6, "Command unit operation".
//
//        oldest_                              next_
//          v                                    v
//   [free][frame][frame][configure][frame  S ][free]       the links never change
//                                          ^ newest: the only one with S that the chip may reach
//
// The chip suspends behind the newest block. A further block is filled with S set, and then S of
// the block before it is cleared. The chip that already suspended there looks at S again when the
// caller resumes it (Chip::demand_transmit). Therefore the block before the oldest is never filled:
// a chip that suspended there would find S set again, and stay.
//
// Frames use the standard transmit block, with SF and an array of buffer descriptors that lies
// behind the block: header and payload are two buffers (GAMMA §7.1). Extended blocks, which the
// 82558 and later have, would spare the chip one read of memory; QEMU 7.2 handles them wrongly
// (docs/DRIVER.md). No clock, no register. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "drivers/i8255x/descriptor.h"

namespace ulc::i8255x {

using nic::TxDone;
using nic::TxResult;
using nic::TxSegment;

class TxRing {
public:
    /// Creates a ring of one place less than `blocks` (2 or more, at `bus_address` for the chip),
    /// which belong to the caller and outlive this. Allocates.
    TxRing(std::span<CommandBlock> blocks, std::uint32_t bus_address);

    /// Frees all blocks and forgets their frames without a report: take them by drop() first. The
    /// chip must be stopped.
    void reset() noexcept;

    /// Sets the threshold of the next frames, in units of 8 bytes.
    void set_threshold(std::uint8_t threshold) noexcept { threshold_ = threshold; }

    /// Gives a frame of up to kSegmentsMax segments to the chip. Returns false if there is no free
    /// block. `frame` comes back by reap() or drop(), not before.
    [[nodiscard]] bool post(std::span<const TxSegment> segments, void* frame,
                            std::uint8_t tries) noexcept;

    /// Gives a command (cb::kConfigure, kAddress or kMulticast) with its bytes. `is_last`: the
    /// filter is in force with this one, so that reap() reports TxResult::kSetup.
    [[nodiscard]] bool post_command(std::uint16_t command, std::span<const std::uint8_t> bytes,
                                    bool is_last) noexcept;

    /// Returns the oldest frame or command that the chip has finished; false if there is none.
    [[nodiscard]] bool reap(TxDone& done) noexcept;

    /// Returns the oldest frame or command, finished or not; false if there is none. The chip must
    /// be stopped.
    [[nodiscard]] bool drop(TxDone& done) noexcept;

    /// Returns the number of blocks that reap() has not reported.
    [[nodiscard]] std::uint32_t pending() const noexcept { return pending_; }
    [[nodiscard]] std::uint32_t room() const noexcept { return size() - pending_; }
    /// Returns true if the chip has finished the block `offset` places after the next to be filled.
    [[nodiscard]] bool done_at(std::uint32_t offset) noexcept;
    /// Returns the bus address of the oldest block that was not reported: the chip starts there.
    [[nodiscard]] std::uint32_t oldest_bus() const noexcept { return bus_of(oldest_); }
    [[nodiscard]] std::uint32_t size() const noexcept { return count() - 1; }

private:
    struct Record {
        void* frame;
        std::uint8_t tries;
        TxResult success;  ///< the report if the chip says OK
    };

    [[nodiscard]] std::uint32_t count() const noexcept {
        return static_cast<std::uint32_t>(blocks_.size());
    }
    [[nodiscard]] std::uint32_t after(std::uint32_t index, std::uint32_t steps) const noexcept;
    [[nodiscard]] std::uint32_t bus_of(std::uint32_t index) const noexcept {
        return bus_address_ + index * static_cast<std::uint32_t>(sizeof(CommandBlock));
    }
    void give(std::uint16_t command, const Record& record) noexcept;
    void take_oldest(TxDone& done, std::uint16_t status) noexcept;

    std::span<CommandBlock> blocks_;
    std::uint32_t bus_address_;
    std::unique_ptr<Record[]> records_;
    std::uint32_t oldest_ = 0;
    std::uint32_t next_ = 0;
    std::uint32_t pending_ = 0;
    std::uint8_t threshold_ = 0;
};

}  // namespace ulc::i8255x
