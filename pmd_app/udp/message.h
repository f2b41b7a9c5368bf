// SPDX-License-Identifier: BSD-3-Clause
// Datagrams to one address, as one call sends them (udp_socket.h).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "udp/address.h"

namespace ulc::udp {

inline constexpr std::size_t kMessagesMax = 256;  ///< most of one call
inline constexpr std::size_t kDatagramsMax = 64;  ///< most of one message: UDP_MAX_SEGMENTS
inline constexpr std::size_t kMessageOctetsMax = 65'000;

/// Pieces of memory, in order.
struct Message {
    const SocketAddress* to = nullptr;
    iovec* pieces = nullptr;
    std::size_t piece_count = 0;
    std::uint16_t datagram_octets = 0;  ///< length of each but the last; 0: it is one datagram
};

}  // namespace ulc::udp
