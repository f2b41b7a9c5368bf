// SPDX-License-Identifier: BSD-3-Clause
// Frames and addresses of the driver tests on QEMU's models.
#pragma once

#include <cstring>
#include <vector>

#include "drivers/common/mac_address.h"
#include "qtest.h"

namespace ulc::nic {

inline constexpr MacAddress kOwn{0x02, 0x21, 0x14, 0x30, 0x00, 0x01};
inline constexpr const char* kOwnText = "02:21:14:30:00:01";
inline constexpr MacAddress kPeer{0x02, 0x21, 0x14, 0x30, 0x00, 0x02};

using Frame = std::vector<std::byte>;

/// Returns a frame to `to` from kPeer, whose content depends on `seed`.
[[nodiscard]] inline Frame make_frame(const MacAddress& to, std::size_t octets, std::uint8_t seed) {
    Frame frame(octets);
    for (std::size_t i = 0; i < octets; ++i)
        frame[i] = static_cast<std::byte>(seed + i * 7);
    std::memcpy(frame.data(), to.data(), 6);
    std::memcpy(frame.data() + 6, kPeer.data(), 6);
    frame[12] = std::byte{0x88};
    frame[13] = std::byte{0xb5};
    return frame;
}

}  // namespace ulc::nic
