// SPDX-License-Identifier: BSD-3-Clause
// Byte order of descriptors: the chips read and write little-endian words.
#pragma once

#include <bit>
#include <cstdint>

namespace ulc::nic {

/// Converts between the host's order and the chip's; its own inverse.
[[nodiscard]] constexpr std::uint32_t little_endian(std::uint32_t v) noexcept {
    if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap32(v);
    return v;
}
[[nodiscard]] constexpr std::uint16_t little_endian(std::uint16_t v) noexcept {
    if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap16(v);
    return v;
}

}  // namespace ulc::nic
