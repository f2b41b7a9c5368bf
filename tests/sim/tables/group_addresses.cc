// SPDX-License-Identifier: BSD-3-Clause
// Table 8: the cost of an interface that compares few multicast addresses (URTP §3.2.1). Groups of
// 2 to 8 random nodes of 16 are made one after another through libulc; then each member multicasts
// to each of its groups. The table counts the data frames that nodes get of groups in which they
// have no member, for each wanted frame.
//
//   ours        the addresses that the engines agreed upon (base/address_plan.h), with that many
//               filters; the job's own takes one
//   by hash     address (handle mod filters − 1) for each group: needs no agreement
//   broadcast   of every group, or interfaces that pass all multicasts: equal for any filters
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/address_plan.h"
#include "base/check.h"
#include "base/prng.h"
#include "tests/sim/programs/group_traffic.h"
#include "tests/sim/tables/list.h"

namespace ulc::sim {
namespace {

using Ranks = GroupTraffic::Ranks;

constexpr std::uint16_t kNodes = 16;
constexpr unsigned kRounds = 4;

std::vector<Ranks> random_groups(std::size_t count, std::uint64_t seed) {
    Prng prng(seed);
    std::vector<Ranks> groups;
    while (groups.size() < count) {
        std::set<std::uint16_t> members;
        const std::size_t size = 2 + prng.below(7);
        while (members.size() < size)
            members.insert(static_cast<std::uint16_t>(prng.below(kNodes)));
        groups.emplace_back(members.begin(), members.end());
    }
    return groups;
}

/// Returns the frames in a round that reach nodes without a member, when group g has address[g].
double unwanted_of(const std::vector<Ranks>& groups, const std::vector<std::uint32_t>& address) {
    std::map<std::uint32_t, std::set<std::uint16_t>> listeners;
    for (std::uint16_t node = 0; node < kNodes; ++node)
        listeners[kBroadcastAddress].insert(node);
    for (std::size_t g = 0; g < groups.size(); ++g)
        listeners[address[g]].insert(groups[g].begin(), groups[g].end());
    double frames = 0;
    for (std::size_t g = 0; g < groups.size(); ++g)
        frames += static_cast<double>(groups[g].size() *
                                      (listeners[address[g]].size() - groups[g].size()));
    return frames;
}

double wanted_of(const std::vector<Ranks>& groups) {
    double frames = 0;
    for (const Ranks& group : groups)
        frames += static_cast<double>(group.size() * (group.size() - 1));
    return frames;
}

struct Measured {
    double unwanted = 0;   ///< for each wanted frame
    double by_hash = 0;    ///< likewise
    double addresses = 0;  ///< maximum to which a node listens
    double sharing = 0;    ///< groups
};

/// Returns the address to which all members of a made group listen.
AddressId agreed_address(LibCluster& lib, const Ranks& members, ulc_group handle) {
    const Result<AddressId> first = lib.cluster().engine(members.front()).group_address(0, handle);
    ULC_CHECK(first.ok());
    for (const std::uint16_t member : members) {
        const Result<AddressId> other = lib.cluster().engine(member).group_address(0, handle);
        ULC_CHECK(other.ok() && other.value() == first.value());
    }
    return first.value();
}

Measured measure(const std::vector<Ranks>& groups, std::uint16_t filters, std::uint64_t seed) {
    ClusterConfig config;
    config.seed = seed;
    config.net.ports = kNodes;
    config.net.seed = seed;
    config.net.bits_per_second = 100'000'000;
    config.net.multicast_filters = filters;
    LibCluster lib(config);
    ULC_CHECK(lib.form());
    GroupTraffic traffic(lib, groups);
    ULC_CHECK(traffic.create() && traffic.exchange(kRounds));
    Measured out;
    std::vector<std::uint32_t> agreed;
    std::vector<std::uint32_t> hashed;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        agreed.push_back(agreed_address(lib, groups[g], traffic.handle(g)));
        hashed.push_back(kBroadcastAddress + 1 + traffic.handle(g) % (filters - 1U));
    }
    out.unwanted = unwanted_of(groups, agreed) / wanted_of(groups);
    out.by_hash = unwanted_of(groups, hashed) / wanted_of(groups);
    for (std::uint16_t node = 0; node < kNodes; ++node) {
        const Counters& counters = lib.cluster().engine(node).counters();
        out.addresses = std::max(out.addresses,
                                 static_cast<double>(counters.get(Counter::multicast_addresses)));
    }
    out.sharing = static_cast<double>(lib.cluster().count(Counter::multicast_groups_sharing));
    return out;
}

}  // namespace

Table group_addresses(const TableOptions& options) {
    Table table;
    table.name = "addresses";
    table.title = "Groups that share the multicast addresses of an interface";
    table.method =
        "16 nodes on a switch at 100 Mb/s; groups of 2 to 8 random nodes, made one after another; "
        "each member multicasts 4 messages to each.";
    const std::vector<std::size_t> counts = options.quick
                                                ? std::vector<std::size_t>{4, 24}
                                                : std::vector<std::size_t>{1, 4, 8, 16, 32, 64};
    const std::vector<std::uint16_t> filters =
        options.quick ? std::vector<std::uint16_t>{4} : std::vector<std::uint16_t>{4, 8, 14, 16};
    Grid cost{"unwanted frames of data for each wanted one, by number of groups", "", {}, {}, 2};
    Grid busiest{"addresses at the busiest node", "", {}, {}, 0};
    Grid sharing{"groups that share, summed over the nodes where they have members", "", {}, {}, 0};
    Grid::Row broadcast{"broadcast", {}};
    for (const std::size_t count : counts) {
        cost.columns.push_back(std::to_string(count));
        const auto groups = random_groups(count, options.seed);
        broadcast.values.push_back([&] {
            double frames = 0;
            for (const Ranks& group : groups)
                frames += static_cast<double>(group.size() * (kNodes - group.size()));
            return frames;
        }() / wanted_of(groups));
    }
    busiest.columns = sharing.columns = cost.columns;
    bool cheaper = true;
    bool none_at_first = true;
    for (const std::uint16_t number : filters) {
        const std::string name = std::to_string(number) + " filters";
        Grid::Row ours{name + ", ours", {}};
        Grid::Row hash{name + ", by hash", {}};
        Grid::Row used{name, {}};
        Grid::Row share{name, {}};
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const auto groups = random_groups(counts[i], options.seed);
            const Measured m = measure(groups, number, options.seed);
            ours.values.push_back(m.unwanted);
            hash.values.push_back(m.by_hash);
            used.values.push_back(m.addresses);
            share.values.push_back(m.sharing);
            if (m.sharing == 0) none_at_first &= m.unwanted == 0;
            cheaper &= m.unwanted <= m.by_hash && m.unwanted < broadcast.values[i];
        }
        cost.rows.push_back(ours);
        cost.rows.push_back(hash);
        busiest.rows.push_back(used);
        sharing.rows.push_back(share);
    }
    cost.rows.push_back(broadcast);
    table.grids = {cost, busiest, sharing};
    table.shapes = {
        {"never dearer than a hash of the group, nor as dear as broadcast", cheaper ? "yes" : "no",
         cheaper},
        {"nothing unwanted while no group shares", none_at_first ? "yes" : "no", none_at_first}};
    return table;
}

}  // namespace ulc::sim
