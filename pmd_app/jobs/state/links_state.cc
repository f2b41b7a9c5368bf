// SPDX-License-Identifier: BSD-3-Clause
// State of links.h.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/state/containers.h"
#include "jobs/links.h"
#include "wire/state/ids.h"

namespace ulc::jobs {

constexpr LinkEnd::State last_value(LinkEnd::State) { return LinkEnd::State::kFree; }
constexpr LinkEventKind last_value(LinkEventKind) { return LinkEventKind::kCalled; }

void LinkEvent::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkEvent, 2, (kind, endpoint, slot, error, cookie), ());
}

void LinkEnd::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkEnd, 2,
              (state, reason, left, self, mtu, mac, peer, incarnation, in, out, ours, theirs, key,
               at, wait, deadline),
              (due, watched, waits, says_request, says_accept, says_confirm, says_unlink));
    archive.require(mtu >= wire::kMtuMin, "the MTU of a link's peer is too small");
    bool bits[] = {due, watched, waits, says_request, says_accept, says_confirm, says_unlink};
    archive.values(bits);
    due = bits[0];
    watched = bits[1];
    waits = bits[2];
    says_request = bits[3];
    says_accept = bits[4];
    says_confirm = bits[5];
    says_unlink = bits[6];
}

void LinkRef::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkRef, 1, (endpoint, slot), ());
}

void NodeLink::fields(state::Archive& archive) { ULC_STATE(archive, NodeLink, 1, (peer, ref), ()); }

void LinkIndex::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkIndex, 1, (turn_), (nodes_, steps_));
    std::vector<std::pair<Mac, NodeLinks>> by_node(nodes_.begin(), nodes_.end());
    archive.values(by_node);
    if (archive.exporting()) return;
    nodes_ = {by_node.begin(), by_node.end()};
    archive.require(nodes_.size() == by_node.size() && is_sorted(),
                    "the links of a node are not in order");
}

void LinkEndpoint::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkEndpoint, 1, (handle, key, profile, closed, published, next, slots),
              (calls, queued, used));
    if (archive.exporting()) return;
    const auto in = [this](LinkEnd::State state) {
        return static_cast<std::size_t>(std::ranges::count(slots, state, &LinkEnd::state));
    };
    calls = in(LinkEnd::State::kCalling);
    queued = in(LinkEnd::State::kQueued);
    used = slots.size() - in(LinkEnd::State::kVacant);
    archive.require(!slots.empty() && slots.size() < kNoRank && next < slots.size() &&
                        calls <= kCallsMax && profile.size() <= wire::kProfileOctets,
                    "an endpoint's slots for links are out of bounds");
}

void LinkTable::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkTable, 1, (tokens_, index_), (config_, liveness_, endpoints_, closing_));
    std::vector<Handle> handles;  // in order
    for (const auto& [handle, endpoint] : endpoints_)
        handles.push_back(handle);
    std::ranges::sort(handles);
    archive.values(handles);
    if (archive.importing()) closing_ = 0;
    for (const Handle handle : handles) {
        auto& endpoint = endpoints_[handle];
        if (archive.importing()) endpoint = std::make_unique<LinkEndpoint>();
        archive.values(*endpoint);
        archive.require(endpoint->handle == handle, "an endpoint with links has two names");
        if (archive.importing() && endpoint->closed) ++closing_;
    }
    if (archive.exporting() || !archive.ok()) return;
    archive.require(ends_are_listed(), "the links of a node are not those of its endpoints");
}

/// Returns whether each end that is alive is listed once, with its node and its peer.
bool LinkTable::ends_are_listed() const {
    std::set<std::pair<Handle, Rank>> listed;
    bool holds = true;
    index_.for_each([&](const Mac& mac, const NodeLink& link) {
        const LinkEnd* end = end_of(link.ref);
        holds = holds && end != nullptr && end->alive() && end->mac == mac &&
                end->peer == link.peer && end->ours != 0 &&
                listed.emplace(link.ref.endpoint, link.ref.slot).second;
    });
    std::size_t alive = 0;
    for (const auto& [handle, endpoint] : endpoints_) {
        for (const LinkEnd& end : endpoint->slots) {
            alive += end.alive() ? 1 : 0;
            holds = holds && (end.alive() || !end.watched);
        }
    }
    return holds && alive == listed.size();
}

void LinkStates::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkStates, 1, (due_, local_due_, waiting_, events_, timer_),
              (config_, table_, liveness_, counters_));
    archive.require(all_wait(), "an end of a link with a time is not among those that wait");
}

void LinkNames::Lookup::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkNames::Lookup, 1, (caller, cookie, key, id, due, at, wait, deadline),
              ());
}

void LinkNames::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkNames, 1, (lookups_, limit_), (config_, counters_, published_, due_));
    due_ = count_due();
}

void LinkFrames::Answer::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkFrames::Answer, 1, (to, body), ());
}

void LinkFrames::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkFrames, 1, (local_answers_, answers_, answers_limit_),
              (config_, table_, ends_, names_, liveness_, counters_));
    archive.require(answers_.size() <= kLinkAnswersMax, "answers about links are too many");
}

void Links::fields(state::Archive& archive) {
    ULC_STATE(archive, Links, 4, (table_, ends_, names_, frames_), (config_, liveness_));
    archive.values(config_.incarnation);
    if (archive.exporting() || !archive.ok()) return;
    table_.for_each([&](const LinkEndpoint& endpoint) {
        if (endpoint.published)
            archive.require(names_.publish(endpoint.handle, endpoint.key),
                            "two endpoints are published under one name");
    });
    archive.require(names_.are_of_open_endpoints([this](Handle endpoint) { return has(endpoint); }),
                    "a lookup is of no endpoint");
}

}  // namespace ulc::jobs
