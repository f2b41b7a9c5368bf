// SPDX-License-Identifier: BSD-3-Clause
// Attributes of a node in JOIN, ROSTER and LINK frames (docs/protocol/JOBS.md §7.3). They are items
// of type (1), octets of the value (1) and value, by ascending type. Types that are not known here
// are skipped, so later ones need no other layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bounded.h"
#include "wire/header.h"

namespace ulc::wire {

/// Octets of all attributes of one node.
inline constexpr std::size_t kAttributeOctetsMax = 255;
/// The same of one job, in RosterBody.
inline constexpr std::size_t kJobAttributeOctetsMax = 128;

enum class AttributeType : std::uint8_t {
    kMtu = 1,  ///< Be16: octets after the Ethernet header of the longest frame that the node takes
    kLinks = 2,  ///< u8: number of the node's links, 1 … kNodeLinksMax
    kPatience =
        3,  ///< Be32: ms for which the job's ranks wait for a silent node, 1 … kPatienceMsMax
};

/// The longest patience that a node may ask of others.
inline constexpr std::uint32_t kPatienceMsMax = 600'000;

struct NodeAttributes {
    std::uint16_t mtu = kMtuMin;  ///< kMtuMin as well if there is no such attribute
    std::uint8_t links = 1;
    std::uint32_t patience_ms = 0;  ///< 0: there is no such attribute
};

using AttributeOctets = FixedVector<std::byte, kAttributeOctetsMax>;

/// Reads attributes. False: malformed (an item beyond the end, a type that does not ascend, or a
/// value out of its range).
[[nodiscard]] bool parse_attributes(std::span<const std::byte> octets,
                                    NodeAttributes& out) noexcept;
/// Returns whether the octets are items by ascending type, whatever they mean.
[[nodiscard]] bool are_items(std::span<const std::byte> octets) noexcept;
[[nodiscard]] AttributeOctets octets_of(const NodeAttributes& attributes) noexcept;
[[nodiscard]] inline std::span<const std::byte> span_of(const AttributeOctets& octets) noexcept {
    return {octets.begin(), octets.size()};
}

}  // namespace ulc::wire
