// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/tulip/chip.h"

namespace ulc::tulip {
namespace {

/// Reset takes 50 cycles of the PCI clock (HRM, CSR0<SWR>): 2 us at 25 MHz. Interval between two
/// tries.
constexpr Nanos kResetWait = 10 * kMicrosecond;
constexpr int kResetTries = 100;

/// A frame of 1,536 bytes takes 1.23 ms at 10 Mb/s. Interval between two checks.
constexpr Nanos kStopWait = 10 * kMicrosecond;
constexpr int kStopTries = 500;

/// PHYs need their reset line low for up to 1 ms (the ROM's sequence pulses it).
constexpr Nanos kPortStepWait = 1 * kMillisecond;

/// Returns true if those of `processes` (CSR6<SR>, <ST>) are stopped.
bool stands(std::uint32_t status, std::uint32_t processes) noexcept {
    const bool transmits = csr5::transmit_state(status) != 0 && (processes & csr6::kST) != 0;
    const bool receives = csr5::receive_state(status) != 0 && (processes & csr6::kSR) != 0;
    return !transmits && !receives;
}

}  // namespace

/// Returns CSR6 without the processes.
std::uint32_t Chip::mode() const noexcept {
    std::uint32_t value = csr6::kMBO | csr6::kPS | csr6::kHBD;
    if (threshold_ == TransmitThreshold::kWhole)
        value |= csr6::kSF;
    else
        value |= static_cast<std::uint32_t>(threshold_) << csr6::kTRShift;
    if (link_.mbit == 10) value |= csr6::kTTM;
    if (link_.full_duplex) value |= csr6::kFD;
    if (reception_.promiscuous) value |= csr6::kPR;
    if (reception_.all_multicast) value |= csr6::kPM;
    if (loopback_) value |= csr6::kOMInternal;
    return value;
}

void Chip::run(std::uint32_t processes) noexcept {
    running_ = processes;
    bus_.write(Csr::kOperationMode, mode() | running_);
}

void Chip::drive_port(std::uint16_t value) noexcept {
    if (model_ == Model::k21143)
        bus_.write(Csr::kSiaGeneralPort, std::uint32_t{value} << csr15::kPortShift);
    else
        bus_.write(Csr::kSiaStatus, value);
    bus_.wait(kPortStepWait);
}

/// Follows HRM chapter 4, "Startup procedure": the bus mode after the reset, then the port;
/// set_lists() and run() do the rest.
Fault Chip::reset(const PortSequence& sequence) noexcept {
    running_ = 0;
    // The port is chosen before the reset, so that the chip comes up on MII (HRM, CSR6<PS>).
    bus_.write(Csr::kOperationMode, csr6::kMBO | csr6::kPS | csr6::kHBD);
    bus_.write(Csr::kBusMode, csr0::kSWR);
    bus_.wait(kResetWait);
    bus_.write(Csr::kBusMode, csr0::kCAL16 | csr0::kRME | csr0::kRLE | csr0::kWIE);
    int tries = kResetTries;
    std::uint32_t status = 0;
    do {
        bus_.wait(kResetWait);
        status = bus_.read(Csr::kStatus);
        if (status == kNoAnswer) return Fault::kGone;
    } while (!stands(status, csr6::kSR | csr6::kST) && --tries > 0);
    if (tries == 0) return Fault::kResetTimeout;
    bus_.write(Csr::kInterruptMask, 0);
    bus_.write(Csr::kStatus, csr5::kClearable);
    if (model_ == Model::k21143) bus_.write(Csr::kSiaConnectivity, 0);  // SIA off: the port is MII
    for (const std::uint16_t value : sequence.reset)
        drive_port(value);
    for (const std::uint16_t value : sequence.select)
        drive_port(value);
    run(0);
    return Fault::kNone;
}

Fault Chip::set_up_phy(Media media) noexcept {
    if (!phy_.find()) return Fault::kNoPhy;
    phy_.set_media(media);
    return Fault::kNone;
}

/// Only while the processes are stopped (HRM, CSR3 and CSR4).
void Chip::set_lists(std::uint32_t transmit_bus, std::uint32_t receive_bus) noexcept {
    bus_.write(Csr::kReceiveListBase, receive_bus);
    bus_.write(Csr::kTransmitListBase, transmit_bus);
}

void Chip::start_transmit() noexcept { run(running_ | csr6::kST); }
void Chip::start_receive() noexcept { run(running_ | csr6::kSR); }

/// A process ends its current frame, then CSR5<TS> or <RS> reports that it has stopped (HRM,
/// CSR6<ST>, <SR>).
Fault Chip::stop(std::uint32_t processes) noexcept {
    run(running_ & ~processes);
    for (int tries = kStopTries; tries > 0; --tries) {
        const std::uint32_t status = bus_.read(Csr::kStatus);
        if (status == kNoAnswer) return Fault::kGone;
        if (stands(status, processes)) return Fault::kNone;
        bus_.wait(kStopWait);
    }
    return Fault::kStopTimeout;
}

/// Speed and duplex may change only while both processes are stopped (HRM, CSR6<TTM>, <FD>).
Fault Chip::apply(const Link& link) noexcept {
    const bool same = link.full_duplex == link_.full_duplex && link.mbit == link_.mbit;
    if (!link.up || same) return Fault::kNone;
    const std::uint32_t were_running = running_;
    if (const Fault fault = stop(); fault != Fault::kNone) return fault;
    link_ = link;
    run(were_running);
    return Fault::kNone;
}

void Chip::set_reception(Reception reception) noexcept {
    reception_ = reception;
    run(running_);
}

/// The threshold may change only while the transmit process is stopped (HRM, CSR6<TR>).
Fault Chip::raise_threshold() noexcept {
    const std::uint32_t were_running = running_;
    if (const Fault fault = stop(csr6::kST); fault != Fault::kNone) return fault;
    if (threshold_ != TransmitThreshold::kWhole)
        threshold_ = static_cast<TransmitThreshold>(static_cast<int>(threshold_) + 1);
    run(were_running);
    return Fault::kNone;
}

/// A one written to CSR5 clears its bit; reading CSR8 clears its counters (HRM, CSR5 and CSR8).
Fault Chip::check() noexcept {
    const std::uint32_t status = bus_.read(Csr::kStatus);
    if (status == kNoAnswer) return Fault::kGone;
    bus_.write(Csr::kStatus, status & csr5::kClearable);
    const std::uint32_t missed = bus_.read(Csr::kMissedFrames);
    missed_.no_descriptor += missed & csr8::kMissedMask;
    if ((missed & csr8::kMissedOverflow) != 0) missed_.no_descriptor += csr8::kMissedMask + 1;
    missed_.fifo_overflow += (missed >> csr8::kFifoShift) & csr8::kFifoMask;
    if ((missed & csr8::kFifoOverflow) != 0) missed_.fifo_overflow += csr8::kFifoMask + 1;
    if ((status & csr5::kFBE) != 0) return Fault::kBusError;
    const std::uint32_t processes = bus_.read(Csr::kOperationMode) & (csr6::kSR | csr6::kST);
    return processes == running_ ? Fault::kNone : Fault::kForgot;
}

}  // namespace ulc::tulip
