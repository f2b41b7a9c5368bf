// SPDX-License-Identifier: BSD-3-Clause
// What the engine does with links. The parts are in links/.
#include "jobs/links.h"

#include "base/check.h"

namespace ulc::jobs {

using State = LinkEnd::State;

Links::Links(const LinksConfig& config, Liveness& liveness, Counters& counters)
    : config_(config),
      liveness_(liveness),
      table_(config_, liveness),
      ends_(config_, table_, liveness, counters),
      names_(config_, counters),
      frames_(config_, table_, ends_, names_, liveness, counters) {}

void Links::settle(Nanos now) {
    frames_.settle_local(now);
    recompute_timer();
}

void Links::recompute_timer() noexcept { ends_.recompute_timer(names_.next_time()); }

// ------------------------------------------------------------------------------ local endpoints

void Links::open(Handle endpoint, const wire::LinkKey& key, std::uint16_t slots,
                 std::string_view profile) {
    table_.open(endpoint, key, slots, profile);
}

void Links::publish(Handle endpoint) {
    LinkEndpoint* known = table_.find(endpoint);
    ULC_CHECK(known != nullptr && !known->closed && !known->published);
    known->published = names_.publish(endpoint, known->key);
    ULC_CHECK(known->published);
}

void Links::close(Handle endpoint, wire::LeaveReason reason, Nanos now) {
    LinkEndpoint* known = table_.find(endpoint);
    if (known == nullptr || known->closed) return;
    table_.close(*known);
    names_.withdraw(endpoint, known->key, known->published);
    known->published = false;
    liveness_.ended(endpoint, reason);
    ends_.close(*known, reason, now);
    frames_.settle_local(now);
    ends_.forget_if_over(endpoint);
    recompute_timer();
}

bool Links::has(Handle endpoint) const noexcept { return table_.has(endpoint); }

std::string_view Links::profile(Handle endpoint) const noexcept {
    const LinkEndpoint* known = table_.find(endpoint);
    return known == nullptr ? std::string_view() : known->profile;
}

wire::LinkAddress Links::address(Handle endpoint) const noexcept {
    const LinkEndpoint* known = table_.find(endpoint);
    ULC_CHECK(known != nullptr && !known->closed);
    wire::LinkAddress address;
    address.mac = config_.mac;
    address.handle = endpoint;
    address.incarnation = config_.incarnation;
    address.key = known->key;
    return address;
}

Result<Rank> Links::call(Handle endpoint, const wire::LinkAddress& address, Nanos deadline,
                         Nanos now) {
    LinkEndpoint* known = table_.find(endpoint);
    ULC_CHECK(known != nullptr && !known->closed);
    const Result<Rank> slot = ends_.queue_call(*known, address, deadline);
    if (!slot.ok()) return slot.error();
    ends_.start_calls(*known, now);
    settle(now);
    return slot.value();
}

Err Links::find(Handle endpoint, const wire::LinkName& name, std::uint32_t cookie, Nanos deadline,
                Nanos now) {
    ULC_CHECK(has(endpoint));
    if (const Err error = names_.may_look_up(endpoint, name); error != Err::kOk) return error;
    names_.look_up(endpoint, name, table_.new_id(), cookie, deadline, now);
    look_again(now);
    settle(now);
    return Err::kOk;
}

void Links::look_again(Nanos now) {
    for (const FoundEndpoint& found : names_.look_again(now))
        ends_.call_found(found, now);
}

void Links::unlink(Handle endpoint, Rank slot, Nanos now) {
    LinkEndpoint* known = table_.find(endpoint);
    ULC_CHECK(known != nullptr && !known->closed && slot < known->slots.size());
    if (known->slots[slot].state != State::kUp) return;
    ends_.leave(*known, slot, wire::LeaveReason::kLeft, config_.unlinks_max, now);
    settle(now);
}

void Links::release(Handle endpoint, Rank slot) {
    LinkEndpoint* known = table_.find(endpoint);
    if (known == nullptr || known->closed) return;
    const State state = known->slots[slot].state;
    ULC_CHECK(state == State::kGone || state == State::kFree);
    table_.vacate(*known, slot);
}

void Links::confirm(Handle endpoint, Rank slot, Nanos now) {
    LinkEndpoint* known = table_.find(endpoint);
    if (known == nullptr || known->slots[slot].state != State::kAnswered) return;
    ends_.confirmed(*known, slot, now);
    recompute_timer();
}

void Links::peer_died(Handle endpoint, Rank slot, Nanos now) {
    LinkEndpoint* known = table_.find(endpoint);
    if (known == nullptr || known->closed || slot >= known->slots.size()) return;
    ends_.end_by(*known, slot, wire::LeaveReason::kDied, now);
    recompute_timer();
}

const LinkEnd* Links::at(Handle endpoint, Rank slot) const noexcept {
    return table_.end_of({endpoint, slot});
}

// ------------------------------------------------------------------------------ frames and time

void Links::on_frame(const wire::LinkView& view, const Mac& source, Nanos now) {
    frames_.on_frame(view, source, now);
}

void Links::unknown_slot(Handle endpoint, Rank slot, const Mac& source, Nanos now) {
    frames_.unknown_slot(endpoint, slot, source, now);
}

void Links::on_verdict(const NodeVerdict& verdict, Nanos now) {
    if (!table_.index().has_node(verdict.mac)) return;
    if (ends_.on_verdict(verdict, now)) recompute_timer();
}

bool Links::has_peer(const Mac& mac, Handle peer) const noexcept {
    return table_.index().has_peer(mac, peer);
}

bool Links::question(const Mac& mac, wire::NodeBody& ping) { return ends_.question(mac, ping); }

std::size_t Links::next_tx(std::byte* body, Mac& to) { return frames_.next_tx(body, to); }

void Links::on_timer(Nanos now) {
    ends_.on_timer(now);
    look_again(now);
    settle(now);
}

// ------------------------------------------------------------------------------ invariants

void Links::check_invariants() const {
    table_.check_invariants();
    ends_.check_invariants();
    names_.check_invariants();
    frames_.check_invariants();
    ULC_CHECK(names_.are_of_open_endpoints([this](Handle endpoint) { return has(endpoint); }));
    std::size_t published = 0;
    table_.for_each([&](const LinkEndpoint& endpoint) {
        if (!endpoint.published) return;
        ++published;
        const LinkNames::Published* here = names_.published_as(wire::lookup_of(endpoint.key));
        ULC_CHECK(here != nullptr && here->endpoint == endpoint.handle);
    });
    ULC_CHECK(published == names_.published());
}

}  // namespace ulc::jobs
