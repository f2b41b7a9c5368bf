// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/tulip/mii.h"

#include <array>
#include <utility>

namespace ulc::tulip {
namespace {

/// MDC may run at 2.5 MHz (IEEE 802.3, 22.2.2.11); a register access alone is slower than that.
constexpr Nanos kHalfClock = 200;
constexpr std::uint8_t kPhys = 32;
/// The line is pulled up: this is read when no PHY drives it.
constexpr std::uint16_t kNobody = 0xffff;

// Management frames: IEEE 802.3, 22.2.4.5.
constexpr std::uint32_t kPreamble = 0xffff'ffff;
constexpr std::uint32_t kStartAndRead = 0b0110;
constexpr std::uint32_t kStartAndWrite = 0b0101;
constexpr std::uint32_t kTurnAround = 0b10;

namespace control {
constexpr std::uint16_t k100 = 1U << 13;
constexpr std::uint16_t kNegotiate = 1U << 12;
constexpr std::uint16_t kRestart = 1U << 9;
constexpr std::uint16_t kFull = 1U << 8;
}  // namespace control

namespace status {
constexpr std::uint16_t kNegotiated = 1U << 5;
constexpr std::uint16_t kLinkUp = 1U << 2;
}  // namespace status

// Abilities of both sides: IEEE 802.3, 28.2.1.2 and annex 28B.
constexpr std::uint16_t kSelectorEthernet = 1;
constexpr std::uint16_t k10Half = 1U << 5;
constexpr std::uint16_t k10Full = 1U << 6;
constexpr std::uint16_t k100Half = 1U << 7;
constexpr std::uint16_t k100Full = 1U << 8;
constexpr std::uint16_t kAll = k10Half | k10Full | k100Half | k100Full;

/// Annex 28B.3: the first of these that both have.
constexpr std::array<std::pair<std::uint16_t, Link>, 4> kPriority{{
    {k100Full, {.up = true, .full_duplex = true, .mbit = 100}},
    {k100Half, {.up = true, .full_duplex = false, .mbit = 100}},
    {k10Full, {.up = true, .full_duplex = true, .mbit = 10}},
    {k10Half, {.up = true, .full_duplex = false, .mbit = 10}},
}};

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

bool Mii::find_phy() noexcept {
    // Address 0 last: some PHYs answer to it whatever their own address is.
    for (std::uint8_t i = 1; i <= kPhys; ++i) {
        const auto candidate = static_cast<std::uint8_t>(i % kPhys);
        const std::uint16_t state = read(candidate, PhyRegister::kStatus);
        if (state == 0 || state == kNobody) continue;
        phy_ = candidate;
        return true;
    }
    return false;
}

void Mii::set_media(Media media) noexcept {
    switch (media) {
        case Media::kNegotiate:
            write(phy_, PhyRegister::kAdvertisement, kAll | kSelectorEthernet);
            write(phy_, PhyRegister::kControl, control::kNegotiate | control::kRestart);
            return;
        case Media::k10Half:
            return write(phy_, PhyRegister::kControl, 0);
        case Media::k10Full:
            return write(phy_, PhyRegister::kControl, control::kFull);
        case Media::k100Half:
            return write(phy_, PhyRegister::kControl, control::k100);
        case Media::k100Full:
            return write(phy_, PhyRegister::kControl, control::k100 | control::kFull);
    }
}

Link Mii::link() noexcept {
    // Link status latches low: the first read returns the past state (IEEE 802.3, 22.2.4.2.13).
    (void)read(phy_, PhyRegister::kStatus);
    const std::uint16_t state = read(phy_, PhyRegister::kStatus);
    if (state == kNobody || (state & status::kLinkUp) == 0) return {};
    const std::uint16_t asked = read(phy_, PhyRegister::kControl);
    if ((asked & control::kNegotiate) == 0)
        return {.up = true,
                .full_duplex = (asked & control::kFull) != 0,
                .mbit = static_cast<std::uint16_t>((asked & control::k100) != 0 ? 100 : 10)};
    if ((state & status::kNegotiated) == 0) return {};
    const std::uint16_t both =
        read(phy_, PhyRegister::kAdvertisement) & read(phy_, PhyRegister::kPartnerAbility);
    for (const auto& [ability, link] : kPriority)
        if ((both & ability) != 0) return link;
    return {};
}

}  // namespace ulc::tulip
