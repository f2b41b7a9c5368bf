// SPDX-License-Identifier: BSD-3-Clause
// State of an endpoint, without its parts of endpoint/ and urtp/.
#include <algorithm>

#include "base/state/containers.h"
#include "engine/core.h"
#include "wire/state/ids.h"

namespace ulc::abi {

constexpr CompletionKind last_value(CompletionKind) { return CompletionKind::kUnlinked; }

}  // namespace ulc::abi

namespace ulc::engine {

constexpr EndpointState last_value(EndpointState) { return EndpointState::kClosed; }
constexpr EndpointLinks::Slot last_value(EndpointLinks::Slot) {
    return EndpointLinks::Slot::kVacating;
}

void Fault::fields(state::Archive& archive) {
    ULC_STATE(archive, Fault, 1, (error, rank, packets, group), ());
}

void EndpointLinks::Report::fields(state::Archive& archive) {
    ULC_STATE(archive, EndpointLinks::Report, 1, (kind, slot, cookie, status, incoming), ());
}

void EndpointLinks::Call::fields(state::Archive& archive) {
    ULC_STATE(archive, EndpointLinks::Call, 1, (cookie, slot), ());
}

void EndpointLinks::Ending::fields(state::Archive& archive) {
    ULC_STATE(archive, EndpointLinks::Ending, 1, (slot, until), ());
}

void EndpointLinks::fields(state::Archive& archive) {
    ULC_STATE(archive, EndpointLinks, 1,
              (slots, was_told, calls, reports, unconfirmed, endings, vacating), ());
    const auto below = [this](Rank slot) { return slot < slots.size(); };
    archive.require(was_told.size() == slots.size() &&
                        std::ranges::all_of(calls, below, &Call::slot) &&
                        std::ranges::all_of(unconfirmed, below) &&
                        std::ranges::all_of(endings, below, &Ending::slot) &&
                        std::ranges::all_of(vacating, below),
                    "a slot for a link is not there");
}

void Endpoint::fields(state::Archive& archive) {
    ULC_STATE(archive, Endpoint, 3,
              (submissions, timer, work, state, taking, notified, local_only, detached, completions,
               sends_done, woken_at, world, closed, linger_until, leave_reason, nodes, gone,
               gone_unreported, faults, groups, removing, per_node, medium, formed_unreported,
               left_unreported, failed_unreported, left_status, failed_error, failed_text, errors,
               errors_lately, errors_until, source_note),
              (reachable, forgets, member, net, index, handle, interrupt, region, sends, deliverer,
               offloads, job, links, user, octets, pid, start_ticks, send_frames, receive_frames,
               reorder_wait));
    if (archive.exporting()) return;
    constexpr unsigned kWork =
        kWorkDeliver | kWorkSend | kWorkTransmit | kWorkSettle | kWorkControl;
    const std::size_t ranks = member == nullptr ? 0 : member->size();
    const auto below = [ranks](Rank rank) { return rank < ranks; };
    const bool counts = member == nullptr || (nodes.size() == ranks && gone.size() == ranks &&
                                              deliverer->ranks() == ranks);
    const bool named = member == nullptr || (std::ranges::all_of(gone_unreported, below) &&
                                             (links == nullptr || links->slots.size() == ranks));
    archive.require((work & ~kWork) == 0 && counts && named &&
                        std::ranges::all_of(gone, [](auto how) { return how <= kGoneDied; }),
                    "the ranks that an endpoint keeps are not those of its job");
}

}  // namespace ulc::engine
