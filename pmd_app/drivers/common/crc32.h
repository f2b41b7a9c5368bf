// SPDX-License-Identifier: BSD-3-Clause
// The CRC-32 of IEEE 802.3, clause 3.2.9, bit by bit: for serial ROMs and address filters only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ulc::nic {

[[nodiscard]] constexpr std::uint32_t crc32(std::span<const std::byte> octets) noexcept {
    std::uint32_t crc = ~0U;
    for (const std::byte octet : octets) {
        crc ^= static_cast<std::uint32_t>(octet);
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb8'8320U : 0U);
    }
    return ~crc;
}

}  // namespace ulc::nic
