// SPDX-License-Identifier: BSD-3-Clause
// State of an endpoint, without its parts of endpoint/ and urtp/.
#include <algorithm>

#include "base/state/containers.h"
#include "engine/core.h"
#include "wire/state/ids.h"

namespace ulc::engine {

constexpr EndpointLinks::Slot last_value(EndpointLinks::Slot) {
    return EndpointLinks::Slot::kVacating;
}

void EndpointLinks::Call::fields(state::Archive& archive) {
    ULC_STATE(archive, EndpointLinks::Call, 1, (cookie, slot), ());
}

void EndpointLinks::Ending::fields(state::Archive& archive) {
    ULC_STATE(archive, EndpointLinks::Ending, 1, (slot, until), ());
}

void EndpointLinks::fields(state::Archive& archive) {
    ULC_STATE(archive, EndpointLinks, 2, (slots, was_told, calls, unconfirmed, endings, vacating),
              ());
    const auto below = [this](Rank slot) { return slot < slots.size(); };
    archive.require(was_told.size() == slots.size() &&
                        std::ranges::all_of(calls, below, &Call::slot) &&
                        std::ranges::all_of(unconfirmed, below) &&
                        std::ranges::all_of(endings, below, &Ending::slot) &&
                        std::ranges::all_of(vacating, below),
                    "a slot for a link is not there");
}

void ErrorCount::fields(state::Archive& archive) {
    ULC_STATE(archive, ErrorCount, 1, (noted_, lately_, until_), ());
}

void Endpoint::fields(state::Archive& archive) {
    ULC_STATE(archive, Endpoint, 6,
              (inlet, timer, work_, notified, local_only, woken_at, world, nodes, gone, groups,
               removing, per_node, medium, errors, source_note, reports_),
              (life_, look, forgets, member, net, index, handle, interrupt, region, sends, outlet,
               offloads, job, links, user, claimant, send_frames, receive_frames, reorder_wait));
    if (archive.exporting()) return;
    const std::size_t ranks = member == nullptr ? 0 : member->size();
    const bool counts = member == nullptr ||
                        (nodes.size() == ranks && gone.size() == ranks && outlet->ranks() == ranks);
    const bool linked = member == nullptr || links == nullptr || links->slots.size() == ranks;
    archive.require((work_ & ~bits(endpoint::kAllWork)) == 0 && counts && linked &&
                        reports_.is_valid(ranks) &&
                        std::ranges::all_of(gone, [](auto how) { return how <= kGoneDied; }),
                    "the ranks that an endpoint keeps are not those of its job");
}

}  // namespace ulc::engine
