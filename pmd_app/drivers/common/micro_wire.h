// SPDX-License-Identifier: BSD-3-Clause
// Reads a MicroWire EEPROM of 64 to 1,024 words of 16 bits through the three wires that a chip's
// register gives. Used at the start only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/units.h"

namespace ulc::nic {

/// The wires of one EEPROM, as the register of a chip drives them.
class RomWires {
public:
    virtual ~RomWires() = default;
    /// Sets chip select, clock and data in.
    virtual void drive(bool select, bool clock, bool data) noexcept = 0;
    /// Returns the level of data out.
    [[nodiscard]] virtual bool out() noexcept = 0;
    virtual void wait(Nanos span) noexcept = 0;
};

/// Counts the address bits: the EEPROM pulls its output low with the last bit of an address.
/// Returns nothing if no EEPROM answers.
[[nodiscard]] std::optional<int> count_address_bits(RomWires& wires) noexcept;

/// Reads words 0 to words.size() - 1 of an EEPROM of `address_bits`.
void read_words(RomWires& wires, int address_bits, std::span<std::uint16_t> words) noexcept;

}  // namespace ulc::nic
