// SPDX-License-Identifier: BSD-3-Clause
#include "base/address_plan.h"

#include <compare>
#include <iterator>

namespace ulc {
namespace {

using Nodes = std::vector<std::uint32_t>;

std::size_t without(std::span<const std::uint32_t> these, std::span<const std::uint32_t> those) {
    Nodes rest;
    std::ranges::set_difference(these, those, std::back_inserter(rest));
    return rest.size();
}

/// One address as far as the node knows it.
struct Known {
    AddressId address;
    Nodes listeners;
    std::uint64_t weight;
};

std::vector<Known> addresses_of(std::span<const PlacedGroup> placed) {
    std::vector<Known> all;
    for (const PlacedGroup& group : placed) {
        if (group.address == kBroadcastAddress) continue;
        auto at = std::ranges::find(all, group.address, &Known::address);
        if (at == all.end()) at = all.insert(at, {group.address, {}, 0});
        Nodes both;
        std::ranges::set_union(at->listeners, group.nodes, std::back_inserter(both));
        at->listeners = std::move(both);
        at->weight += group.weight;
    }
    return all;
}

struct Candidate {
    std::uint64_t cost;
    AddressId address;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads a defaulted <=>.
    auto operator<=>(const Candidate&) const noexcept = default;
};

}  // namespace

AddressOffers offers_of(std::span<const PlacedGroup> placed, std::span<const std::uint32_t> members,
                        std::size_t nodes) {
    std::uint64_t sum = 0;
    for (const PlacedGroup& group : placed)
        sum += group.weight;
    const std::uint64_t expected =
        placed.empty() ? 1 : std::max<std::uint64_t>(1, sum / placed.size());
    std::vector<Candidate> candidates;
    for (const Known& known : addresses_of(placed)) {
        const std::uint64_t cost = expected * without(known.listeners, members) +
                                   known.weight * without(members, known.listeners);
        candidates.push_back({cost, known.address});
    }
    std::ranges::sort(candidates);
    if (candidates.size() > kOffersMax - 1) candidates.resize(kOffersMax - 1);
    AddressOffers offers;
    for (const Candidate& candidate : candidates)
        (void)offers.push_back({candidate.address, cost_code(candidate.cost)});
    const std::size_t others = nodes - std::min(nodes, members.size());
    (void)offers.push_back({kBroadcastAddress, cost_code(expected * others)});
    return offers;
}

void AddressChoice::add(std::span<const AddressOffer> offers) {
    if (!limited_) {
        limited_ = true;
        common_.assign(offers.begin(), offers.end());
        return;
    }
    std::erase_if(common_, [&](AddressOffer& mine) {
        const auto other = std::ranges::find(offers, mine.address, &AddressOffer::address);
        if (other == offers.end()) return true;
        mine.cost = std::max(mine.cost, other->cost);
        return false;
    });
}

AddressId AddressChoice::best(AddressId own) const noexcept {
    if (!limited_) return own;
    // Among equals, prefers one that not every node of the wire hears.
    const auto dearer = [](const AddressOffer& offer) {
        const bool all = offer.address == kBroadcastAddress;
        return std::uint64_t{offer.cost} << 32 | std::uint64_t{all} << 31 | offer.address;
    };
    const auto at = std::ranges::min_element(common_, {}, dearer);
    return at == common_.end() ? kBroadcastAddress : at->address;
}

}  // namespace ulc
