// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/links/link_index.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::jobs {

LinkIndex::NodeLinks::const_iterator LinkIndex::first_of(const NodeLinks& links, Handle peer,
                                                         Handle endpoint) const noexcept {
    const std::pair wanted(peer, endpoint);
    return std::partition_point(links.begin(), links.end(), [&](const NodeLink& one) {
        ++steps_;
        return place_of(one) < wanted;
    });
}

LinkRef LinkIndex::find(Handle endpoint, const Mac& node, Handle peer) const noexcept {
    const auto there = nodes_.find(node);
    if (there == nodes_.end()) return {};
    const NodeLinks& links = there->second;
    const auto at = first_of(links, peer, endpoint);
    const bool found = at != links.end() && place_of(*at) == std::pair(peer, endpoint);
    return found ? at->ref : LinkRef{};
}

bool LinkIndex::has_peer(const Mac& node, Handle peer) const noexcept {
    const auto there = nodes_.find(node);
    if (there == nodes_.end()) return false;
    const auto at = first_of(there->second, peer, 0);
    return at != there->second.end() && at->peer == peer;
}

std::span<const NodeLink> LinkIndex::at_node(const Mac& node) const noexcept {
    const auto there = nodes_.find(node);
    return there == nodes_.end() ? std::span<const NodeLink>() : std::span(there->second);
}

std::span<const NodeLink> LinkIndex::of_peer(const Mac& node, Handle peer) const noexcept {
    const auto there = nodes_.find(node);
    if (there == nodes_.end()) return {};
    const NodeLinks& links = there->second;
    const auto from = first_of(links, peer, 0);
    auto to = from;
    while (to != links.end() && to->peer == peer)
        ++to;
    return {from, to};
}

LinkRef LinkIndex::in_turn(const Mac& node) noexcept {
    const auto there = nodes_.find(node);
    if (there == nodes_.end()) return {};
    return there->second[turn_++ % there->second.size()].ref;
}

std::size_t LinkIndex::size() const noexcept {
    std::size_t all = 0;
    for (const auto& [node, links] : nodes_)
        all += links.size();
    return all;
}

void LinkIndex::add(const LinkRef& ref, const Mac& node, Handle peer) {
    NodeLinks& links = nodes_[node];
    auto at = first_of(links, peer, ref.endpoint);
    while (at != links.end() && place_of(*at) == std::pair(peer, ref.endpoint))
        ++at;
    links.insert(at, {peer, ref});
}

void LinkIndex::remove(const LinkRef& ref, const Mac& node, Handle peer) {
    const auto there = nodes_.find(node);
    ULC_CHECK(there != nodes_.end());
    NodeLinks& links = there->second;
    auto at = first_of(links, peer, ref.endpoint);
    while (at != links.end() && at->ref != ref)
        ++at;
    ULC_CHECK(at != links.end());
    links.erase(at);
    if (links.empty()) nodes_.erase(there);
}

bool LinkIndex::is_sorted() const noexcept {
    return std::ranges::all_of(nodes_, [](const auto& node) {
        return !node.second.empty() && std::ranges::is_sorted(node.second, {}, place_of);
    });
}

void LinkIndex::check_invariants() const { ULC_CHECK(is_sorted()); }

}  // namespace ulc::jobs
