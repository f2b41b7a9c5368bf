// The chip as a whole: reset, start, stop, modes, what went wrong. HRM chapter 4, "Startup procedure".
//
// Every wait has a bound, stated beside it; every function that can fail says how (Fault), and leaves
// a chip that reset() can be tried on. One thread at a time.
#pragma once

#include <cstdint>

#include "drivers/tulip/bus.h"
#include "drivers/tulip/fault.h"
#include "drivers/tulip/mii.h"
#include "drivers/tulip/srom.h"

namespace ulc::tulip {

/// When the chip begins to send a frame that it is still fetching from memory (CSR6<TR>, <SF>): the
/// lower, the sooner it is on the wire (GAMMA §4.5.7), and the likelier an underflow.
enum class TransmitThreshold : std::uint8_t {
    k128,  ///< octets at 100 Mb/s; at 10 Mb/s the four are 72, 96, 128, 160
    k256,
    k512,
    k1024,
    kWhole,  ///< store and forward
};

/// Which frames are received besides those of the setup frame.
struct Reception {
    bool promiscuous = false;
    bool all_multicast = false;
};

/// Frames that the chip lost by itself (CSR8), since the last reset of the figures.
struct MissedFrames {
    std::uint64_t no_descriptor = 0;
    std::uint64_t fifo_overflow = 0;
};

class Chip {
public:
    /// Nothing is touched yet.
    Chip(Bus& bus, Model model) noexcept : bus_(bus), mii_(bus), model_(model) {}

    /// Software reset, bus mode, no interrupts, PHY switched on by `sequence`. Waits up to 1 ms, and as
    /// long as the PHY's reset takes (up to 16 steps of 1 ms).
    /// Errors: kGone, kResetTimeout.
    Fault reset(const PortSequence& sequence) noexcept;

    /// Finds the PHY and sets what it is to do. After reset(). Errors: kNoPhy.
    Fault set_up_phy(Media media) noexcept;

    /// Tells the chip where its rings begin. Both processes must stand.
    void set_lists(std::uint32_t transmit_bus, std::uint32_t receive_bus) noexcept;

    /// The transmit process alone: for the first setup frame, which must be read before anything is
    /// received.
    void start_transmit() noexcept;
    void start_receive() noexcept;

    /// Stops both processes; waits for the frames under way, up to 5 ms (a frame takes 1.2 ms at
    /// 10 Mb/s). Errors: kGone, kStopTimeout.
    Fault stop() noexcept { return stop(csr6::kSR | csr6::kST); }

    /// Makes the chip's speed and duplex those of `link`, as Mii::link() told it; processes that run
    /// are stopped for it and started again. A link that is down changes nothing: what was stays, for
    /// when it comes back. Errors: as stop().
    Fault apply(const Link& link) noexcept;

    /// Takes force at once.
    void set_reception(Reception reception) noexcept;

    /// Takes force with the next start. Above kWhole there is nothing.
    void set_threshold(TransmitThreshold threshold) noexcept { threshold_ = threshold; }
    [[nodiscard]] TransmitThreshold threshold() const noexcept { return threshold_; }
    /// After an underflow: the next higher threshold, and transmit started again. Errors: as stop().
    Fault raise_threshold() noexcept;

    /// Reads and clears the status; adds up missed frames. A few register reads: not for every frame.
    /// Errors: kGone, kBusError, kForgot.
    Fault check() noexcept;
    [[nodiscard]] const MissedFrames& missed() const noexcept { return missed_; }
    void clear_missed() noexcept { missed_ = {}; }

    /// Doorbells: the chip looks at its ring again.
    void demand_transmit() noexcept { bus_.write(Csr::kTransmitPollDemand, 1); }
    void demand_receive() noexcept { bus_.write(Csr::kReceivePollDemand, 1); }

    /// Touches CSR9 only, which nothing else here does after the start.
    [[nodiscard]] Mii& mii() noexcept { return mii_; }
    /// Loops frames back inside the chip, from the next start on: for tests of a card without a cable.
    void set_internal_loopback(bool on) noexcept { loopback_ = on; }

private:
    [[nodiscard]] std::uint32_t mode() const noexcept;
    Fault stop(std::uint32_t processes) noexcept;
    void run(std::uint32_t processes) noexcept;
    void drive_port(std::uint16_t value) noexcept;

    Bus& bus_;
    Mii mii_;
    Model model_;
    Link link_{.up = false, .full_duplex = false, .mbit = 100};
    Reception reception_;
    TransmitThreshold threshold_ = TransmitThreshold::k128;
    bool loopback_ = false;
    std::uint32_t running_ = 0;  ///< of CSR6<SR> and <ST>
    MissedFrames missed_;
};

}  // namespace ulc::tulip
