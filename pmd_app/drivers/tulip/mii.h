// SPDX-License-Identifier: BSD-3-Clause
// The management interface of MII through the wires of the chip's CSR9 (HRM, "MII management").
#pragma once

#include <cstdint>

#include "drivers/common/phy.h"
#include "drivers/tulip/bus.h"

namespace ulc::tulip {

using nic::PhyRegister;

class Mii final : public nic::PhyBus {
public:
    explicit Mii(Bus& bus) noexcept : bus_(bus) {}

    /// About 150 register accesses each.
    [[nodiscard]] std::uint16_t read(std::uint8_t phy, PhyRegister reg) noexcept override;
    void write(std::uint8_t phy, PhyRegister reg, std::uint16_t value) noexcept override;

private:
    void send(std::uint32_t bits, int count) noexcept;
    void turn_around_and_idle() noexcept;

    Bus& bus_;
};

}  // namespace ulc::tulip
