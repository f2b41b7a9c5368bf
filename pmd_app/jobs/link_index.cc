// SPDX-License-Identifier: BSD-3-Clause
// Finds links by the endpoints that they join (jobs/links.h). The work for a frame grows with the
// logarithm of the number of a node's links.
#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "jobs/links.h"

namespace ulc::jobs {

Links::NodeLinks::const_iterator Links::first_of(const NodeLinks& links, Handle peer,
                                                 Handle endpoint) const noexcept {
    const std::pair wanted(peer, endpoint);
    return std::partition_point(links.begin(), links.end(), [&](const NodeLink& one) {
        ++steps_;
        return place_of(one) < wanted;
    });
}

Links::Ref Links::find(const Ends& ends, const Mac& mac, Handle peer) const noexcept {
    const auto node = nodes_.find(mac);
    if (node == nodes_.end()) return {0, kNoRank};
    const auto at = first_of(node->second, peer, ends.handle);
    const bool found = at != node->second.end() && place_of(*at) == std::pair(peer, ends.handle);
    return found ? at->ref : Ref{0, kNoRank};
}

bool Links::has_peer(const Mac& mac, Handle peer) const noexcept {
    const auto node = nodes_.find(mac);
    if (node == nodes_.end()) return false;
    const auto at = first_of(node->second, peer, 0);
    return at != node->second.end() && at->peer == peer;
}

void Links::list(const Ref& ref) {
    const LinkEnd& end = *end_of(ref);
    NodeLinks& links = nodes_[end.mac];
    auto at = first_of(links, end.peer, ref.endpoint);
    while (at != links.end() && place_of(*at) == std::pair(end.peer, ref.endpoint))
        ++at;
    links.insert(at, {end.peer, ref});
}

void Links::unlist(const Ref& ref) {
    const LinkEnd& end = *end_of(ref);
    const auto node = nodes_.find(end.mac);
    ULC_CHECK(node != nodes_.end());
    NodeLinks& links = node->second;
    auto at = first_of(links, end.peer, ref.endpoint);
    while (at != links.end() && at->ref != ref)
        ++at;
    ULC_CHECK(at != links.end());
    links.erase(at);
    if (links.empty()) nodes_.erase(node);
}

}  // namespace ulc::jobs
