// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/tulip/mii.h"

namespace ulc::tulip {
namespace {

/// MDC may run at 2.5 MHz (IEEE 802.3, 22.2.2.11); a register access alone is slower than that.
constexpr Nanos kHalfClock = 200;

// Management frames: IEEE 802.3, 22.2.4.5.
constexpr std::uint32_t kPreamble = 0xffff'ffff;
constexpr std::uint32_t kStartAndRead = 0b0110;
constexpr std::uint32_t kStartAndWrite = 0b0101;
constexpr std::uint32_t kTurnAround = 0b10;

}  // namespace

void Mii::send(std::uint32_t bits, int count) noexcept {
    for (int i = count - 1; i >= 0; --i) {
        const std::uint32_t data = ((bits >> i) & 1U) != 0 ? csr9::kMDO : 0;
        bus_.write(Csr::kRomAndMii, data);
        bus_.wait(kHalfClock);
        bus_.write(Csr::kRomAndMii, data | csr9::kMDC);
        bus_.wait(kHalfClock);
    }
}

/// Passes a period in which no side drives the line.
void Mii::turn_around_and_idle() noexcept {
    bus_.write(Csr::kRomAndMii, csr9::kMII);
    bus_.wait(kHalfClock);
    bus_.write(Csr::kRomAndMii, csr9::kMII | csr9::kMDC);
    bus_.wait(kHalfClock);
}

std::uint16_t Mii::read(std::uint8_t phy, PhyRegister reg) noexcept {
    send(kPreamble, 32);
    send(kStartAndRead << 10 | std::uint32_t{phy} << 5 | static_cast<std::uint32_t>(reg), 14);
    turn_around_and_idle();
    std::uint16_t value = 0;
    // The PHY changes the line after a rising edge: it is read before the next one.
    for (int i = 0; i < 17; ++i) {
        bus_.write(Csr::kRomAndMii, csr9::kMII);
        bus_.wait(kHalfClock);
        const bool high = (bus_.read(Csr::kRomAndMii) & csr9::kMDI) != 0;
        bus_.write(Csr::kRomAndMii, csr9::kMII | csr9::kMDC);
        bus_.wait(kHalfClock);
        value = static_cast<std::uint16_t>((value << 1) | (high ? 1 : 0));
    }
    return value;
}

void Mii::write(std::uint8_t phy, PhyRegister reg, std::uint16_t value) noexcept {
    send(kPreamble, 32);
    send(kStartAndWrite << 28 | std::uint32_t{phy} << 23 | static_cast<std::uint32_t>(reg) << 18 |
             kTurnAround << 16 | value,
         32);
    turn_around_and_idle();
}

}  // namespace ulc::tulip
