// SPDX-License-Identifier: BSD-3-Clause
// The parts of a frame that a bond of several links reads and writes (bond_port.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/units.h"
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

[[nodiscard]] inline bool is_node_frame(const Segment& segment, wire::NodeKind kind) noexcept {
    return type_of(segment) == kNodeType &&
           segment.length >= wire::kHeadOctets + sizeof(wire::NodeBody) &&
           static_cast<wire::NodeKind>(segment.frame[wire::kHeadOctets]) == kind;
}
/// Returns whether a frame asks a node by one address of it: the frame goes to that address, and
/// its source is the address of the link by which it goes (N-35, N-54).
[[nodiscard]] inline bool asks_about_links(const Segment& segment) noexcept {
    return is_node_frame(segment, wire::NodeKind::kLinksRequest);
}
[[nodiscard]] inline bool answers_about_links(const Segment& segment) noexcept {
    return is_node_frame(segment, wire::NodeKind::kLinksReply);
}
/// Returns whether its sender takes frames from the address that it asks (N-58).
[[nodiscard]] inline bool takes_frames(const Segment& question) noexcept {
    return reinterpret_cast<const wire::NodeBody*>(question.frame + wire::kHeadOctets)->ours != 0;
}
/// Returns whether a frame is such a question or the answer to one. type_at: of its ULC header.
[[nodiscard]] inline bool proves_links(const Segment& segment, std::size_t type_at) noexcept {
    const std::size_t kind_at = type_at + sizeof(wire::Header);
    if ((std::to_integer<unsigned>(segment.frame[type_at]) & 0xfU) != kNodeType) return false;
    if (segment.length <= kind_at) return false;
    const auto kind = static_cast<wire::NodeKind>(segment.frame[kind_at]);
    return kind == wire::NodeKind::kLinksRequest || kind == wire::NodeKind::kLinksReply;
}

/// Returns whether a frame of this node is a PING: those go to nodes of its jobs alone.
[[nodiscard]] inline bool is_ping(const Segment& segment) noexcept {
    return type_of(segment) == kNodeType &&
           static_cast<wire::NodeKind>(segment.frame[wire::kHeadOctets]) == wire::NodeKind::kPing;
}
/// Returns whether a frame of this node is an echo request or a reply: no other frame speaks for
/// the node and has the kind there.
[[nodiscard]] inline bool is_echo(const Segment& segment) noexcept {
    const auto kind = static_cast<wire::NodeKind>(segment.frame[wire::kHeadOctets]);
    return type_of(segment) == kNodeType &&
           (kind == wire::NodeKind::kEchoRequest || kind == wire::NodeKind::kEchoReply);
}

inline constexpr std::uint64_t kLineOctets = 24;  ///< preamble, FCS, gap

/// Returns the time by which a frame may fall behind others of its sender: that of `frames` frames
/// of `octets` by the slowest link. slowest: bits a second; UINT64_MAX: no link says its speed.
/// megabits: of the slowest link of the peers; 0 or kMegabitsUnknown: none.
[[nodiscard]] inline Nanos late_time(Nanos frames, std::uint64_t octets, std::uint64_t slowest,
                                     std::uint32_t megabits, Nanos unknown) noexcept {
    if (megabits != 0 && megabits != kMegabitsUnknown)
        slowest = std::min<std::uint64_t>(slowest, megabits * std::uint64_t{1'000'000});
    if (slowest == UINT64_MAX) return unknown;
    const std::uint64_t bits = (octets + kLineOctets) * 8;
    return frames * static_cast<Nanos>(bits * static_cast<std::uint64_t>(kSecond) / slowest);
}

/// Spreads addresses over links.
[[nodiscard]] inline std::size_t hash_of(const Mac& mac) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &mac, sizeof mac);
    return static_cast<std::size_t>((bits * 0x9e3779b97f4a7c15ULL) >> 32U);
}

}  // namespace ulc::port
