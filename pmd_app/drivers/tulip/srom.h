// SPDX-License-Identifier: BSD-3-Clause
// The serial ROM of a board: its address and how its PHY is switched on.
//
// A MicroWire EEPROM of 64 or 256 words behind CSR9 (HRM, "Serial ROM interface"); contents by
// "Digital Semiconductor 21X4 Serial ROM Format", version 3 and later. All of it is foreign input:
// offsets and lengths are bounded, and parts that do not fit are left out.
#pragma once

#include <array>
#include <cstdint>

#include "base/bounded.h"
#include "drivers/common/fault.h"
#include "drivers/common/mac_address.h"
#include "drivers/tulip/bus.h"

namespace ulc::tulip {

using nic::Fault;
using nic::MacAddress;

inline constexpr std::size_t kRomOctets = 128;
using RomImage = std::array<std::uint8_t, kRomOctets>;

/// Writes to the general-purpose port that the ROM's MII media block requires.
struct PortSequence {
    FixedVector<std::uint16_t, 16> reset;   ///< first: pulses the PHY's reset
    FixedVector<std::uint16_t, 16> select;  ///< then: switches the PHY on
};

enum class Model : std::uint8_t { k21140, k21143 };

/// Reads the whole ROM. Errors: kRomMissing (no answer), kGone. About 1,800 register accesses.
Fault read_rom(Bus& bus, RomImage& image) noexcept;

/// Parses the address. Errors: kRomChecksum, kRomAddress.
Fault parse_address(const RomImage& image, MacAddress& address) noexcept;

/// Parses the sequences; returns empty ones if there is no MII block, or one that does not fit.
[[nodiscard]] PortSequence parse_port_sequence(const RomImage& image, Model model) noexcept;

}  // namespace ulc::tulip
