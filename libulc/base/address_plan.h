// SPDX-License-Identifier: BSD-3-Clause
// Chooses the Ethernet address for a group's frames. A network interface compares few multicast
// addresses exactly (the DEC 21143: 14), and a process may be a member of many more groups (URTP
// §3.2.1). So a group has a separate address while each of its nodes has space for one more.
// Otherwise it shares one whose listeners are, or become, a superset of its nodes.
//
//   own address   a hash of the group's nodes: groups on the same nodes share one at no cost
//   offers        of a node without space: the addresses to which it listens, each with the cost of
//                 sharing it:
//                   frames of the new group at listeners that are no members
//                   + frames of that address at members that did not listen
//                 as far as the node knows, which knows the groups of which it is a member
//   choice        of those that all nodes without space offer, the cheapest one; the greatest cost
//                 that any node reports counts. It depends on nothing but the set of offers, so
//                 every process that collects them makes the same choice
//   broadcast     is offered by all, costs a frame at every node, and needs no space: the last
//                 resort
//
// Addresses stay for a group's life. A later group uses the remaining ones; no group has to move.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bounded.h"

namespace ulc {

/// 24 bits; 0: broadcast.
using AddressId = std::uint32_t;
inline constexpr AddressId kBroadcastAddress = 0;
inline constexpr AddressId kAddressIdMax = (1U << 24) - 1;

/// Returns the code of a cost in frames a second, or any unit of the weights. Three significant
/// bits, 2³⁴ and more alike.
[[nodiscard]] constexpr std::uint8_t cost_code(std::uint64_t cost) noexcept {
    if (cost < 8) return static_cast<std::uint8_t>(cost);
    const int shift = std::bit_width(cost) - 4;
    const std::uint64_t code = 8 + 8 * static_cast<std::uint64_t>(shift) + (cost >> shift & 7U);
    return static_cast<std::uint8_t>(std::min<std::uint64_t>(code, UINT8_MAX));
}

struct AddressOffer {
    AddressId address = kBroadcastAddress;
    std::uint8_t cost = 0;  ///< cost_code()

    [[nodiscard]] constexpr std::uint32_t packed() const noexcept {
        return std::uint32_t{cost} << 24 | address;
    }
    [[nodiscard]] static constexpr AddressOffer of(std::uint32_t packed) noexcept {
        return {packed & kAddressIdMax, static_cast<std::uint8_t>(packed >> 24)};
    }
};

inline constexpr std::size_t kOffersMax = 9;
using AddressOffers = FixedVector<AddressOffer, kOffersMax>;

/// A group of this node, with its address.
struct PlacedGroup {
    AddressId address = kBroadcastAddress;
    std::span<const std::uint32_t> nodes;  ///< ascending, without the node itself
    std::uint64_t weight = 1;              ///< weight of its frames
};

/// Returns the offers of a node without space to a new group: broadcast, and the best addresses to
/// which it listens. `members`: as PlacedGroup::nodes. `nodes`: those that a broadcast reaches,
/// without the node itself. The new group is assumed to send what the others do on average.
[[nodiscard]] AddressOffers offers_of(std::span<const PlacedGroup> placed,
                                      std::span<const std::uint32_t> members, std::size_t nodes);

/// Collects the offers of the nodes of a new group, in any order.
class AddressChoice {
public:
    /// Adds the offers of a node without space.
    void add(std::span<const AddressOffer> offers);

    [[nodiscard]] bool all_have_room() const noexcept { return !limited_; }
    /// `own`: the group's own address.
    [[nodiscard]] AddressId best(AddressId own) const noexcept;

private:
    bool limited_ = false;
    std::vector<AddressOffer>
        common_;  ///< offered by all without space; with the greatest cost reported
};

}  // namespace ulc
