// SPDX-License-Identifier: BSD-3-Clause
// A PHY on MII: IEEE 802.3 clause 22. A chip gives the access to its registers (PhyBus).
#pragma once

#include <cstdint>

namespace ulc::nic {

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

/// The management interface of MII, as a chip gives it.
class PhyBus {
public:
    virtual ~PhyBus() = default;
    /// Returns all ones if no PHY answers.
    [[nodiscard]] virtual std::uint16_t read(std::uint8_t phy, PhyRegister reg) noexcept = 0;
    virtual void write(std::uint8_t phy, PhyRegister reg, std::uint16_t value) noexcept = 0;
};

class Phy {
public:
    explicit Phy(PhyBus& bus) noexcept : bus_(bus) {}

    /// Tries the 32 addresses; returns false if no PHY answers.
    [[nodiscard]] bool find() noexcept;
    [[nodiscard]] std::uint8_t address() const noexcept { return address_; }

    /// Starts negotiation, or forces `media`. Does not wait for the link.
    void set_media(Media media) noexcept;

    /// Returns the PHY's state; down while it negotiates. Half duplex if the partner does not
    /// negotiate.
    [[nodiscard]] Link link() noexcept;

private:
    [[nodiscard]] std::uint16_t read(PhyRegister reg) noexcept { return bus_.read(address_, reg); }
    void write(PhyRegister reg, std::uint16_t value) noexcept { bus_.write(address_, reg, value); }

    PhyBus& bus_;
    std::uint8_t address_ = 0;
};

}  // namespace ulc::nic
