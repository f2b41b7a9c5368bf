// SPDX-License-Identifier: BSD-3-Clause
// The driver's access to its chip: registers and time. It is an argument of everything that is not
// a ring, so that the same code runs on a card, on QEMU's model and on the register model of the
// tests.
#pragma once

#include "base/units.h"
#include "drivers/i8255x/registers.h"

namespace ulc::i8255x {

/// Registers of one chip. A read returns ones if nothing answers. A write makes earlier stores to
/// memory visible to the chip first.
class Bus {
public:
    virtual ~Bus() = default;
    [[nodiscard]] virtual std::uint32_t read32(Reg reg) noexcept = 0;
    [[nodiscard]] virtual std::uint16_t read16(Reg reg) noexcept = 0;
    virtual void write32(Reg reg, std::uint32_t value) noexcept = 0;
    virtual void write16(Reg reg, std::uint16_t value) noexcept = 0;
    virtual void write8(Reg reg, std::uint8_t value) noexcept = 0;
    /// Returns after at least `span` ns. The driver waits only by this.
    virtual void wait(Nanos span) noexcept = 0;
};

}  // namespace ulc::i8255x
