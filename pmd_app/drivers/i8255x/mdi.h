// SPDX-License-Identifier: BSD-3-Clause
// The management interface of MII through the chip's MDI control register (SDM chapter 6, "MDI
// control register").
#pragma once

#include "drivers/common/phy.h"
#include "drivers/i8255x/bus.h"

namespace ulc::i8255x {

class Mdi final : public nic::PhyBus {
public:
    explicit Mdi(Bus& bus) noexcept : bus_(bus) {}

    /// Waits for the chip, up to 1 ms (an access takes 26 us); returns all ones if it does not
    /// finish.
    [[nodiscard]] std::uint16_t read(std::uint8_t phy, nic::PhyRegister reg) noexcept override;
    void write(std::uint8_t phy, nic::PhyRegister reg, std::uint16_t value) noexcept override;

private:
    [[nodiscard]] std::uint32_t access(std::uint32_t operation, std::uint8_t phy,
                                       nic::PhyRegister reg, std::uint16_t value) noexcept;

    Bus& bus_;
};

}  // namespace ulc::i8255x
