// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/links/link_names.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::jobs {

LinkNames::LinkNames(const LinksConfig& config, Counters& counters)
    : config_(config), counters_(counters) {}

bool LinkNames::publish(Handle endpoint, const wire::LinkKey& key) {
    return published_.emplace(wire::lookup_of(key), Published{endpoint, key}).second;
}

const LinkNames::Published* LinkNames::published_as(wire::LinkId name) const noexcept {
    const auto at = published_.find(name);
    return at == published_.end() ? nullptr : &at->second;
}

void LinkNames::withdraw(Handle endpoint, const wire::LinkKey& key, bool published) {
    if (published) published_.erase(wire::lookup_of(key));
    std::erase_if(lookups_, [&](const Lookup& lookup) {
        if (lookup.caller != endpoint) return false;
        due_ -= lookup.due ? 1 : 0;
        return true;
    });
}

Err LinkNames::may_look_up(Handle caller, const wire::LinkName& name) const {
    if (const Err error = wire::judge_name(name); error != Err::kOk) return error;
    const bool full =
        std::ranges::count(lookups_, caller, &Lookup::caller) >= std::ptrdiff_t{kLookupsMax};
    return full ? Err::kLimit : Err::kOk;
}

void LinkNames::look_up(Handle caller, const wire::LinkName& name, wire::LinkId id,
                        std::uint32_t cookie, Nanos deadline, Nanos now) {
    Lookup lookup;
    lookup.caller = caller;
    lookup.cookie = cookie;
    lookup.key = wire::key_of(name);
    lookup.id = id;
    lookup.at = now;
    lookup.wait = config_.request_wait_min;
    lookup.deadline = deadline;
    lookups_.push_back(lookup);
}

std::vector<FoundEndpoint> LinkNames::look_again(Nanos now) {
    std::vector<FoundEndpoint> found;
    for (std::size_t at = 0; at < lookups_.size();) {
        Lookup& lookup = lookups_[at];
        if (lookup.at > now) {
            ++at;
            continue;
        }
        const Published* here = published_as(wire::lookup_of(lookup.key));
        if (here != nullptr) {
            wire::LinkAddress address;
            address.mac = config_.mac;
            address.handle = here->endpoint;
            address.incarnation = config_.incarnation;
            address.key = here->key;
            found.push_back(end_lookup(at, address));
        } else if (now >= lookup.deadline) {
            found.push_back(end_lookup(at, Err::kTimeout));
        } else {
            ask(lookup, now);
            ++at;
        }
    }
    return found;
}

/// One that is over the limit waits for its next turn.
void LinkNames::ask(Lookup& lookup, Nanos now) {
    lookup.at = std::min(now + lookup.wait, lookup.deadline);
    lookup.wait = std::min(lookup.wait * 2, config_.request_wait_max);
    if (lookup.due || !limit_.take(now, config_.lookups_per_second)) return;
    lookup.due = true;
    ++due_;
}

FoundEndpoint LinkNames::end_lookup(std::size_t at, const Result<wire::LinkAddress>& address) {
    const Lookup lookup = lookups_[at];
    due_ -= lookup.due ? 1 : 0;
    lookups_.erase(lookups_.begin() + static_cast<std::ptrdiff_t>(at));
    return {lookup.caller, lookup.cookie, lookup.deadline, address};
}

std::optional<FoundEndpoint> LinkNames::on_here(const wire::LinkView& view, const Mac& source) {
    const auto at = std::ranges::find_if(lookups_, [&](const Lookup& lookup) {
        return lookup.id == view.theirs && lookup.caller == view.to;
    });
    if (at == lookups_.end()) return {};
    if (!wire::proves_key(view, source, at->key)) {
        counters_.add(Counter::drop_link_key);
        return {};
    }
    const auto place = static_cast<std::size_t>(at - lookups_.begin());
    if (view.version != wire::kProtocolVersion) return end_lookup(place, Err::kVersion);
    wire::LinkAddress address;
    address.mac = source;
    address.handle = view.from;
    address.incarnation = view.incarnation;
    address.key = at->key;
    return end_lookup(place, address);
}

Nanos LinkNames::next_time() const noexcept {
    Nanos next = kNever;
    for (const Lookup& lookup : lookups_)
        next = std::min(next, lookup.at);
    return next;
}

std::size_t LinkNames::put_where(std::byte* body, Mac& to) {
    const auto at = std::ranges::find_if(lookups_, &Lookup::due);
    ULC_CHECK(at != lookups_.end());
    at->due = false;
    --due_;
    wire::LinkBody where{};
    where.kind = wire::LinkKind::kWhere;
    where.version = wire::kProtocolVersion;
    where.incarnation = config_.incarnation;
    where.ours = at->id;
    where.theirs = wire::lookup_of(at->key);
    where.from = at->caller;
    to = kBroadcastMac;
    return wire::put_link(body, where, {}, at->key, config_.mac);
}

std::size_t LinkNames::count_due() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(lookups_, &Lookup::due));
}

void LinkNames::check_invariants() const { ULC_CHECK(count_due() == due_); }

}  // namespace ulc::jobs
