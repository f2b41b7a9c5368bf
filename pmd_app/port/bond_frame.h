// SPDX-License-Identifier: BSD-3-Clause
// The parts of a frame that a bond of several links reads and writes (bond_port.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "port/segment.h"
#include "wire/ids.h"
#include "wire/job.h"

namespace ulc::port {

/// Place of a frame's type: low bits of the octet behind the Ethernet header.
inline constexpr std::size_t kTypeAt = 14;

[[nodiscard]] inline bool is_group(const Mac& mac) noexcept { return (mac.octets[0] & 1U) != 0; }

[[nodiscard]] inline Mac destination_of(const Segment& segment) noexcept {
    Mac mac;
    std::memcpy(&mac, segment.frame, sizeof mac);
    return mac;
}
[[nodiscard]] inline Mac source_of(const Segment& segment) noexcept {
    Mac mac;
    std::memcpy(&mac, segment.frame + sizeof mac, sizeof mac);
    return mac;
}
inline void set_destination(Segment& segment, const Mac& mac) noexcept {
    std::memcpy(segment.frame, &mac, sizeof mac);
}
inline void set_source(Segment& segment, const Mac& mac) noexcept {
    std::memcpy(segment.frame + sizeof mac, &mac, sizeof mac);
}

[[nodiscard]] inline unsigned type_of(const Segment& segment) noexcept {
    constexpr unsigned kTypeMask = 0xf;
    return std::to_integer<unsigned>(segment.frame[kTypeAt]) & kTypeMask;
}
inline constexpr unsigned kJobType = 6;
inline constexpr unsigned kNodeType = 7;
inline constexpr unsigned kLinkType = 12;

/// Returns whether a frame speaks for its node rather than for a stream. It keeps the node's first
/// address, under which its receiver knows the node even without the others (N-31).
[[nodiscard]] inline bool speaks_for_node(const Segment& segment) noexcept {
    const unsigned type = type_of(segment);
    return type == kJobType || type == kNodeType || type == kLinkType;
}
/// Returns whether a frame announces the addresses of its node: no other NODE frame is for all.
[[nodiscard]] inline bool announces_links(const Segment& segment) noexcept {
    return type_of(segment) == kNodeType && is_group(destination_of(segment));
}

/// Returns whether a frame of this node is an echo request or a reply: no other frame speaks for
/// the node and has the kind there.
[[nodiscard]] inline bool is_echo(const Segment& segment) noexcept {
    const auto kind = static_cast<wire::NodeKind>(segment.frame[wire::kHeadOctets]);
    return type_of(segment) == kNodeType &&
           (kind == wire::NodeKind::kEchoRequest || kind == wire::NodeKind::kEchoReply);
}

[[nodiscard]] inline std::size_t hash_of(const Mac& mac) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &mac, sizeof mac);
    return static_cast<std::size_t>((bits * 0x9e3779b97f4a7c15ULL) >> 32U);
}

}  // namespace ulc::port
