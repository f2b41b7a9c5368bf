// SPDX-License-Identifier: BSD-3-Clause
// Commands that say which frames the chip receives, and how: configure, individual address,
// multicast. SDM chapter 6, "Action commands".
//
// The chip filters multicasts by 64 bits of a hash that it computes from the listed addresses.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "drivers/common/mac_address.h"
#include "drivers/common/ring_types.h"
#include "drivers/i8255x/tx_ring.h"

namespace ulc::i8255x {

using nic::MacAddress;
using nic::Reception;

/// Frames that the chip is to receive.
struct Filter {
    MacAddress own{};
    std::span<const MacAddress> multicasts;
    Reception reception;
};

/// Properties of the chip and its line that the configuration depends on.
struct Line {
    bool is_82558_or_later = false;
    bool full_duplex = false;
    bool loopback = false;
};

inline constexpr std::size_t kConfigurationOctets = 22;
using Configuration = std::array<std::uint8_t, kConfigurationOctets>;

/// Returns the bytes of the configure command. With more than kMulticastsMax multicasts the chip
/// receives all of them.
[[nodiscard]] Configuration configuration_of(const Filter& filter, const Line& line) noexcept;

/// Blocks that post_filter() needs.
inline constexpr std::uint32_t kFilterBlocks = 3;

/// Gives the three commands to the chip. Returns false, with nothing given, if the ring has no
/// place for them.
[[nodiscard]] bool post_filter(TxRing& ring, const Filter& filter, const Line& line) noexcept;

}  // namespace ulc::i8255x
