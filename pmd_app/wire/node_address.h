// SPDX-License-Identifier: BSD-3-Clause
// One address of a node that has several links, as LINKS frames announce it (docs/protocol/NODES.md
// §8.6).
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/ids.h"

namespace ulc {

struct NodeAddress {
    Mac mac;
    std::uint32_t megabits = 0;  ///< a second, of the link; 0: the link is down

    friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

/// Links of a node. The first one's address is the node's.
inline constexpr std::size_t kNodeLinksMax = 4;

}  // namespace ulc
