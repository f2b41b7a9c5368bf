// SPDX-License-Identifier: BSD-3-Clause
// State of node_addresses.h.
#include <algorithm>

#include "base/state/containers.h"
#include "jobs/node_addresses.h"
#include "wire/state/ids.h"

namespace ulc::jobs {

void AddressChange::fields(state::Archive& archive) {
    ULC_STATE(archive, AddressChange, 2, (node, addresses, proved), ());
}

void NodeAddresses::Question::fields(state::Archive& archive) {
    ULC_STATE(archive, NodeAddresses::Question, 1, (to, token, open), ());
}

void NodeAddresses::Address::fields(state::Archive& archive) {
    ULC_STATE(archive, NodeAddresses::Address, 1, (link, counts), ());
}

void NodeAddresses::Probe::fields(state::Archive& archive) {
    ULC_STATE(archive, NodeAddresses::Probe, 1, (to, token), ());
}

void NodeAddresses::Known::fields(state::Archive& archive) {
    ULC_STATE(archive, NodeAddresses::Known, 2,
              (node, used, tentative, provisional, asking, wanted, tries, place, incarnation,
               number, proved, asked, first_asked, next, addresses, claimed, given, questions),
              ());
}

void OwnLinks::fields(state::Archive& archive) {
    ULC_STATE(archive, OwnLinks, 1, (links_, number_, due_, sent_at_, repeat_at_), (mac_));
    archive.require(links_.empty() ? repeat_at_ == kNever && !due_ : links_[0].mac == mac_,
                    "the links of this node are malformed");
}

void NodeAddresses::fields(state::Archive& archive) {
    ULC_STATE(archive, NodeAddresses, 4,
              (incarnation_, tokens_, own_, sweep_at_, known_, free_, asking_, ask_at_, probes_,
               replies_, strangers_, replies_limit_, changes_),
              (liveness_, counters_, by_node_, by_address_, by_place_));
    if (archive.exporting() || !archive.ok()) return;
    if (archive.require(is_whole(), "the addresses of nodes contradict each other")) index_all();
}

/// Returns whether the lists of slots are those of the table, and no key is there twice.
bool NodeAddresses::is_whole() const {
    if (known_.size() > kNodesMax) return false;
    std::vector<std::uint64_t> nodes, addresses, places;
    std::size_t asking = 0;
    for (const Known& known : known_) {
        if (!known.used) continue;
        nodes.push_back(number_of(known.node));
        for (const Address& address : known.addresses)
            if (address.counts) addresses.push_back(number_of(address.link.mac));
        if (const auto place = known.place_in_mesh(); place != 0) places.push_back(place);
        if (!known.asking) continue;
        ++asking;
        if (known.place >= asking_.size() || asking_[known.place] != slot_of(known)) return false;
    }
    const auto has_twins = [](std::vector<std::uint64_t>& keys) {
        std::ranges::sort(keys);
        return std::ranges::adjacent_find(keys) != keys.end();
    };
    std::vector<std::uint64_t> free(free_.begin(), free_.end());
    const bool are_free = std::ranges::all_of(
        free_, [this](std::uint32_t slot) { return slot < known_.size() && !known_[slot].used; });
    const bool all_known = nodes.size() + free.size() == known_.size();
    return asking == asking_.size() && are_free && all_known && !has_twins(free) &&
           !has_twins(nodes) && !has_twins(addresses) && !has_twins(places);
}

}  // namespace ulc::jobs
