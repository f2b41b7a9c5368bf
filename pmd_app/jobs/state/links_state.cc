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

void Links::Ref::fields(state::Archive& archive) {
    ULC_STATE(archive, Links::Ref, 1, (endpoint, slot), ());
}

void Links::Answer::fields(state::Archive& archive) {
    ULC_STATE(archive, Links::Answer, 1, (to, body), ());
}

void Links::Ends::fields(state::Archive& archive) {
    ULC_STATE(archive, Links::Ends, 2, (handle, key, profile, closed, published, next, slots),
              (calls, queued, used));
    if (archive.exporting()) return;
    const auto in = [this](State state) {
        return static_cast<std::size_t>(std::ranges::count(slots, state, &LinkEnd::state));
    };
    calls = in(State::kCalling);
    queued = in(State::kQueued);
    used = slots.size() - in(State::kVacant);
    archive.require(!slots.empty() && slots.size() < kNoRank && next < slots.size() &&
                        calls <= kCallsMax && profile.size() <= wire::kProfileOctets,
                    "an endpoint's slots for links are out of bounds");
}

void Links::Lookup::fields(state::Archive& archive) {
    ULC_STATE(archive, Links::Lookup, 1, (endpoint, cookie, key, id, due, at, wait, deadline), ());
}

void Links::fields(state::Archive& archive) {
    std::vector<std::pair<Mac, std::vector<Ref>>> by_node;
    for (const auto& [mac, there] : nodes_) {
        by_node.emplace_back(mac, std::vector<Ref>{});
        for (const NodeLink& link : there)
            by_node.back().second.push_back(link.ref);
    }
    ULC_STATE(archive, Links, 3,
              (tokens_, due_, local_due_, local_answers_, waiting_, events_, answers_,
               answers_limit_, lookups_, lookups_limit_, turn_, timer_),
              (config_, liveness_, counters_, endpoints_, nodes_, steps_, published_, lookups_due_,
               closing_));
    archive.values(config_.incarnation, by_node);
    std::vector<Handle> handles;  // in order
    for (const auto& [handle, ends] : endpoints_)
        handles.push_back(handle);
    std::ranges::sort(handles);
    archive.values(handles);
    if (archive.importing()) closing_ = 0;
    if (archive.importing()) published_.clear();
    for (const Handle handle : handles) {
        auto& ends = endpoints_[handle];
        if (archive.importing()) ends = std::make_unique<Ends>();
        archive.values(*ends);
        archive.require(ends->handle == handle, "an endpoint with links has two names");
        if (archive.importing() && ends->closed) ++closing_;
        if (archive.importing() && ends->published)
            archive.require(published_.emplace(wire::lookup_of(ends->key), handle).second,
                            "two endpoints are published under one name");
    }
    if (archive.exporting() || !archive.ok()) return;
    nodes_.clear();
    for (const auto& [mac, there] : by_node)
        for (const Ref& ref : there) {
            const LinkEnd* end = end_of(ref);
            if (!archive.require(end != nullptr && end->mac == mac, "a link is of no endpoint"))
                return;
            list(ref);
        }
    lookups_due_ = static_cast<std::size_t>(std::ranges::count_if(lookups_, &Lookup::due));
    archive.require(
        std::ranges::all_of(lookups_, [this](const Lookup& of) { return has(of.endpoint); }),
        "a lookup is of no endpoint");
    archive.require(answers_.size() <= kLinkAnswersMax && ends_are_listed(),
                    "the links of a node are not those of its endpoints");
}

/// Each end that is alive is listed once, with its node.
bool Links::ends_are_listed() const {
    std::set<std::pair<Handle, Rank>> listed;
    for (const auto& [mac, there] : nodes_) {
        for (const auto& [peer, ref] : there) {
            const LinkEnd* end = end_of(ref);
            if (end == nullptr || !end->alive() || end->mac != mac || end->ours == 0 ||
                !listed.emplace(ref.endpoint, ref.slot).second)
                return false;
        }
        if (there.empty()) return false;
    }
    std::size_t alive = 0;
    for (const auto& [handle, ends] : endpoints_) {
        for (const LinkEnd& end : ends->slots) {
            alive += end.alive() ? 1 : 0;
            if ((end.watched && !end.alive()) || (end.at != kNever && !end.waits)) return false;
        }
    }
    return alive == listed.size();
}

}  // namespace ulc::jobs
