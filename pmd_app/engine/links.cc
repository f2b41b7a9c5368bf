// SPDX-License-Identifier: BSD-3-Clause
// Links of endpoints: the client's records, the handshake's events, and slots that become vacant
// (engine/links.h).
#include "engine/links.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "base/check.h"
#include "engine/core.h"
#include "urtp/policy.h"
#include "wire/link.h"

namespace ulc::engine {
namespace {

static_assert(abi::NamedAddress::kVersion == wire::kProtocolVersion);
static_assert(abi::NamedAddress::kMark == wire::LinkName::kMark);
static_assert(offsetof(abi::NamedAddress, secret) == offsetof(wire::LinkName, secret));

using abi::CompletionKind;
using abi::CompletionRecord;
using abi::SubmissionRecord;
using abi::SubmitKind;
using Slot = EndpointLinks::Slot;

/// Ends the calls that wait for a slot.
void answer_calls(Endpoint& endpoint, Rank slot, Err status) {
    std::erase_if(endpoint.links()->calls, [&](const EndpointLinks::Call& call) {
        if (call.slot != slot) return false;
        endpoint.report({.kind = CompletionKind::kLinkDone,
                         .status = status,
                         .rank = slot,
                         .tag = call.cookie});
        return true;
    });
}

/// A call has got a slot, or failed.
void begin_call(Endpoint& endpoint, std::uint32_t cookie, Result<Rank> slot) {
    EndpointLinks& links = *endpoint.links();
    Report done{.kind = CompletionKind::kLinkDone, .tag = cookie};
    if (!slot.ok()) {
        done.status = slot.error();
    } else if (links.slots[slot.value()] == Slot::kTold) {
        done.rank = slot.value();
    } else if (links.slots[slot.value()] == Slot::kEnding) {
        done.status = Err::kAgain;
    } else {
        links.calls.push_back({cookie, slot.value()});
        return;
    }
    endpoint.report(done);
}

// ---------------------------------------------------------------- records

bool on_open(Core& core, Endpoint& endpoint, const SubmissionRecord& record) {
    const abi::Block& block = record.body.block;
    const std::byte* shared = endpoint.region().tx(block.offset, block.length);
    if (shared == nullptr || block.length != sizeof(abi::OpenLinksRequest)) return false;
    abi::OpenLinksRequest request;
    std::memcpy(&request, shared, sizeof request);
    asm volatile("" ::: "memory");  // judge the copy, not the arena
    if (endpoint.in_use() || !endpoint.life().is_open()) {
        bad_record(core, endpoint);
        return true;
    }
    if (core.rounds().is_stopping()) {
        fail_job(endpoint, Err::kClosed, text_of(Err::kClosed));
        return true;
    }
    wire::LinkKey key;
    std::memcpy(key.octets.data(), request.key, sizeof request.key);
    const std::uint16_t slots = request.links;
    wire::LinkName name;
    std::ranges::copy(request.name, name.name.begin());
    const bool named = name.name != decltype(name.name){};
    if (slots == 0 || key.zero()) {
        fail_job(endpoint, Err::kInvalid, text_of(Err::kInvalid));
        return true;
    }
    if (slots > core.config().links_max) {
        fail_job(endpoint, Err::kLimit,
                 "an endpoint has at most " + std::to_string(core.config().links_max) + " links");
        return true;
    }
    auto profile =
        std::string_view(request.profile, strnlen(request.profile, sizeof request.profile));
    if (profile.empty()) profile = core.config().profile;
    urtp::Policy policy;
    urtp::Params params;
    if (urtp::resolve(profile, policy, params) != Err::kOk) {
        fail_job(endpoint, Err::kProfile, "known: " + urtp::policy_words());
        return true;
    }
    if (named) {
        name.secret = key;
        key = wire::key_of(name);
        if (endpoint.net().jobs().links().is_published(key)) {
            fail_job(endpoint, Err::kRankTaken, "an endpoint of that name is open here already");
            return true;
        }
    }
    urtp::TransportConfig config;
    config.rank = kNoRank;
    config.profile = profile;
    // Links try no longer packets.
    const PortInfo& info = endpoint.net().port().info;
    config.mtu = std::min(info.mtu, info.mtu_sure);
    endpoint.membership().set_reorder_wait(
        endpoint.net().reorder_wait({}, true));  // its peers are not known yet
    begin_transport(core, endpoint, config, std::vector<urtp::Peer>(slots));
    endpoint.membership().begin_links();
    auto links = std::make_unique<EndpointLinks>();
    links->slots.assign(slots, Slot::kVacant);
    links->was_told.assign(slots, false);
    endpoint.begin_links(std::move(links));
    endpoint.net().jobs().links().open(endpoint.handle(), key, slots, profile);
    if (named) endpoint.net().jobs().links().publish(endpoint.handle());
    endpoint.report({.kind = CompletionKind::kLinksOpen});
    return true;
}

void on_link(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    EndpointLinks& links = *endpoint.links();
    abi::LinkCall call;
    std::memcpy(&call, record.body.inline_octets, sizeof call);
    wire::LinkAddress address;
    std::memcpy(&address, call.address, sizeof address);
    const auto wait = static_cast<Nanos>(
        std::min<std::uint64_t>(call.timeout_ns, static_cast<std::uint64_t>(kNever / 4)));
    const Nanos deadline = now + (wait == 0 ? core.config().link_timeout : wait);
    Links& all = endpoint.net().jobs().links();
    Result<Rank> slot = Err::kClosed;
    if (endpoint.life().is_open()) {
        slot = Err::kLimit;
        const bool has_room = links.calls.size() < links.slots.size();
        if (has_room && wire::is_name(address)) {
            const auto name = std::bit_cast<wire::LinkName>(address);
            const Err error = all.find(endpoint.handle(), name, record.cookie, deadline, now);
            if (error == Err::kOk) {
                take_link_events(core, endpoint.net(), now);  // it is on this node
                return;
            }
            slot = error;
        } else if (has_room) {
            slot = all.call(endpoint.handle(), address, deadline, now);
        }
    }
    begin_call(endpoint, record.cookie, slot);
    take_link_events(core, endpoint.net(), now);  // a call to this node is over already
}

void on_unlink(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    EndpointLinks& links = *endpoint.links();
    const std::uint32_t slot = record.stream;
    if (slot >= links.slots.size() || links.slots[slot] != Slot::kTold) {
        bad_record(core, endpoint);
        return;
    }
    links.slots[slot] = Slot::kEnding;
    links.endings.push_back({static_cast<Rank>(slot), now + core.config().linger_max});
    endpoint.mark(Work::kControl);
}

// ---------------------------------------------------------------- events

void on_opened(Endpoint& endpoint, Rank slot) {
    const LinkEnd* end = endpoint.net().jobs().links().at(endpoint.handle(), slot);
    ULC_CHECK(end != nullptr && endpoint.links()->slots[slot] == Slot::kVacant);
    const Err made = endpoint.member()->link(
        slot, {end->mac, end->peer, end->incarnation, end->mtu}, {end->self, end->in, end->out});
    ULC_CHECK(made == Err::kOk);
    endpoint.membership().set_gone(slot, kHere);
    endpoint.membership().set_node(
        slot, endpoint.net().jobs().node_of(end->mac));  // watched once it is confirmed
    endpoint.outlet()->begin_source(slot);
    endpoint.links()->slots[slot] = Slot::kOpened;
    endpoint.links()->unconfirmed.push_back(slot);
}

void on_confirmed(Endpoint& endpoint, Rank slot) {
    EndpointLinks& links = *endpoint.links();
    ULC_CHECK(links.slots[slot] == Slot::kOpened);
    links.slots[slot] = Slot::kTold;
    links.was_told[slot] = true;
    std::erase(links.unconfirmed, slot);
    endpoint.membership().set_node(
        slot, endpoint.net().jobs().node_of(endpoint.member()->peer(slot).mac));
    const bool called = std::ranges::any_of(
        links.calls, [slot](const EndpointLinks::Call& call) { return call.slot == slot; });
    endpoint.report({.kind = CompletionKind::kLinked, .rank = slot, .stream = called ? 0U : 1U});
    answer_calls(endpoint, slot, Err::kOk);
    endpoint.mark(Work::kDeliver | Work::kTransmit | Work::kSettle);
}

void begin_vacating(Core& core, Endpoint& endpoint, Rank slot, Nanos now) {
    peer_gone(core, endpoint, slot, kGoneLeft, now);
    endpoint.reports().drop_end_of(slot);  // its client does not know it, or has let go
    std::erase(endpoint.links()->unconfirmed, slot);
    endpoint.links()->slots[slot] = Slot::kVacating;
    endpoint.links()->vacating.push_back(slot);
    endpoint.mark(Work::kControl);
}

void on_event(Core& core, Endpoint& endpoint, const LinkEvent& event, Nanos now) {
    switch (event.kind) {
        case LinkEventKind::kOpened:
            return on_opened(endpoint, event.slot);
        case LinkEventKind::kConfirmed:
            return on_confirmed(endpoint, event.slot);
        case LinkEventKind::kFailed:
            return answer_calls(endpoint, event.slot, event.error);
        case LinkEventKind::kDropped:
            answer_calls(endpoint, event.slot, Err::kPeerDied);
            return begin_vacating(core, endpoint, event.slot, now);
        case LinkEventKind::kUnlinked:
            return begin_vacating(core, endpoint, event.slot, now);
        case LinkEventKind::kPeerLeft:
            return peer_gone(core, endpoint, event.slot, kGoneLeft, now);
        case LinkEventKind::kPeerDied:
            return peer_gone(core, endpoint, event.slot, kGoneDied, now);
        case LinkEventKind::kCalled:
            return begin_call(endpoint, event.cookie,
                              event.error == Err::kOk ? Result<Rank>(event.slot) : event.error);
    }
}

// ---------------------------------------------------------------- slots on their way out

/// Everything for that peer is acknowledged, or given up.
bool sent_all(const Endpoint& endpoint, Rank slot) {
    return !endpoint.sends().has(slot) && endpoint.member()->drained(slot);
}

/// Goes on with slots whose client has let go of them. True: moved.
bool advance_endings(Core& core, Endpoint& endpoint, Nanos now) {
    EndpointLinks& links = *endpoint.links();
    Links& all = endpoint.net().jobs().links();
    const auto over = [&](const EndpointLinks::Ending& ending) {
        const LinkEnd::State state = all.at(endpoint.handle(), ending.slot)->state;
        if (state != LinkEnd::State::kUp) {  // the peer was faster
            begin_vacating(core, endpoint, ending.slot, now);
            return true;
        }
        if (!sent_all(endpoint, ending.slot) && now < ending.until) return false;
        links.slots[ending.slot] = Slot::kLeaving;
        all.unlink(endpoint.handle(), ending.slot, now);
        return true;
    };
    const std::size_t before = links.endings.size();
    std::erase_if(links.endings, over);
    return links.endings.size() != before;
}

/// Makes the transport let go of slots that are over. True: some became vacant.
bool vacate(Endpoint& endpoint, Nanos now) {
    EndpointLinks& links = *endpoint.links();
    const auto vacant = [&](Rank slot) {
        urtp::ReadyPacket packet;
        while (endpoint.member()->front(slot, packet))
            (void)endpoint.member()->pop(slot, now);
        if (endpoint.sends().has(slot)) return false;
        if (endpoint.member()->unlink(slot) == Err::kAgain) return false;
        endpoint.outlet()->forget(slot);
        endpoint.net().jobs().links().release(endpoint.handle(), slot);
        links.slots[slot] = Slot::kVacant;
        if (links.was_told[slot])
            endpoint.report({.kind = CompletionKind::kUnlinked, .rank = slot});
        links.was_told[slot] = false;
        return true;
    };
    const std::size_t before = links.vacating.size();
    std::erase_if(links.vacating, vacant);
    if (!links.vacating.empty()) endpoint.mark(Work::kSend | Work::kSettle);
    return links.vacating.size() != before;
}

}  // namespace

bool link_record(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    if (record.kind == SubmitKind::kOpenLinks) return on_open(core, endpoint, record);
    if (endpoint.links() == nullptr) {
        bad_record(core, endpoint);
        return true;
    }
    if (record.kind == SubmitKind::kLink) {
        on_link(core, endpoint, record, now);
    } else {
        on_unlink(core, endpoint, record, now);
    }
    return true;
}

bool take_link_events(Core& core, Net& net, Nanos now) {
    bool moved = false;
    LinkEvent event;
    while (net.jobs().links().poll_event(event)) {
        Endpoint* endpoint = core.find(event.endpoint);
        ULC_CHECK(endpoint != nullptr && endpoint->links() != nullptr);
        on_event(core, *endpoint, event, now);
        moved = true;
    }
    return moved;
}

void describe_links(const Endpoint& endpoint, CompletionRecord& out) {
    const wire::LinkAddress address = endpoint.net().jobs().links().address(endpoint.handle());
    out.stream = endpoint.member()->size();
    out.flags = abi::kCompleteInline;
    out.inline_length = sizeof address;
    std::memcpy(out.body.inline_octets, &address, sizeof address);
}

bool control_links(Core& core, Endpoint& endpoint, Nanos now) {
    EndpointLinks& links = *endpoint.links();
    bool moved = false;
    if (!links.endings.empty()) {
        moved = advance_endings(core, endpoint, now);
        moved |= take_link_events(core, endpoint.net(), now);
    }
    if (!links.vacating.empty()) moved |= vacate(endpoint, now);
    return moved;
}

bool may_deliver_links(Core& core, Endpoint& endpoint, Nanos now) {
    EndpointLinks& links = *endpoint.links();
    if (!links.unconfirmed.empty()) {
        const std::vector<Rank> unconfirmed = links.unconfirmed;
        urtp::ReadyPacket packet;
        for (const Rank slot : unconfirmed)
            if (endpoint.member()->front(slot, packet))
                endpoint.net().jobs().links().confirm(endpoint.handle(), slot, now);
        take_link_events(core, endpoint.net(), now);
    }
    if (endpoint.reports().has(Reports::Stage::kLinks))
        (void)write_reports(core, endpoint, Reports::Stage::kLinks);
    return !endpoint.reports().has(Reports::Stage::kLinks);
}

bool links_wait(const Endpoint& endpoint) noexcept {
    const EndpointLinks& links = *endpoint.links();
    return !links.endings.empty() || !links.vacating.empty();
}

}  // namespace ulc::engine
