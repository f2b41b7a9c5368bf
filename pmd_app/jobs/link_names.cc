// SPDX-License-Identifier: BSD-3-Clause
// Endpoints that are found by their names: publishing, lookups, WHERE and HERE (jobs/links.h).
//
//   find() ─▶ WHERE to all, repeated ─▶ HERE proves the key ─▶ call
//         └─▶ an endpoint of this engine ─────────────────────▶ call
//
// WHERE names a hash of the key, and HERE an endpoint: neither permits a link without the key.
#include <algorithm>

#include "base/check.h"
#include "jobs/links.h"

namespace ulc::jobs {

void Links::publish(Handle endpoint) {
    Ends* ends = ends_of(endpoint);
    ULC_CHECK(ends != nullptr && !ends->closed && !ends->published);
    ends->published = published_.emplace(wire::lookup_of(ends->key), endpoint).second;
    ULC_CHECK(ends->published);
}

Links::Ends* Links::published_as(wire::LinkId name) const noexcept {
    const auto at = published_.find(name);
    return at == published_.end() ? nullptr : ends_of(at->second);
}

/// The endpoint ends: it is found no more, and its lookups end without an event.
void Links::withdraw(Ends& ends) {
    if (ends.published) published_.erase(wire::lookup_of(ends.key));
    ends.published = false;
    std::erase_if(lookups_, [&](const Lookup& lookup) {
        if (lookup.endpoint != ends.handle) return false;
        lookups_due_ -= lookup.due ? 1 : 0;
        return true;
    });
}

Err Links::find(Handle endpoint, const wire::LinkName& name, std::uint32_t cookie, Nanos deadline,
                Nanos now) {
    ULC_CHECK(has(endpoint));
    if (const Err error = wire::judge_name(name); error != Err::kOk) return error;
    const auto own = [endpoint](const Lookup& lookup) { return lookup.endpoint == endpoint; };
    if (std::ranges::count_if(lookups_, own) >= std::ptrdiff_t{kLookupsMax}) return Err::kLimit;
    Lookup lookup;
    lookup.endpoint = endpoint;
    lookup.cookie = cookie;
    lookup.key = wire::key_of(name);
    lookup.id = new_id();
    lookup.at = now;
    lookup.wait = config_.request_wait_min;
    lookup.deadline = deadline;
    lookups_.push_back(lookup);
    look_again(now);
    settle_local(now);
    recompute_timer();
    return Err::kOk;
}

/// Goes on with lookups whose time has come.
void Links::look_again(Nanos now) {
    for (std::size_t at = 0; at < lookups_.size();) {
        Lookup& lookup = lookups_[at];
        if (lookup.at > now) {
            ++at;
            continue;
        }
        if (const Ends* here = published_as(wire::lookup_of(lookup.key)); here != nullptr) {
            end_lookup(at, address(here->handle), now);
        } else if (now >= lookup.deadline) {
            end_lookup(at, Err::kTimeout, now);
        } else {
            ask(lookup, now);
            ++at;
        }
    }
}

/// One that is over the limit waits for its next turn.
void Links::ask(Lookup& lookup, Nanos now) {
    lookup.at = std::min(now + lookup.wait, lookup.deadline);
    lookup.wait = std::min(lookup.wait * 2, config_.request_wait_max);
    if (lookup.due || !lookups_limit_.take(now, config_.lookups_per_second)) return;
    lookup.due = true;
    ++lookups_due_;
}

/// Ends a lookup by a call, or by an error. The event precedes those of the call.
void Links::end_lookup(std::size_t at, Result<wire::LinkAddress> found, Nanos now) {
    const Lookup lookup = lookups_[at];
    lookups_due_ -= lookup.due ? 1 : 0;
    lookups_.erase(lookups_.begin() + static_cast<std::ptrdiff_t>(at));
    Ends& ends = *ends_of(lookup.endpoint);
    const Result<Rank> slot =
        found.ok() ? queue_call(ends, found.value(), lookup.deadline) : found.error();
    events_.push_back({LinkEventKind::kCalled, lookup.endpoint, slot.ok() ? slot.value() : kNoRank,
                       slot.error(), lookup.cookie});
    if (slot.ok()) start_calls(ends, now);
}

void Links::on_where(const wire::LinkView& view, const Mac& source, Nanos now) {
    const Ends* ends = published_as(view.theirs);
    if (ends == nullptr) return;
    if (!wire::proves_key(view, source, ends->key)) return counters_.add(Counter::drop_link_key);
    if (!answers_limit_.take(now, config_.answers_per_second))
        return counters_.add(Counter::answers_limited);
    wire::LinkBody body{};
    body.kind = wire::LinkKind::kHere;
    body.version = wire::kProtocolVersion;
    body.incarnation = config_.incarnation;
    body.theirs = view.ours;
    body.from = ends->handle;
    body.to = view.from;
    queue_answer({source, body});
}

/// One that is late, or doubled, finds no lookup.
void Links::on_here(const wire::LinkView& view, const Mac& source, Nanos now) {
    const auto at = std::ranges::find_if(lookups_, [&](const Lookup& lookup) {
        return lookup.id == view.theirs && lookup.endpoint == view.to;
    });
    if (at == lookups_.end()) return;
    if (!wire::proves_key(view, source, at->key)) return counters_.add(Counter::drop_link_key);
    const auto place = static_cast<std::size_t>(at - lookups_.begin());
    if (view.version != wire::kProtocolVersion) return end_lookup(place, Err::kVersion, now);
    wire::LinkAddress address;
    address.mac = source;
    address.handle = view.from;
    address.incarnation = view.incarnation;
    address.key = at->key;
    end_lookup(place, address, now);
}

std::size_t Links::put_where(std::byte* body, Mac& to) {
    const auto at = std::ranges::find_if(lookups_, &Lookup::due);
    ULC_CHECK(at != lookups_.end());
    at->due = false;
    --lookups_due_;
    wire::LinkBody where{};
    where.kind = wire::LinkKind::kWhere;
    where.version = wire::kProtocolVersion;
    where.incarnation = config_.incarnation;
    where.ours = at->id;
    where.theirs = wire::lookup_of(at->key);
    where.from = at->endpoint;
    to = kBroadcastMac;
    return wire::put_link(body, where, {}, at->key, config_.mac);
}

}  // namespace ulc::jobs
