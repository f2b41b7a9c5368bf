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

void Membership::fields(state::Archive& archive) {
    ULC_STATE(archive, Membership, 1,
              (world_, per_node_, medium_, is_local_, nodes_, gone_, groups_, removing_),
              (job_, reorder_wait_));
    archive.require(nodes_.size() == gone_.size() &&
                        std::ranges::all_of(gone_, [](auto how) { return how <= kGoneDied; }),
                    "the ranks that an endpoint keeps are in no known state");
}

void Endpoint::fields(state::Archive& archive) {
    ULC_STATE(
        archive, Endpoint, 6,
        (inlet_, timer_, work_, woken_at_, membership_, errors_, source_note_, reports_),
        (notified_, forgets_, look_, life_, member_, net_, handle_, interrupt_, region_, sends_,
         outlet_, offloads_, links_, user_, claimant_, send_frames_, receive_frames_));
    if (archive.exporting()) return;
    const std::size_t ranks = member_ == nullptr ? 0 : member_->size();
    const bool counts =
        member_ == nullptr || (membership_.ranks() == ranks && outlet_->ranks() == ranks);
    const bool linked = member_ == nullptr || links_ == nullptr || links_->slots.size() == ranks;
    archive.require(
        (work_ & ~bits(endpoint::kAllWork)) == 0 && counts && linked && reports_.is_valid(ranks),
        "the ranks that an endpoint keeps are not those of its job");
}

}  // namespace ulc::engine
