// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/links/link_table.h"

#include <utility>

#include "base/check.h"

namespace ulc::jobs {

using State = LinkEnd::State;

LinkTable::LinkTable(const LinksConfig& config, Liveness& liveness)
    : config_(config), liveness_(liveness), tokens_(config.seed) {}

// ------------------------------------------------------------------------------ endpoints

void LinkTable::open(Handle endpoint, const wire::LinkKey& key, std::uint16_t slots,
                     std::string_view profile) {
    ULC_CHECK(find(endpoint) == nullptr && slots > 0 && slots < kNoRank && !key.zero());
    auto opened = std::make_unique<LinkEndpoint>();
    opened->handle = endpoint;
    opened->key = key;
    opened->profile = profile;
    opened->slots.resize(slots);
    endpoints_.emplace(endpoint, std::move(opened));
}

void LinkTable::close(LinkEndpoint& endpoint) noexcept {
    endpoint.closed = true;
    ++closing_;
}

bool LinkTable::forget_if_over(Handle endpoint) {
    const LinkEndpoint* known = find(endpoint);
    if (known == nullptr || !known->closed || known->used > 0) return false;
    --closing_;
    endpoints_.erase(endpoint);
    return true;
}

LinkEndpoint* LinkTable::find(Handle endpoint) const noexcept {
    const auto at = endpoints_.find(endpoint);
    return at == endpoints_.end() ? nullptr : at->second.get();
}

bool LinkTable::has(Handle endpoint) const noexcept {
    const LinkEndpoint* known = find(endpoint);
    return known != nullptr && !known->closed;
}

// ------------------------------------------------------------------------------ slots

LinkEnd* LinkTable::end_of(const LinkRef& ref) const noexcept {
    LinkEndpoint* known = find(ref.endpoint);
    return known == nullptr || ref.slot >= known->slots.size() ? nullptr : &known->slots[ref.slot];
}

Result<Rank> LinkTable::take_slot(LinkEndpoint& endpoint, const Mac& mac, Handle peer,
                                  std::uint32_t incarnation) {
    const std::size_t size = endpoint.slots.size();
    if (endpoint.used == size) return Err::kLimit;
    std::size_t slot = endpoint.next;
    while (endpoint.slots[slot].state != State::kVacant)
        slot = (slot + 1) % size;
    endpoint.next = (slot + 1) % size;
    ++endpoint.used;
    LinkEnd& end = endpoint.slots[slot];
    end = LinkEnd{};
    end.mac = mac;
    end.peer = peer;
    end.incarnation = incarnation;
    end.ours = new_id();
    end.in = Seq{static_cast<std::uint32_t>(tokens_.next())};
    index_.add({endpoint.handle, static_cast<Rank>(slot)}, mac, peer);
    return static_cast<Rank>(slot);
}

void LinkTable::set_state(LinkEndpoint& endpoint, Rank slot, State state) noexcept {
    LinkEnd& end = endpoint.slots[slot];
    if (end.state == State::kQueued) --endpoint.queued;
    if (end.state == State::kCalling) --endpoint.calls;
    if (state == State::kQueued) ++endpoint.queued;
    if (state == State::kCalling) ++endpoint.calls;
    end.state = state;
}

bool LinkTable::watch(LinkEnd& end, Nanos now) {
    if (end.mac == config_.mac) return true;
    end.watched = liveness_.watch(end.mac, end.incarnation, now);
    return end.watched;
}

void LinkTable::unwatch(LinkEnd& end) {
    if (end.watched) liveness_.unwatch(end.mac);
    end.watched = false;
}

void LinkTable::detach(LinkEndpoint& endpoint, Rank slot, State state) {
    LinkEnd& end = endpoint.slots[slot];
    index_.remove({endpoint.handle, slot}, end.mac, end.peer);
    unwatch(end);
    set_state(endpoint, slot, state);
    end.at = kNever;
    end.say_nothing();
}

void LinkTable::vacate(LinkEndpoint& endpoint, Rank slot) {
    LinkEnd& end = endpoint.slots[slot];
    if (end.alive()) detach(endpoint, slot, State::kGone);
    const bool due = end.due;  // its entries in the lists are still there
    const bool waits = end.waits;
    end = LinkEnd{};
    end.due = due;
    end.waits = waits;
    --endpoint.used;
}

// ------------------------------------------------------------------------------ invariants

void LinkTable::check_invariants() const {
    std::size_t alive = 0;
    std::size_t closed = 0;
    for (const auto& [handle, endpoint] : endpoints_) {
        std::size_t calls = 0;
        std::size_t queued = 0;
        std::size_t used = 0;
        for (const LinkEnd& end : endpoint->slots) {
            used += end.state != State::kVacant ? 1 : 0;
            calls += end.state == State::kCalling ? 1 : 0;
            queued += end.state == State::kQueued ? 1 : 0;
            alive += end.alive() ? 1 : 0;
            ULC_CHECK(!end.alive() || end.ours != 0);
            ULC_CHECK(end.alive() || !end.watched);
        }
        ULC_CHECK(handle == endpoint->handle && calls == endpoint->calls);
        ULC_CHECK(used == endpoint->used && queued == endpoint->queued && calls <= kCallsMax);
        closed += endpoint->closed ? 1 : 0;
    }
    ULC_CHECK(closed == closing_);
    index_.check_invariants();
    index_.for_each([this](const Mac& mac, const NodeLink& link) {
        const LinkEnd& end = *end_of(link.ref);
        ULC_CHECK(end.alive() && end.mac == mac && end.peer == link.peer);
    });
    ULC_CHECK(alive == index_.size());
}

}  // namespace ulc::jobs
