// SPDX-License-Identifier: BSD-3-Clause
// State of node_addresses.h.
#include "base/state/containers.h"
#include "jobs/node_addresses.h"
#include "wire/state/ids.h"

namespace ulc::engine {

void AddressChange::fields(state::Archive& archive) {
    ULC_STATE(archive, AddressChange, 1, (node, addresses), ());
}

void NodeAddresses::Known::fields(state::Archive& archive) {
    ULC_STATE(archive, NodeAddresses::Known, 1, (node, incarnation, number, heard, addresses), ());
}

void NodeAddresses::fields(state::Archive& archive) {
    ULC_STATE(archive, NodeAddresses, 2,
              (incarnation_, links_, number_, due_, sent_at_, repeat_at_, known_, members_limit_,
               strangers_limit_, changes_),
              (own_, counters_, by_node_));
    if (!archive.require(known_.size() <= kNodesMax, "too many nodes have several links")) return;
    if (archive.exporting()) return;
    archive.require(index_nodes(), "a node with several links is there twice");
}

}  // namespace ulc::engine
