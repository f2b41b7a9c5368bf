// SPDX-License-Identifier: BSD-3-Clause
// One address of a node that has several links, as LINKS frames announce it (docs/protocol/NODES.md
// §8.6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wire/ids.h"

namespace ulc {

/// NodeAddress::megabits of a link that is up and does not say its speed.
inline constexpr std::uint32_t kMegabitsUnknown = UINT32_MAX;

struct NodeAddress {
    Mac mac;
    /// A second, of the link; 0: the link is down; or kMegabitsUnknown.
    std::uint32_t megabits = 0;
    /// Number of the segment in a mesh, from 1: of the row for the first address, of the column for
    /// the second one. 0: the node is in no mesh.
    std::uint16_t segment = 0;

    friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

/// Returns the address as a number, for tables of addresses.
[[nodiscard]] inline std::uint64_t number_of(const Mac& mac) noexcept {
    std::uint64_t number = 0;
    std::memcpy(&number, mac.octets.data(), sizeof mac);
    return number;
}

/// Links of a node. The first one's address is the node's.
inline constexpr std::size_t kNodeLinksMax = 4;
/// Rows of a mesh, and columns.
inline constexpr std::uint16_t kMeshLinesMax = 1024;

}  // namespace ulc
