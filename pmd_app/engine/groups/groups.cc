// SPDX-License-Identifier: BSD-3-Clause
// Groups of an endpoint, as its client makes and removes them, and their multicast addresses (URTP
// §3.2.1).
//
//   kAddGroup       registered. This node listens to the group's own address if there is space for
//                   one more; else it offers some of those to which it listens
//                   (base/address_plan.h)
//                   … the members agree: libulc's client/groups/sharing.h …
//   kListenGroup    this node listens to the address that the group must share
//   kUseAddress     all members listen: messages to the group go there. Until then they go to all
//                   nodes by broadcast
//
// A client that lies about addresses makes only its own group deaf: an address that a member here
// uses does not change any more. It can take places of the filter, as every group does; a group
// without a place shares or is broadcast.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/fnv.h"
#include "engine/core.h"

namespace ulc::engine {
namespace {

using abi::CompletionKind;
using abi::CompletionRecord;
using abi::SubmissionRecord;
using abi::SubmitKind;

constexpr std::uint64_t kWeightMax = 1U << 20;

// Validates members in index order, as the client submits them: own rank among them, each once, all
// in the job. An endpoint of links has no rank, so it has no groups.
Err judge_ranks(const urtp::Transport& member, std::span<const Rank> ranks) {
    if (member.rank() >= member.size()) return Err::kInvalid;
    if (ranks.size() < 2 || ranks.size() > member.size()) return Err::kInvalid;
    std::vector<bool> seen(member.size());
    for (const Rank rank : ranks) {
        if (rank >= member.size() || seen[rank]) return Err::kInvalid;
        seen[rank] = true;
    }
    return seen[member.rank()] ? Err::kOk : Err::kInvalid;
}

/// Returns the maximum of the ranks that share a node.
std::uint16_t ranks_per_node(const urtp::Transport& member, std::span<const Rank> ranks) {
    std::vector<Mac> nodes;
    nodes.reserve(ranks.size());
    for (const Rank rank : ranks)
        nodes.push_back(member.peer(rank).mac);
    std::sort(nodes.begin(), nodes.end());
    std::ptrdiff_t most = 0;
    for (auto first = nodes.begin(); first != nodes.end();) {
        const auto last = std::upper_bound(first, nodes.end(), *first);
        most = std::max(most, last - first);
        first = last;
    }
    return static_cast<std::uint16_t>(most);
}

// ---------------------------------------------------------------- addresses

/// Returns the same at every member: a hash of the nodes.
AddressId own_address(const Endpoint& endpoint, std::span<const Rank> ranks) {
    std::vector<Mac> macs;
    macs.reserve(ranks.size());
    for (const Rank rank : ranks)
        macs.push_back(endpoint.member()->peer(rank).mac);
    std::ranges::sort(macs, {}, &Mac::octets);
    macs.erase(std::unique(macs.begin(), macs.end()), macs.end());
    std::uint32_t hash = kFnvBasis32;  // folded to 24 bits
    for (const Mac& mac : macs)
        for (const std::uint8_t octet : mac.octets)
            hash = fnv1a_32(hash, octet);
    return std::max<AddressId>(1, (hash >> 24 ^ hash) & kAddressIdMax);
}

/// Returns the nodes ascending, without this one.
std::vector<NodeIndex> nodes_of(const Endpoint& endpoint, std::span<const Rank> ranks) {
    std::vector<NodeIndex> nodes;
    nodes.reserve(ranks.size());
    for (const Rank rank : ranks)
        if (endpoint.membership().node_of(rank) != kNoNode)
            nodes.push_back(endpoint.membership().node_of(rank));
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
}

/// Returns one plus the frames a second that came.
std::uint64_t weight_of(const LocalGroup& group, Nanos now) {
    const auto age = static_cast<std::uint64_t>(std::max<Nanos>(now - group.since, kMillisecond));
    const std::uint64_t frames = std::min<std::uint64_t>(group.frames, 1ULL << 32);
    return 1 + std::min(kWeightMax, frames * static_cast<std::uint64_t>(kSecond) / age);
}

AddressOffers offers_of(const Endpoint& endpoint, const LocalGroup& group, Nanos now) {
    std::vector<PlacedGroup> placed;
    std::size_t nodes = 0;
    endpoint.net().groups().each([&](const LocalGroup& other) {
        nodes = std::max(nodes, other.nodes.size());
        if (other.address != kBroadcastAddress)
            placed.push_back({other.address, other.nodes, weight_of(other, now)});
    });
    return ulc::offers_of(placed, group.nodes, nodes);
}

/// Places a new group of this node, or another member of it.
void place(Endpoint& endpoint, LocalGroup& group, std::span<const Rank> ranks, Nanos now) {
    if (!group.any_remote || group.own != kBroadcastAddress) return;
    MulticastFilter& filter = endpoint.net().filter();
    group.since = now;
    group.own = own_address(endpoint, ranks);
    if (endpoint.net().port().info.multicast_filters != kPassesAll)
        group.nodes = nodes_of(endpoint, ranks);
    if (!filter.has_room(group.own)) return;
    filter.listen(group.own);
    group.address = group.own;
}

abi::GroupOffers offers_for_client(const Endpoint& endpoint, const LocalGroup& group, Nanos now) {
    abi::GroupOffers out{};
    if (group.address == group.own) {
        out.has_room = 1;
        out.count = 1;
        out.offers[0] = group.own;
        return out;
    }
    for (const AddressOffer& offer : offers_of(endpoint, group, now))
        out.offers[out.count++] = offer.packed();
    return out;
}

/// Makes this node listen to `address` for the group, instead of the earlier one.
Err listen(Net& net, LocalGroup& group, AddressId address) {
    if (group.address == address) return Err::kOk;
    if (group.used) return Err::kInvalid;
    net.filter().release(group.address);
    const bool room = net.filter().has_room(address);
    if (room) group.address = address;
    net.filter().listen(group.address);  // with the released place, there is space for the old one
    return room ? Err::kOk : Err::kLimit;
}

void use(Core& core, Endpoint& endpoint, LocalGroup& group) {
    endpoint.member()->set_group_address(group.handle, mac_of_address(group.address));
    group.used = true;
    if (group.address == group.own || group.shares) return;
    group.shares = true;
    core.counters().add(Counter::multicast_groups_sharing);
}

void leave_group(Core& core, Endpoint& endpoint, GroupHandle handle) noexcept {
    Net& net = endpoint.net();
    LocalGroup* group = net.groups().find(handle);
    if (group != nullptr && group->members.size() == 1 && group->members[0] == &endpoint) {
        net.filter().release(group->address);
        if (group->shares) core.counters().add(Counter::multicast_groups_sharing, UINT64_MAX);
        if (group->payer != nullptr) core.accounts().give_group(*group->payer, net.index());
    }
    net.groups().leave(handle, &endpoint);
    group = net.groups().find(handle);
    if (group == nullptr || group->payer != &endpoint.user()) return;
    // The account goes to a member that is still there: this endpoint may be the last of its user.
    User& heir = group->members[0]->user();
    if (&heir == &endpoint.user()) return;
    core.accounts().move_group(*group->payer, heir, net.index());
    group->payer = &heir;
}

// ---------------------------------------------------------------- records

Result<LocalGroup*> add_group(Core& core, Endpoint& endpoint, GroupHandle handle,
                              std::span<const Rank> ranks, Nanos now) {
    if (endpoint.member() == nullptr || !endpoint.life().is_open()) return Err::kNotFormed;
    if (!is_group(handle)) return Err::kInvalid;
    urtp::Transport& member = *endpoint.member();
    Err error = judge_ranks(member, ranks);
    if (error != Err::kOk) return error;
    if (endpoint.net().groups().foreign(handle, endpoint.membership().world()))
        return Err::kMismatch;
    // The first member here pays; if its user ends before the group, another member's user pays.
    const bool is_new = endpoint.net().groups().find(handle) == nullptr;
    if (is_new && !core.accounts().take_group(endpoint.user(), endpoint.net().index())) {
        core.counters().add(Counter::refused_groups);
        return Err::kLimit;
    }
    error = member.add_group(handle, ranks);
    LocalGroup* group = error == Err::kOk ? endpoint.net().groups().join(
                                                handle, endpoint.membership().world(), &endpoint)
                                          : nullptr;
    if (group == nullptr) {
        if (is_new) core.accounts().give_group(endpoint.user(), endpoint.net().index());
        if (error == Err::kOk) (void)member.remove_group(handle);
        return error == Err::kOk ? Err::kLimit : error;
    }
    if (is_new) group->payer = &endpoint.user();
    for (const Rank rank : ranks)
        group->any_remote |= member.peer(rank).mac != endpoint.net().port().info.mac;
    endpoint.membership().add_group(handle);
    place(endpoint, *group, ranks, now);
    return group;
}

bool on_add_group(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    const abi::Block& block = record.body.block;
    const std::byte* shared = endpoint.region().tx(block.offset, block.length);
    if (shared == nullptr || block.length % sizeof(Rank) != 0 || block.length > 2 * UINT16_MAX)
        return false;
    std::vector<Rank> ranks(block.length / sizeof(Rank));
    if (block.length > 0) std::memcpy(ranks.data(), shared, block.length);
    const Result<LocalGroup*> made = add_group(core, endpoint, record.stream, ranks, now);
    if (!made.ok()) bad_record(core, endpoint);
    CompletionRecord* out = endpoint.outlet()->claim_report(
        made.ok() ? CompletionKind::kGroupReady : CompletionKind::kGroupFailed);
    ULC_CHECK(out != nullptr);  // drain() ensured it
    out->stream = record.stream;
    out->tag = record.cookie;
    if (made.ok()) {
        abi::GroupOffers offers = offers_for_client(endpoint, *made.value(), now);
        offers.per_node = ranks_per_node(*endpoint.member(), ranks);
        out->flags = abi::kCompleteInline;
        out->inline_length = sizeof offers;
        std::memcpy(out->body.inline_octets, &offers, sizeof offers);
    } else {
        out->status = static_cast<std::int16_t>(made.error());
    }
    endpoint.outlet()->publish_report();
    return true;
}

void on_remove_group(Core& core, Endpoint& endpoint, GroupHandle handle) {
    if (endpoint.member() == nullptr || !endpoint.membership().begin_removal(handle)) {
        bad_record(core, endpoint);
        return;
    }
    endpoint.mark(Work::kControl);
}

/// Returns the endpoint's group that a record about addresses names; nullptr: none, or the client
/// may not choose its address.
LocalGroup* group_of(Endpoint& endpoint, const SubmissionRecord& record) {
    const bool known = record.stream != endpoint.membership().world() &&
                       record.cookie <= kAddressIdMax &&
                       endpoint.membership().has_group(record.stream);
    return known ? endpoint.net().groups().find(record.stream) : nullptr;
}

void on_listen_group(Core& core, Endpoint& endpoint, const SubmissionRecord& record) {
    LocalGroup* group = group_of(endpoint, record);
    const Err error =
        group != nullptr ? listen(endpoint.net(), *group, record.cookie) : Err::kInvalid;
    if (error == Err::kInvalid) bad_record(core, endpoint);
    CompletionRecord* out = endpoint.outlet()->claim_report(CompletionKind::kGroupListens);
    ULC_CHECK(out != nullptr);  // drain() ensured it
    out->stream = record.stream;
    out->tag = record.cookie;
    out->status = static_cast<std::int16_t>(error);
    endpoint.outlet()->publish_report();
}

void on_use_address(Core& core, Endpoint& endpoint, const SubmissionRecord& record) {
    LocalGroup* group = group_of(endpoint, record);
    // Broadcast reaches all, so that needs no listening.
    const bool listens =
        group != nullptr &&
        (group->address == record.cookie ||
         (record.cookie == kBroadcastAddress && listen(endpoint.net(), *group, 0) == Err::kOk));
    if (!listens) {
        bad_record(core, endpoint);
        return;
    }
    use(core, endpoint, *group);
}

}  // namespace

bool group_record(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    switch (record.kind) {
        case SubmitKind::kAddGroup:
            return on_add_group(core, endpoint, record, now);
        case SubmitKind::kRemoveGroup:
            on_remove_group(core, endpoint, record.stream);
            return true;
        case SubmitKind::kListenGroup:
            on_listen_group(core, endpoint, record);
            return true;
        case SubmitKind::kUseAddress:
            on_use_address(core, endpoint, record);
            return true;
        default:
            return false;
    }
}

void place_world(Core& core, Endpoint& endpoint, LocalGroup& world) {
    std::vector<Rank> all(endpoint.member()->size());
    std::iota(all.begin(), all.end(), Rank{0});
    endpoint.membership().set_per_node(ranks_per_node(*endpoint.member(), all));
    if (!world.any_remote) return;
    place(endpoint, world, all, core.rounds().now());
    if (world.address != world.own) {  // then the port passes all multicasts
        endpoint.net().filter().listen(world.own);
        world.address = world.own;
    }
    world.used = true;
    endpoint.member()->set_group_address(world.handle, mac_of_address(world.address));
}

// Sends before kRemoveGroup may still wait, so the queue must be empty.
bool remove_groups(Core& core, Endpoint& endpoint) {
    if (endpoint.member() == nullptr || !endpoint.sends().empty()) return false;
    return endpoint.membership().remove_groups([&](GroupHandle handle) {
        if (endpoint.member()->remove_group(handle) == Err::kAgain) return false;
        leave_group(core, endpoint, handle);
        return true;
    });
}

void leave_groups(Core& core, Endpoint& endpoint) noexcept {
    for (const GroupHandle group : endpoint.membership().groups())
        leave_group(core, endpoint, group);
    endpoint.membership().clear_groups();
}

}  // namespace ulc::engine
