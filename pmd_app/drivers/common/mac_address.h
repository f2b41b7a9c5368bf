// SPDX-License-Identifier: BSD-3-Clause
// The address of a station or a group, in wire order.
#pragma once

#include <array>
#include <cstdint>

namespace ulc::nic {

using MacAddress = std::array<std::uint8_t, 6>;

inline constexpr MacAddress kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/// Returns true if a station may have `address`: no group's, not all zeros.
[[nodiscard]] constexpr bool is_station(const MacAddress& address) noexcept {
    return (address[0] & 1) == 0 && address != MacAddress{};
}

}  // namespace ulc::nic
