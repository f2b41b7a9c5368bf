// SPDX-License-Identifier: BSD-3-Clause
// State of liveness.h.
#include <algorithm>

#include "base/state/containers.h"
#include "jobs/liveness.h"
#include "wire/state/ids.h"

namespace ulc::jobs {

void RateLimit::fields(state::Archive& archive) {
    ULC_STATE(archive, RateLimit, 1, (empty_at_), ());
}

void Liveness::Node::fields(state::Archive& archive) {
    ULC_STATE(archive, Liveness::Node, 5,
              (index, mac, ping_due, pings, asked, incarnation, ranks, last_heard, last_ping,
               asked_since, excused, excused_at, reported, waits_since, absence, absence_at, tokens,
               number, ours, theirs),
              ());
}

void EndedEndpoints::Ended::fields(state::Archive& archive) {
    ULC_STATE(archive, EndedEndpoints::Ended, 1, (handle, reason), ());
}

void EndedEndpoints::fields(state::Archive& archive) {
    const std::size_t places = ring_.size();
    ULC_STATE(archive, EndedEndpoints, 1, (ring_, next_), (places_));
    if (archive.exporting()) return;
    if (!archive.require(ring_.size() == places && next_ < places,
                         "the ends of endpoints are another number"))
        return;
    places_.clear();
    for (std::size_t n = 0; n < ring_.size(); ++n) {
        const Handle handle = ring_[n].handle;
        if (handle == 0) continue;
        places_.erase(handle);
        places_.insert(handle, static_cast<std::uint32_t>(n));
    }
}

void Liveness::Answer::fields(state::Archive& archive) {
    ULC_STATE(archive, Liveness::Answer, 1, (to, body), ());
}

void Liveness::fields(state::Archive& archive) {
    ULC_STATE(archive, Liveness, 5,
              (incarnation_, tokens_, nodes_, by_mac_, free_, ping_due_, dead_, generation_,
               answers_, strangers_, strangers_limit_, hints_limit_, ended_, sweep_at_,
               announcements_, own_absence_, own_absence_at_),
              (config_, own_, counters_));
    if (archive.exporting()) return;
    const auto in_use = [this](std::uint32_t slot) {
        return slot < nodes_.size() && (nodes_[slot].index & kNodeSlotMask) == slot &&
               nodes_[slot].index != kNoNode;
    };
    const auto is_free = [this](std::uint32_t slot) {
        return slot < nodes_.size() && nodes_[slot].index == kNoNode;
    };
    const auto named = [this](NodeIndex node) { return (node & kNodeSlotMask) < nodes_.size(); };
    const bool holds = nodes_.size() <= kNodesMax && by_mac_.size() <= config_.nodes_max &&
                       std::ranges::all_of(by_mac_, in_use) &&
                       std::ranges::all_of(ping_due_, in_use) &&
                       std::ranges::all_of(free_, is_free) && std::ranges::all_of(dead_, named);
    archive.require(holds, "a slot of a watched node is not there");
}

}  // namespace ulc::jobs
