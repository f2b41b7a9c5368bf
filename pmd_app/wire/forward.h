// SPDX-License-Identifier: BSD-3-Clause
// FORWARD: stands before a frame that one node of a mesh passes to another (docs/protocol/NODES.md
// §8.8). Its layout never changes (version 0). Used by port/mesh_port.h; no FORWARD frame reaches
// an engine.
//
//  Ethernet (14)  | FORWARD (16)                                   | ULC header and all behind it
//  dst src type   | ver:4 type:4 | hops | origin | destination | length |
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/header.h"

namespace ulc::wire {

/// Type of the frame, where other frames have FrameType.
inline constexpr std::uint8_t kForwardType = 13;

struct ForwardHeader {
    std::uint8_t version_type;  ///< kForwardType; version 0
    std::uint8_t hops;          ///< further segments: 1 or 0
    Mac origin;                 ///< first address of the node that sends the frame
    Mac destination;            ///< first address of a node, of a group, or of all
    Be16 length;                ///< octets of the inner frame from its ULC header on
};
static_assert(sizeof(ForwardHeader) == 16 && alignof(ForwardHeader) == 1);

/// Octets before the inner frame's ULC header.
inline constexpr std::size_t kForwardOctets = sizeof(EthernetHeader) + sizeof(ForwardHeader);

/// A FORWARD frame that passed every check of N-43.
struct ForwardView {
    Mac receiver;  ///< on this segment
    Mac sender;    ///< on this segment
    std::uint8_t hops = 0;
    Mac origin;
    Mac destination;
    std::uint16_t length = 0;
};

/// Returns whether a frame of the wire says that it is FORWARD. Reads nothing outside the frame.
[[nodiscard]] bool is_forward(const std::byte* frame, std::size_t octets) noexcept;
/// Returns whether the frame is a whole FORWARD frame. Reads nothing outside it.
[[nodiscard]] bool parse_forward(const std::byte* frame, std::size_t octets,
                                 std::uint16_t ether_type, ForwardView& out) noexcept;

/// Writes a FORWARD frame around `inner`, a frame of `octets`, to `frame`, which has space for 16
/// octets more. The two do not overlap. Returns its octets.
[[nodiscard]] std::size_t build_forward(std::byte* frame, const ForwardView& head,
                                        std::uint16_t ether_type, const std::byte* inner,
                                        std::size_t octets) noexcept;
/// Takes FORWARD out of a frame that parse_forward() took: the inner frame stands there from
/// `origin` to `destination`. Returns its octets.
[[nodiscard]] std::size_t unwrap_forward(std::byte* frame, const ForwardView& view) noexcept;

}  // namespace ulc::wire
