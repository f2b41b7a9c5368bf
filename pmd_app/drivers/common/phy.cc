// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/common/phy.h"

#include <array>
#include <utility>

namespace ulc::nic {
namespace {

constexpr std::uint8_t kPhys = 32;
/// The line is pulled up: this is read when no PHY drives it.
constexpr std::uint16_t kNobody = 0xffff;

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

bool Phy::find() noexcept {
    // Address 0 last: some PHYs answer to it whatever their own address is.
    for (std::uint8_t i = 1; i <= kPhys; ++i) {
        const auto candidate = static_cast<std::uint8_t>(i % kPhys);
        const std::uint16_t state = bus_.read(candidate, PhyRegister::kStatus);
        if (state == 0 || state == kNobody) continue;
        address_ = candidate;
        return true;
    }
    return false;
}

void Phy::set_media(Media media) noexcept {
    switch (media) {
        case Media::kNegotiate:
            write(PhyRegister::kAdvertisement, kAll | kSelectorEthernet);
            write(PhyRegister::kControl, control::kNegotiate | control::kRestart);
            return;
        case Media::k10Half:
            return write(PhyRegister::kControl, 0);
        case Media::k10Full:
            return write(PhyRegister::kControl, control::kFull);
        case Media::k100Half:
            return write(PhyRegister::kControl, control::k100);
        case Media::k100Full:
            return write(PhyRegister::kControl, control::k100 | control::kFull);
    }
}

Link Phy::link() noexcept {
    // Link status latches low: the first read returns the past state (IEEE 802.3, 22.2.4.2.13).
    (void)read(PhyRegister::kStatus);
    const std::uint16_t state = read(PhyRegister::kStatus);
    if (state == kNobody || (state & status::kLinkUp) == 0) return {};
    const std::uint16_t asked = read(PhyRegister::kControl);
    if ((asked & control::kNegotiate) == 0)
        return {.up = true,
                .full_duplex = (asked & control::kFull) != 0,
                .mbit = static_cast<std::uint16_t>((asked & control::k100) != 0 ? 100 : 10)};
    if ((state & status::kNegotiated) == 0) return {};
    const std::uint16_t both =
        read(PhyRegister::kAdvertisement) & read(PhyRegister::kPartnerAbility);
    for (const auto& [ability, link] : kPriority)
        if ((both & ability) != 0) return link;
    return {};
}

}  // namespace ulc::nic
