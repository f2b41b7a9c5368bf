// SPDX-License-Identifier: BSD-3-Clause
// The EEPROM of a board: 64 or 256 words of 16 bits, of which the driver uses the address and the
// checksum (SDM chapter 5, "EEPROM interface").
#pragma once

#include "base/bounded.h"
#include "drivers/common/fault.h"
#include "drivers/common/mac_address.h"
#include "drivers/i8255x/bus.h"

namespace ulc::i8255x {

using nic::Fault;
using nic::MacAddress;

inline constexpr std::size_t kEepromWordsMax = 256;
using EepromImage = FixedVector<std::uint16_t, kEepromWordsMax>;

/// Reads the whole EEPROM. Errors: kRomMissing (no answer), kGone. Up to 26,000 register accesses.
Fault read_eeprom(Bus& bus, EepromImage& image) noexcept;

/// Parses the address in words 0 to 2. All words sum to 0xbaba. Errors: kRomChecksum, kRomAddress.
Fault parse_address(const EepromImage& image, MacAddress& address) noexcept;

}  // namespace ulc::i8255x
