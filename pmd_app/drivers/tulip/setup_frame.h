// SPDX-License-Identifier: BSD-3-Clause
// The setup frame selects the destination addresses that the chip receives. HRM chapter 4, "Setup
// frame".
//
// 192 bytes, sent through the transmit ring with TDES1<SET>. Only the low 16 bits of each longword
// count. Perfect filtering (FT0 clear): 16 addresses of three longwords each. Hash filtering (FT0
// set): 512 bits in longwords 0-31 for multicasts, one perfect address in longwords 39-41.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/common/mac_address.h"

namespace ulc::tulip {

using nic::MacAddress;

inline constexpr std::size_t kSetupFrameOctets = 192;
inline constexpr std::size_t kPerfectAddresses = 16;
/// One of these is the station's own, and one is broadcast.
inline constexpr std::size_t kPerfectMulticasts = kPerfectAddresses - 2;
inline constexpr std::size_t kHashBits = 512;

enum class FilterKind : std::uint8_t {
    kPerfect,  ///< exactly the requested addresses
    kHash,     ///< these, and about one foreign multicast in 512 / number of addresses
};

/// Returns which of the 512 bits represents `address`: the low 9 bits of its Ethernet CRC (HRM,
/// "Imperfect filtering").
[[nodiscard]] std::uint32_t hash_bit(const MacAddress& address) noexcept;

/// Fills `frame` so that unicasts to `own`, broadcasts and `multicasts` are received. Up to
/// kPerfectMulticasts of them are filtered exactly, more by hash.
FilterKind build_setup_frame(const MacAddress& own, std::span<const MacAddress> multicasts,
                             std::span<std::byte, kSetupFrameOctets> frame) noexcept;

}  // namespace ulc::tulip
