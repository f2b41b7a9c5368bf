// SPDX-License-Identifier: BSD-3-Clause
// The chip as a whole: reset, start, stop, modes, faults. HRM chapter 4, "Startup procedure".
//
// Every wait has a bound, stated with it; every function that can fail reports how (Fault), and
// leaves a chip on which reset() can be tried. One thread at a time.
#pragma once

#include <cstdint>

#include "drivers/common/fault.h"
#include "drivers/common/ring_types.h"
#include "drivers/tulip/bus.h"
#include "drivers/tulip/mii.h"
#include "drivers/tulip/srom.h"

namespace ulc::tulip {

using nic::Link;
using nic::Media;
using nic::Reception;
using nic::TransmitThreshold;

/// Frames that the chip itself lost (CSR8), since the last reset of the figures.
struct MissedFrames {
    std::uint64_t no_descriptor = 0;
    std::uint64_t fifo_overflow = 0;
};

class Chip {
public:
    /// Touches nothing yet.
    Chip(Bus& bus, Model model) noexcept : bus_(bus), mii_(bus), phy_(mii_), model_(model) {}

    /// Performs a software reset, sets the bus mode, disables interrupts, and switches the PHY on
    /// by `sequence`. Waits up to 1 ms, and as long as the PHY's reset takes (up to 16 steps of 1
    /// ms). Errors: kGone, kResetTimeout.
    Fault reset(const PortSequence& sequence) noexcept;

    /// Finds the PHY and configures it. Call after reset(). Errors: kNoPhy.
    Fault set_up_phy(Media media) noexcept;

    /// Gives the chip the addresses of its rings. Both processes must be stopped.
    void set_lists(std::uint32_t transmit_bus, std::uint32_t receive_bus) noexcept;

    /// Starts only the transmit process: for the first setup frame, which the chip must read before
    /// it receives anything.
    void start_transmit() noexcept;
    void start_receive() noexcept;

    /// Stops both processes; waits for the frames in progress, up to 5 ms (a frame takes 1.2 ms at
    /// 10 Mb/s). Errors: kGone, kStopTimeout.
    Fault stop() noexcept { return stop(csr6::kSR | csr6::kST); }

    /// Sets the chip's speed and duplex to those of `link`, as Phy::link() returned it; running
    /// processes are stopped for it and started again. A link that is down changes nothing: the
    /// setting stays until it comes back. Errors: as stop().
    Fault apply(const Link& link) noexcept;

    /// Takes effect at once.
    void set_reception(Reception reception) noexcept;

    /// Takes effect with the next start. kWhole is the maximum.
    void set_threshold(TransmitThreshold threshold) noexcept { threshold_ = threshold; }
    [[nodiscard]] TransmitThreshold threshold() const noexcept { return threshold_; }
    /// Sets the next higher threshold after an underflow, and starts transmit again. Errors: as
    /// stop().
    Fault raise_threshold() noexcept;

    /// Reads and clears the status; adds up missed frames. A few register reads: not for every
    /// frame. Errors: kGone, kBusError, kForgot.
    Fault check() noexcept;
    [[nodiscard]] const MissedFrames& missed() const noexcept { return missed_; }
    void clear_missed() noexcept { missed_ = {}; }

    /// Rings the doorbells: the chip checks its ring again.
    void demand_transmit() noexcept { bus_.write(Csr::kTransmitPollDemand, 1); }
    void demand_receive() noexcept { bus_.write(Csr::kReceivePollDemand, 1); }

    /// Touches only CSR9, which nothing else here uses after the start.
    [[nodiscard]] nic::Phy& phy() noexcept { return phy_; }
    /// Loops frames back inside the chip, from the next start on: for tests of a card without a
    /// cable.
    void set_internal_loopback(bool on) noexcept { loopback_ = on; }

private:
    [[nodiscard]] std::uint32_t mode() const noexcept;
    Fault stop(std::uint32_t processes) noexcept;
    void run(std::uint32_t processes) noexcept;
    void drive_port(std::uint16_t value) noexcept;

    Bus& bus_;
    Mii mii_;
    nic::Phy phy_;
    Model model_;
    Link link_{.up = false, .full_duplex = false, .mbit = 100};
    Reception reception_;
    TransmitThreshold threshold_ = TransmitThreshold::k128;
    bool loopback_ = false;
    std::uint32_t running_ = 0;  ///< bits CSR6<SR> and <ST>
    MissedFrames missed_;
};

}  // namespace ulc::tulip
