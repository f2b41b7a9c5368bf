// SPDX-License-Identifier: BSD-3-Clause
// Controls the PHY through the management interface of MII: IEEE 802.3 clause 22, by the chip's
// CSR9 (HRM, "MII management").
#pragma once

#include <cstdint>

#include "drivers/tulip/bus.h"

namespace ulc::tulip {

/// Registers of a PHY: IEEE 802.3 table 22-6.
enum class PhyRegister : std::uint8_t {
    kControl = 0,
    kStatus = 1,
    kAdvertisement = 4,
    kPartnerAbility = 5,
};

struct Link {
    bool up = false;
    bool full_duplex = false;
    std::uint16_t mbit = 0;  ///< 10 or 100
    bool operator==(const Link&) const = default;
};

/// The media that the port requests. Anything except kNegotiate is forced on the PHY.
enum class Media : std::uint8_t { kNegotiate, k10Half, k10Full, k100Half, k100Full };

class Mii {
public:
    explicit Mii(Bus& bus) noexcept : bus_(bus) {}

    /// Tries the 32 addresses; returns false if no PHY answers. About 5,000 register accesses.
    [[nodiscard]] bool find_phy() noexcept;
    [[nodiscard]] std::uint8_t phy() const noexcept { return phy_; }

    /// Starts negotiation, or forces `media`. Does not wait for the link.
    void set_media(Media media) noexcept;

    /// Returns the PHY's state; down while it negotiates. Half duplex if the partner does not
    /// negotiate.
    [[nodiscard]] Link link() noexcept;

    [[nodiscard]] std::uint16_t read(std::uint8_t phy, PhyRegister reg) noexcept;
    void write(std::uint8_t phy, PhyRegister reg, std::uint16_t value) noexcept;

private:
    void send(std::uint32_t bits, int count) noexcept;
    void turn_around_and_idle() noexcept;

    Bus& bus_;
    std::uint8_t phy_ = 0;
};

}  // namespace ulc::tulip
