// SPDX-License-Identifier: BSD-3-Clause
// Finds links by the endpoints that they join. The work for a frame grows with the logarithm of
// the number of a node's links. Used by LinkTable, which lists each end that is alive.
//
// Invariant: the links of a node are in the order of peer, endpoint, beginning. No node has an
// empty list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "jobs/links/link_types.h"

namespace ulc::jobs {

/// A link of an endpoint here to the endpoint `peer` of a node.
struct NodeLink {
    Handle peer = 0;
    LinkRef ref;
    void fields(state::Archive& archive);
};

class LinkIndex {
public:
    /// Lists an end behind the others of the same two endpoints.
    void add(const LinkRef& ref, const Mac& node, Handle peer);
    /// Requires that the end is listed.
    void remove(const LinkRef& ref, const Mac& node, Handle peer);

    /// Returns the link of an endpoint here to that endpoint there; slot kNoRank: none.
    [[nodiscard]] LinkRef find(Handle endpoint, const Mac& node, Handle peer) const noexcept;
    [[nodiscard]] bool has_peer(const Mac& node, Handle peer) const noexcept;
    /// Returns the links of a node, which stay valid until the next change.
    [[nodiscard]] std::span<const NodeLink> at_node(const Mac& node) const noexcept;
    /// Returns the links to one endpoint of a node.
    [[nodiscard]] std::span<const NodeLink> of_peer(const Mac& node, Handle peer) const noexcept;
    [[nodiscard]] bool has_node(const Mac& node) const { return nodes_.contains(node); }
    /// Returns another link of the node at each call; slot kNoRank: it has none.
    [[nodiscard]] LinkRef in_turn(const Mac& node) noexcept;
    [[nodiscard]] std::size_t size() const noexcept;
    /// Calls visit(node, link) for each link.
    template <typename Visit>
    void for_each(const Visit& visit) const {
        for (const auto& [node, links] : nodes_)
            for (const NodeLink& link : links)
                visit(node, link);
    }

    /// Returns how many links all searches have visited, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    using NodeLinks = std::vector<NodeLink>;

    [[nodiscard]] static std::pair<Handle, Handle> place_of(const NodeLink& one) noexcept {
        return {one.peer, one.ref.endpoint};
    }
    /// Returns the first link to that endpoint there of `endpoint`, or of one after it.
    [[nodiscard]] NodeLinks::const_iterator first_of(const NodeLinks& links, Handle peer,
                                                     Handle endpoint) const noexcept;
    [[nodiscard]] bool is_sorted() const noexcept;

    std::map<Mac, NodeLinks> nodes_;  ///< by the peer's node
    std::uint64_t turn_ = 0;          ///< number of in_turn() calls that found a link
    mutable std::uint64_t steps_ = 0;
};

}  // namespace ulc::jobs
