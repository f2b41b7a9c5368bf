// To which Ethernet address a group's frames go. A network interface compares few multicast addresses exactly (the DEC 21143: 14), and a
// process may be a member of many more groups (URTP §3.2.1). So a group has an address of its own while each of its nodes has room
// for one more, and else shares one whose listeners are, or become, a superset of its nodes.
//
//   own address   a hash of the group's nodes: groups on the same nodes share one at no cost
//   offers        of a node without room: the addresses that it listens to, each with what sharing it would cost:
//                   frames of the new group at listeners that are no members + frames of that address at members that did not listen
//                 as far as the node knows, which knows the groups of which it is a member
//   choice        of those that all nodes without room offer, the one that costs least; each is taken for as dear as the one says that
//                 says most. It depends on nothing but the set of offers, so whoever collects them comes to the same
//   broadcast     is offered by all, costs a frame at every node, and needs no room: the last resort
//
// Addresses stay for a group's life. One that comes later finds what is left; nobody is asked to move.
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

/// In frames a second, or whatever unit weights have. Three significant bits, 2³⁴ and more alike.
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

/// A group of this node, where it is.
struct PlacedGroup {
    AddressId address = kBroadcastAddress;
    std::span<const std::uint32_t> nodes;  ///< ascending, without the node itself
    std::uint64_t weight = 1;              ///< of its frames
};

/// What a node without room offers to a new group: broadcast, and the best that it listens to. members: as PlacedGroup::nodes. nodes:
/// that a broadcast reaches, without the node itself. The new group is taken to send what the others do on average.
[[nodiscard]] AddressOffers offers_of(std::span<const PlacedGroup> placed,
                                      std::span<const std::uint32_t> members, std::size_t nodes);

/// Collects what the nodes of a new group say, in any order.
class AddressChoice {
public:
    /// Of a node without room.
    void add(std::span<const AddressOffer> offers);

    [[nodiscard]] bool all_have_room() const noexcept { return !limited_; }
    /// own: the group's own address.
    [[nodiscard]] AddressId best(AddressId own) const noexcept;

private:
    bool limited_ = false;
    std::vector<AddressOffer>
        common_;  ///< offered by all without room; the greatest cost that was said
};

}  // namespace ulc
