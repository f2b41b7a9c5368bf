// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/i8255x/chip.h"

#include <atomic>

namespace ulc::i8255x {
namespace {

/// A reset takes 10 PCI clocks and 5 clocks of the line (SDM, "PORT interface"). Interval between
/// two looks.
constexpr Nanos kResetWait = 10 * kMicrosecond;
constexpr int kResetTries = 100;

/// Interval between two looks at the command byte, and their number.
constexpr Nanos kAcceptWait = 1 * kMicrosecond;
constexpr int kAcceptTries = 100;

/// A frame of 1,536 bytes takes 1.23 ms at 10 Mb/s. Interval between two looks.
constexpr Nanos kStopWait = 10 * kMicrosecond;
constexpr int kStopTries = 500;

/// A dump is 17 longwords. Interval between two looks at its last one.
constexpr Nanos kDumpWait = 2 * kMicrosecond;
constexpr int kDumpTries = 10;

[[nodiscard]] std::uint32_t load32(std::uint32_t& word) noexcept {
    return nic::little_endian(std::atomic_ref<std::uint32_t>(word).load(std::memory_order_acquire));
}

}  // namespace

bool Chip::is_accepting() noexcept {
    for (int tries = kAcceptTries; tries > 0; --tries) {
        const std::uint32_t value = bus_.read32(Reg::kScb);
        if (value == kNoAnswer) return false;  // check() names it
        if (scb::is_accepted(value)) return true;
        bus_.wait(kAcceptWait);
    }
    is_stuck_ = true;
    return false;
}

bool Chip::command(Command code) noexcept {
    if (!is_accepting()) return false;
    bus_.write8(Reg::kCommand, static_cast<std::uint8_t>(code));
    return true;
}

bool Chip::command(Command code, std::uint32_t pointer) noexcept {
    if (!is_accepting()) return false;
    bus_.write32(Reg::kGeneralPointer, pointer);
    bus_.write8(Reg::kCommand, static_cast<std::uint8_t>(code));
    return true;
}

/// The selective reset first: it takes the chip off the bus in good order (SDM, "PORT interface").
Fault Chip::reset() noexcept {
    transmits_ = receives_ = is_stuck_ = dump_pending_ = false;
    bus_.write32(Reg::kPort, port::kSelectiveReset);
    bus_.wait(kResetWait);
    bus_.write32(Reg::kPort, port::kSoftwareReset);
    for (int tries = kResetTries; tries > 0; --tries) {
        bus_.wait(kResetWait);
        const std::uint32_t status = bus_.read32(Reg::kScb);
        if (status == kNoAnswer) return Fault::kGone;
        if (scb::cu_state(status) != scb::Cu::kIdle || scb::ru_state(status) != scb::Ru::kIdle ||
            !scb::is_accepted(status))
            continue;
        bus_.write8(Reg::kInterruptMask, scb::kMaskAll);
        bus_.write8(Reg::kStatusAck, scb::kAckAll);
        return scb::is_masked(bus_.read32(Reg::kScb)) ? Fault::kNone : Fault::kGone;
    }
    return Fault::kResetTimeout;
}

Fault Chip::set_up_phy(Media media) noexcept {
    if (!phy_.find()) return Fault::kNoPhy;
    phy_.set_media(media);
    return Fault::kNone;
}

/// Pointers in blocks are offsets from the bases: with bases of zero they are bus addresses.
Fault Chip::set_up(Statistics& memory, std::uint32_t bus_address) noexcept {
    memory_ = &memory;
    memory = {};
    const bool done = command(Command::kCuLoadBase, 0) && command(Command::kRuLoadBase, 0) &&
                      command(Command::kLoadDumpAddress, bus_address);
    return done ? Fault::kNone : Fault::kCommandTimeout;
}

Fault Chip::start_transmit(const TxRing& ring) noexcept {
    transmits_ = command(Command::kCuStart, ring.oldest_bus());
    return transmits_ ? Fault::kNone : Fault::kCommandTimeout;
}

Fault Chip::start_receive(RxRing& ring) noexcept {
    receives_ = command(Command::kRuStart, ring.restart());
    return receives_ ? Fault::kNone : Fault::kCommandTimeout;
}

Fault Chip::stop() noexcept {
    (void)command(Command::kRuAbort);
    receives_ = transmits_ = false;
    Fault fault = Fault::kStopTimeout;
    for (int tries = kStopTries; tries > 0; --tries) {
        const std::uint32_t status = bus_.read32(Reg::kScb);
        if (status == kNoAnswer) return Fault::kGone;
        const scb::Cu cu = scb::cu_state(status);
        if (cu == scb::Cu::kIdle || cu == scb::Cu::kSuspended) {
            fault = Fault::kNone;
            break;
        }
        bus_.wait(kStopWait);
    }
    const Fault again = reset();
    return fault == Fault::kNone ? again : fault;
}

void Chip::resume_receive(RxRing& ring, std::uint32_t status) noexcept {
    switch (scb::ru_state(status)) {
        case scb::Ru::kReady:
            ring.still_runs();
            return;
        case scb::Ru::kSuspended:
        case scb::Ru::kNoResources:
            break;
        case scb::Ru::kIdle:
            return;  // check() names it
    }
    if (const std::uint32_t at = ring.restart(); at != 0) (void)command(Command::kRuStart, at);
}

void Chip::resume_receive(RxRing& ring) noexcept {
    const std::uint32_t status = bus_.read32(Reg::kScb);
    if (status != kNoAnswer) resume_receive(ring, status);
}

void Chip::take_statistics() noexcept {
    if (!dump_pending_ || load32(memory_->complete) != kDumped) return;
    dump_pending_ = false;
    const auto add = [](std::uint64_t& sum, std::uint32_t& counted) {
        sum += nic::little_endian(counted);
    };
    add(counters_.tx_max_collisions, memory_->tx_max_collisions);
    add(counters_.tx_late_collisions, memory_->tx_late_collisions);
    add(counters_.tx_underruns, memory_->tx_underruns);
    add(counters_.tx_lost_carrier, memory_->tx_lost_carrier);
    add(counters_.tx_deferred, memory_->tx_deferred);
    add(counters_.tx_collisions, memory_->tx_total_collisions);
    add(counters_.rx_crc, memory_->rx_crc);
    add(counters_.rx_alignment, memory_->rx_alignment);
    add(counters_.rx_no_resources, memory_->rx_no_resources);
    add(counters_.rx_overruns, memory_->rx_overruns);
    add(counters_.rx_collisions, memory_->rx_collisions);
    add(counters_.rx_short, memory_->rx_short);
}

/// A dump that did not come stays ordered: the next check() takes it.
Fault Chip::check(const TxRing& transmit, RxRing& receive) noexcept {
    const std::uint32_t status = bus_.read32(Reg::kScb);
    if (status == kNoAnswer) return Fault::kGone;
    bus_.write8(Reg::kStatusAck, scb::kAckAll);
    const bool cu_forgot = transmits_ && scb::cu_state(status) == scb::Cu::kIdle;
    const bool ru_forgot = receives_ && scb::ru_state(status) == scb::Ru::kIdle;
    if (cu_forgot || ru_forgot || !scb::is_masked(status)) return Fault::kForgot;
    take_statistics();
    if (!dump_pending_ && memory_ != nullptr) {
        memory_->complete = 0;
        dump_pending_ = command(Command::kDumpAndReset);
        for (int tries = kDumpTries; tries > 0 && dump_pending_; --tries) {
            take_statistics();
            if (dump_pending_) bus_.wait(kDumpWait);
        }
    }
    if (receives_) resume_receive(receive, status);
    if (transmits_ && transmit.pending() > 0) demand_transmit();
    return is_stuck_ ? Fault::kCommandTimeout : Fault::kNone;
}

}  // namespace ulc::i8255x
