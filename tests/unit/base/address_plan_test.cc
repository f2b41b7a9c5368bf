// SPDX-License-Identifier: BSD-3-Clause
// Tests which multicast address a group gets, and how far that is from the best choice with
// knowledge of all groups in advance.
#include "base/address_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

namespace ulc {
namespace {

using Nodes = std::vector<std::uint32_t>;

// G-17
TEST(AddressPlan, costs_are_told_in_their_order_with_three_digits) {
    std::uint64_t last = 0;
    for (std::uint64_t cost = 0; cost < 1U << 20; cost += 1 + cost / 64) {
        EXPECT_LE(cost_code(last), cost_code(cost));
        if (cost > 8 && cost >= last + last / 8 + 1) {
            EXPECT_LT(cost_code(last), cost_code(cost)) << last << ' ' << cost;
            last = cost;
        }
    }
    EXPECT_EQ(cost_code(7), 7);
    EXPECT_EQ(cost_code(8), 8);
    EXPECT_EQ(cost_code(UINT64_MAX), UINT8_MAX);
}

// G-16
TEST(AddressPlan, an_offer_survives_its_word) {
    const AddressOffer offer{kAddressIdMax, 200};
    const AddressOffer again = AddressOffer::of(offer.packed());
    EXPECT_EQ(again.address, offer.address);
    EXPECT_EQ(again.cost, offer.cost);
}

TEST(AddressPlan, offers_what_costs_least_first_and_broadcast_last) {
    const Nodes pair{1, 2};
    const Nodes three{1, 2, 3};
    const Nodes others{4, 5};
    const PlacedGroup placed[] = {{7, three, 10}, {8, others, 1}, {9, pair, 5}, {8, pair, 1}};
    const AddressOffers offers = offers_of(placed, pair, 9);
    ASSERT_EQ(offers.size(), 4U);
    // 17 frames of four groups: 4 are expected of the new one.
    EXPECT_EQ(offers[0].address, 9U) << "the same nodes: nothing";
    EXPECT_EQ(offers[0].cost, 0);
    EXPECT_EQ(offers[1].address, 7U) << "4 frames at one node that is no member";
    EXPECT_EQ(offers[1].cost, 4);
    EXPECT_EQ(offers[2].address, 8U) << "4 frames at two";
    EXPECT_EQ(offers[2].cost, cost_code(8));
    EXPECT_EQ(offers[3].address, kBroadcastAddress);
    EXPECT_EQ(offers[3].cost, cost_code(4U * 7));
    const Nodes stranger{6};
    EXPECT_EQ(offers_of(placed, stranger, 9)[0].cost, cost_code(2 * 4 + 5))
        << "address 9: two that do not want its 4 frames, and 5 that it does not want";
}

// G-16
TEST(AddressPlan, more_addresses_than_fit_leave_the_best) {
    std::vector<Nodes> nodes;
    std::vector<PlacedGroup> placed;
    for (std::uint32_t i = 0; i < 20; ++i) {
        nodes.emplace_back(i + 1);
        for (std::uint32_t n = 0; n <= i; ++n)
            nodes.back()[n] = n;
    }
    for (std::uint32_t i = 0; i < 20; ++i)
        placed.push_back({100 + i, nodes[i], 1});
    const AddressOffers offers = offers_of(placed, nodes[0], 20);
    ASSERT_EQ(offers.size(), kOffersMax);
    EXPECT_EQ(offers[0].address, 100U);
    EXPECT_EQ(offers[kOffersMax - 2].address, 100 + kOffersMax - 2);
    EXPECT_EQ(offers[kOffersMax - 1].address, kBroadcastAddress);
}

// G-18
TEST(AddressPlan, the_choice_depends_on_no_order_and_takes_the_dearest_word) {
    std::vector<std::vector<AddressOffer>> said{
        {{5, 1}, {6, 3}, {0, 9}}, {{6, 4}, {5, 8}, {0, 9}}, {{0, 9}, {4, 0}, {6, 2}, {5, 1}}};
    std::ranges::sort(said, {}, [](const auto& offers) { return offers.front().address; });
    do {
        AddressChoice choice;
        EXPECT_EQ(choice.best(77), 77U) << "all have space";
        for (const auto& offers : said)
            choice.add(offers);
        EXPECT_EQ(choice.best(77), 6U) << "4, where 5 costs 8, and 4 is not everybody's";
    } while (std::ranges::next_permutation(said, {}, [](const auto& offers) {
                 return offers.front().address;
             }).found);
    AddressChoice none;
    none.add(said[0]);
    none.add(std::vector<AddressOffer>{{99, 0}});
    EXPECT_EQ(none.best(77), kBroadcastAddress) << "nothing in common";
    AddressChoice equal;
    equal.add(std::vector<AddressOffer>{{0, 5}, {9, 5}});
    EXPECT_EQ(equal.best(77), 9U) << "spares the nodes outside the job";
}

// ---------------------------------------------------------------- against the best plan

constexpr std::uint32_t kNodes = 5;

/// Returns the number of frames that reach nodes which do not want them when each group sends one.
unsigned unwanted(const std::vector<unsigned>& groups, const std::vector<unsigned>& address) {
    std::map<unsigned, unsigned> listeners;  // sets as bits
    for (std::size_t g = 0; g < groups.size(); ++g)
        listeners[address[g]] |= groups[g];
    listeners[0] = (1U << kNodes) - 1;
    unsigned frames = 0;
    for (std::size_t g = 0; g < groups.size(); ++g)
        frames += static_cast<unsigned>(std::popcount(listeners[address[g]] & ~groups[g]));
    return frames;
}

bool fits(const std::vector<unsigned>& groups, const std::vector<unsigned>& address,
          std::size_t places) {
    for (std::uint32_t node = 0; node < kNodes; ++node) {
        std::set<unsigned> listened;
        for (std::size_t g = 0; g < groups.size(); ++g)
            if ((groups[g] >> node & 1U) != 0 && address[g] != 0) listened.insert(address[g]);
        if (listened.size() > places) return false;
    }
    return true;
}

/// Returns the minimum over all ways to assign the groups to addresses.
unsigned least_unwanted(const std::vector<unsigned>& groups, std::size_t places,
                        std::vector<unsigned>& address) {
    if (address.size() == groups.size())
        return fits(groups, address, places) ? unwanted(groups, address) : UINT32_MAX;
    unsigned least = UINT32_MAX;
    unsigned last = 0;
    for (const unsigned used : address)
        last = std::max(last, used);
    for (unsigned next = 0; next <= last + 1; ++next) {
        address.push_back(next);
        least = std::min(least, least_unwanted(groups, places, address));
        address.pop_back();
    }
    return least;
}

Nodes nodes_of(unsigned bits, std::uint32_t without) {
    Nodes nodes;
    for (std::uint32_t node = 0; node < kNodes; ++node)
        if ((bits >> node & 1U) != 0 && node != without) nodes.push_back(node);
    return nodes;
}

/// Returns the addresses that the nodes choose, each of which knows only the groups that it is
/// in. Groups on the same nodes have the same own address.
std::vector<unsigned> planned(const std::vector<unsigned>& groups, std::size_t places) {
    std::vector<unsigned> address;
    for (const unsigned members : groups) {
        AddressChoice choice;
        for (std::uint32_t node = 0; node < kNodes; ++node) {
            if ((members >> node & 1U) == 0) continue;
            std::vector<Nodes> nodes(address.size());
            std::vector<PlacedGroup> placed;
            std::set<unsigned> listened;
            for (std::size_t g = 0; g < address.size(); ++g) {
                if ((groups[g] >> node & 1U) == 0 || address[g] == 0) continue;
                nodes[g] = nodes_of(groups[g], node);
                placed.push_back({address[g], nodes[g], 1});
                listened.insert(address[g]);
            }
            if (listened.size() < places || listened.contains(members)) continue;
            const AddressOffers offers = offers_of(placed, nodes_of(members, node), kNodes - 1);
            choice.add({offers.begin(), offers.end()});
        }
        address.push_back(choice.best(members));
    }
    return address;
}

TEST(AddressPlan, is_near_the_best_for_four_groups_of_five_nodes) {
    std::vector<unsigned> sets;
    for (unsigned bits = 1; bits < 1U << kNodes; ++bits)
        if (std::popcount(bits) >= 2 && std::popcount(bits) <= 3) sets.push_back(bits);
    for (const std::size_t places : {1U, 2U}) {
        std::uint64_t plan = 0;
        std::uint64_t least = 0;
        std::uint64_t broadcast = 0;
        unsigned best = 0;
        unsigned all = 0;
        std::vector<unsigned> groups(4);
        for (std::size_t n = 0; n < sets.size() * sets.size() * sets.size(); n += 7) {
            // Takes every seventh triple; the fourth set varies with the rest.
            groups = {sets[n % sets.size()], sets[n / sets.size() % sets.size()],
                      sets[n / sets.size() / sets.size()], sets[n * 7 % sets.size()]};
            const std::vector<unsigned> address = planned(groups, places);
            ASSERT_TRUE(fits(groups, address, places));
            std::vector<unsigned> none;
            const unsigned mine = unwanted(groups, address);
            const unsigned optimum = least_unwanted(groups, places, none);
            ASSERT_LE(optimum, mine);
            const unsigned all_broadcast = unwanted(groups, std::vector<unsigned>(4, 0));
            ASSERT_LE(mine, all_broadcast);
            plan += mine;
            least += optimum;
            broadcast += all_broadcast;
            best += mine == optimum ? 1 : 0;
            ++all;
        }
        std::printf("%zu places: %llu unwanted, best %llu, broadcast %llu; best in %u of %u\n",
                    places, static_cast<unsigned long long>(plan),
                    static_cast<unsigned long long>(least),
                    static_cast<unsigned long long>(broadcast), best, all);
        EXPECT_LT(plan * 10, broadcast * 6);
        EXPECT_LT(plan * 10, least * 13);
    }
}

}  // namespace
}  // namespace ulc
