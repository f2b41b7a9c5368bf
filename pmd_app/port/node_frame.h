// SPDX-License-Identifier: BSD-3-Clause
// NODE frames that links send and take without their engine: echo requests and replies
// (docs/protocol/NODES.md §8.7), and announcements and questions before the engine starts (§8.6,
// §8.8). Used by BondPort, MeshPort and main/.
#pragma once

#include <cstdint>
#include <span>

#include "port/port.h"
#include "port/segment.h"
#include "wire/job.h"
#include "wire/node_address.h"

namespace ulc::port {

/// Replies to echo requests that a port sends between two looks at its links.
inline constexpr std::uint32_t kEchoRepliesMax = 32;

/// Puts an echo request or reply into the segment.
void build_echo(Segment& segment, std::uint16_t ether_type, wire::NodeKind kind, const Mac& source,
                const Mac& destination, std::uint64_t token) noexcept;

/// Broadcasts an announcement of these addresses by one link, once. incarnation: not 0. number: of
/// the announcement. Without a free segment or space in the device nothing is sent.
void broadcast_links(const Port& port, std::uint16_t ether_type, std::uint32_t incarnation,
                     std::uint64_t number, std::span<const NodeAddress> addresses);

/// Asks the node at that address for its addresses, once, from the link's own (§8.9). token: not 0.
/// Without a free segment or space in the device nothing is sent.
void ask_for_links(const Port& port, std::uint16_t ether_type, const Mac& to, std::uint64_t token);

/// Reads a NODE frame of another node. False: the frame is none, or is malformed.
[[nodiscard]] bool parse_node_frame(const Segment& segment, std::uint16_t ether_type, Mac& source,
                                    wire::NodeView& out) noexcept;

}  // namespace ulc::port
