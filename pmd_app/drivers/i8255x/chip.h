// SPDX-License-Identifier: BSD-3-Clause
// The chip as a whole: reset, start, stop, commands, statistics, faults. SDM chapter 6, "Host
// software interface".
//
// Every wait has a bound, stated with it; every function that can fail reports how (Fault), and
// leaves a chip on which reset() can be tried. One thread at a time.
#pragma once

#include <cstdint>

#include "drivers/common/fault.h"
#include "drivers/i8255x/bus.h"
#include "drivers/i8255x/mdi.h"
#include "drivers/i8255x/rx_ring.h"
#include "drivers/i8255x/tx_ring.h"

namespace ulc::i8255x {

using nic::Fault;
using nic::Link;
using nic::Media;
using nic::TransmitThreshold;

/// The chip's own statistics, added up since the last clear.
struct ChipCounters {
    std::uint64_t tx_max_collisions, tx_late_collisions, tx_underruns, tx_lost_carrier;
    std::uint64_t tx_deferred, tx_collisions;
    std::uint64_t rx_crc, rx_alignment, rx_no_resources, rx_overruns, rx_collisions, rx_short;
};

class Chip {
public:
    /// Touches nothing yet.
    explicit Chip(Bus& bus) noexcept : bus_(bus), mdi_(bus), phy_(mdi_) {}

    /// Performs a selective and a software reset, which end all access to memory, and disables
    /// interrupts. Waits up to 1 ms. Errors: kGone (also if
    /// everything reads zero), kResetTimeout.
    Fault reset() noexcept;

    /// Finds the PHY and configures it. Call after reset(). Errors: kNoPhy.
    Fault set_up_phy(Media media) noexcept;

    /// Gives the chip the place of its statistics, and bases of zero. Call after reset(). Errors:
    /// kCommandTimeout.
    Fault set_up(Statistics& memory, std::uint32_t bus_address) noexcept;

    /// Starts the command unit at the oldest block of `ring`, which must not be empty. Errors:
    /// kCommandTimeout.
    Fault start_transmit(const TxRing& ring) noexcept;
    /// Starts the receive unit at the ring's oldest place. Errors: kCommandTimeout.
    Fault start_receive(RxRing& ring) noexcept;

    /// Ends receiving, waits for the commands in progress, up to 5 ms, and resets the chip, so that
    /// nothing writes to memory after it. Errors: kGone, kStopTimeout (it is reset then, too).
    Fault stop() noexcept;

    /// Rings the doorbell: the chip looks at the newest block again. One register read at least.
    void demand_transmit() noexcept { command(Command::kCuResume); }

    /// Starts the receive unit again if it stopped for want of descriptors. One register read.
    void resume_receive(RxRing& ring) noexcept;

    /// Reads the status, and adds up the statistics of the last dump; orders the next one, and
    /// takes it if it is there within 20 us. Resumes a chip that stands before blocks that were
    /// given, or that lacks descriptors. Errors: kGone, kForgot, kCommandTimeout.
    Fault check(const TxRing& transmit, RxRing& receive) noexcept;

    [[nodiscard]] const ChipCounters& counters() const noexcept { return counters_; }
    void clear_counters() noexcept { counters_ = {}; }

    [[nodiscard]] nic::Phy& phy() noexcept { return phy_; }
    [[nodiscard]] Bus& bus() noexcept { return bus_; }

private:
    /// Waits until the last command is accepted, up to 100 us, and gives the next. A chip that does
    /// not accept it is reported by check().
    bool command(Command code) noexcept;
    bool command(Command code, std::uint32_t pointer) noexcept;
    [[nodiscard]] bool is_accepting() noexcept;
    void take_statistics() noexcept;
    void resume_receive(RxRing& ring, std::uint32_t status) noexcept;

    Bus& bus_;
    Mdi mdi_;
    nic::Phy phy_;
    Statistics* memory_ = nullptr;
    ChipCounters counters_{};
    bool transmits_ = false;
    bool receives_ = false;
    bool is_stuck_ = false;  ///< a command was not accepted
    bool dump_pending_ = false;
};

/// Returns the threshold's value in a transmit block: units of 8 bytes. The chip begins once the
/// FIFO holds that, or the whole frame.
[[nodiscard]] constexpr std::uint8_t threshold_units(TransmitThreshold threshold) noexcept {
    switch (threshold) {
        case TransmitThreshold::k128:
            return 16;
        case TransmitThreshold::k256:
            return 32;
        case TransmitThreshold::k512:
            return 64;
        case TransmitThreshold::k1024:
            return 128;
        case TransmitThreshold::kWhole:
            break;
    }
    return 0xe0;  // the largest that the manual allows: 1,792 bytes
}

}  // namespace ulc::i8255x
