// SPDX-License-Identifier: BSD-3-Clause
// The work of an endpoint in a round, beyond a check of its submission ring.
#pragma once

#include <cstdint>

namespace ulc::endpoint {

/// Bits; Endpoint::mark() sets them.
enum class Work : std::uint8_t {
    kDeliver = 0x01,   ///< packets may be ready
    kSend = 0x02,      ///< the send queue may move
    kTransmit = 0x04,  ///< the member may have frames
    kSettle = 0x08,    ///< the member was touched: events, timer
    kControl = 0x10,   ///< reports to the client, groups and links that end, leaving
};

[[nodiscard]] constexpr Work operator|(Work a, Work b) noexcept {
    return static_cast<Work>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}

inline constexpr Work kAllWork =
    Work::kDeliver | Work::kSend | Work::kTransmit | Work::kSettle | Work::kControl;

}  // namespace ulc::endpoint
