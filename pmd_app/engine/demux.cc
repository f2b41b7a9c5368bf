// SPDX-License-Identifier: BSD-3-Clause
// Passes frames to the receivers that they name: parse, early drop (URTP §3.2.1), then by endpoint
// handle or group handle. All members here share a group frame: one segment, one reference each. A
// handle means an endpoint of the net on which the frame came, and nothing on any other.
#include <utility>

#include "base/check.h"
#include "engine/fast/receive.h"

namespace ulc::engine {
namespace {

constexpr std::size_t kPrefetchAhead = 2;

/// The sender of a frame under a slot that is not its own has a link that is not here.
[[gnu::noinline]] void hint_at(Net& net, const Endpoint& endpoint, const wire::FrameView& view,
                               Nanos now) {
    net.jobs().links().unknown_slot(endpoint.handle(), view.rank, view.source, now);
}

/// True: a peer that is known acknowledged, no more.
bool to_member(Core& core, Net& net, Endpoint& endpoint, const wire::FrameView& view,
               Segment* segment, bool from_wire, Nanos now) {
    if (endpoint.member() == nullptr) {
        core.counters().add(Counter::drop_not_formed);
        net.port().pool.drop(segment);
        return false;
    }
    urtp::Transport& member = *endpoint.member();
    bool known = false;
    // A rank is alive if its node sends for it; the member drops frames from elsewhere.
    if (from_wire && view.rank < endpoint.membership().ranks() &&
        member.peer(view.rank).mac == view.source) {
        net.jobs().heard(endpoint.membership().node_of(view.rank), now);
        known =
            endpoint.membership().is_here(view.rank) && member.find_session(view.rank) != nullptr;
        if (!endpoint.membership().is_here(view.rank)) [[unlikely]] {
            net.jobs().held_for_gone(endpoint.membership().job(), view.rank, now);
            if (member.for_links()) hint_at(net, endpoint, view, now);
        }
    } else if (from_wire && member.for_links()) [[unlikely]] {
        hint_at(net, endpoint, view, now);
    }
    member.on_frame(view, segment, now);
    if (known && view.type == wire::FrameType::kAck && endpoint.life().is_open()) {
        after_acknowledgement(core, endpoint);
        return true;
    }
    endpoint.mark(Work::kDeliver | Work::kSettle);
    if (!endpoint.sends().empty()) endpoint.mark(Work::kSend);
    endpoint.inlet().retry();
    return false;
}

void to_group(Core& core, Net& net, const wire::FrameView& view, Segment* segment,
              const Endpoint* from, Nanos now) {
    LocalGroup* group = net.groups().find(view.handle);
    if (group == nullptr) {
        core.counters().add(from == nullptr ? net.filter().reason_of_unwanted(view.destination)
                                            : Counter::drop_unknown_handle);
        net.port().pool.drop(segment);
        return;
    }
    if (from == nullptr) ++group->frames;
    for (Endpoint* member : group->members) {
        if (member == from) continue;
        net.port().pool.hold(segment);
        (void)to_member(core, net, *member, view, segment, from == nullptr, now);
    }
    net.port().pool.drop(segment);
}

/// Returns true if this node has sent the frame. The jobs judge those of their own type.
bool is_echo(const Net& net, const wire::FrameView& view) noexcept {
    return view.source == net.port().info.mac && view.type != wire::FrameType::kJob;
}

/// Parses a frame whose tag names no VLAN without that tag.
[[gnu::noinline]] Counter parse_untagged(const Core& core, const Net& net, Segment& segment,
                                         wire::FrameView& view) noexcept {
    const std::uint16_t ether_type = core.config().ether_type;
    const std::size_t octets = wire::remove_priority_tag(segment.frame, segment.length, ether_type);
    if (octets == 0) return Counter::drop_vlan;
    segment.length = static_cast<std::uint32_t>(octets);
    const Counter reason = wire::parse(segment.frame, octets, ether_type, view, core.config().crc);
    return reason == Counter::kCount && is_echo(net, view) ? Counter::drop_own_echo : reason;
}

}  // namespace

namespace {

/// Parses one frame, and passes it to the receivers that it names. Returns the endpoint to which it
/// brought acknowledgements alone, which leave kept verdicts as they are; nullptr: none.
[[gnu::flatten]] Endpoint* take_frame(Core& core, Net& net, Segment* segment, Nanos now) {
    wire::FrameView view;
    Counter reason = wire::parse(segment->frame, segment->length, core.config().ether_type, view,
                                 core.config().crc);
    if (reason == Counter::kCount) {
        if (is_echo(net, view)) reason = Counter::drop_own_echo;
    } else if (reason == Counter::drop_vlan) {
        reason = parse_untagged(core, net, *segment, view);
    }
    if (reason != Counter::kCount) {
        core.counters().add(reason);
        net.port().pool.drop(segment);
        return nullptr;
    }
    if (view.type == wire::FrameType::kJob || view.type == wire::FrameType::kNode ||
        view.type == wire::FrameType::kLink) {
        net.jobs().on_frame(view, now);
        net.port().pool.drop(segment);
        return nullptr;
    }
    if (segment->tail != nullptr) {
        ULC_CHECK(view.length == segment->tail_octets);
        view.body = segment->tail;
    }
    return to_members(core, net, view, segment, nullptr, now);
}

}  // namespace

Endpoint* to_members(Core& core, Net& net, const wire::FrameView& view, Segment* segment,
                     const Endpoint* from, Nanos now) {
    if (is_group(view.handle)) {
        to_group(core, net, view, segment, from, now);
        return nullptr;
    }
    Endpoint* endpoint = core.find(view.handle);
    const bool known = endpoint != nullptr && endpoint->is_on(net);
    if (!known || !endpoint->life().takes_frames()) {
        core.counters().add(Counter::drop_unknown_handle);
        if (from == nullptr && view.destination == net.port().info.mac)
            net.jobs().unknown_handle(view.source, view.handle, now);
        net.port().pool.drop(segment);
        return nullptr;
    }
    return to_member(core, net, *endpoint, view, segment, from == nullptr, now) ? endpoint
                                                                                : nullptr;
}

namespace {

/// Delivers a frame by its verdict. Returns its endpoint; nullptr: nothing was changed.
[[gnu::noinline, gnu::hot]] Endpoint* deliver_one(Core& core, Net& net, Segment& segment,
                                                  Received& received, Nanos now) {
    const FrameVerdict* verdict = kept_verdict(core, net, segment);
    if (verdict == nullptr && segment.length >= wire::kFrameOctetsMin)
        verdict = kept_part(core, net, segment.frame);
    if (verdict == nullptr) verdict = judge(core, net, segment);
    if (verdict == nullptr) return nullptr;
    std::uint32_t& count = verdict->is_part ? received.parts : received.messages;
    Endpoint* endpoint = act<false>(core, net, *verdict, segment, now);
    if (endpoint != nullptr) ++count;
    return endpoint;
}

}  // namespace

Endpoint* take_one(Core& core, Net& net, Segment& segment, Received& received, Nanos now) {
    ++received.frames;
    received.octets += segment.length;
    Endpoint* endpoint = deliver_one(core, net, segment, received, now);
    if (endpoint == nullptr) endpoint = take_frame(core, net, &segment, now);
    if (endpoint == nullptr) core.end_verdicts();
    return endpoint;
}

bool receive_burst(Core& core, Net& net, std::uint16_t count, Nanos now) {
    Received received;
    Endpoint* last = nullptr;
    bool all = true;
    for (std::uint16_t n = 0; n < count; ++n) {
        if (n + kPrefetchAhead < count) __builtin_prefetch(net.burst()[n + kPrefetchAhead]->frame);
        Endpoint* endpoint = take_one(core, net, *net.burst()[n], received, now);
        if (endpoint == nullptr) {
            all = false;
            continue;
        }
        if (endpoint != last && last != nullptr) settle_short(core, *last);
        last = endpoint;
    }
    if (last != nullptr) settle_short(core, *last);
    received.count(core);
    return all;
}

bool receive(Core& core, Net& net, Nanos now) {
    if (net.lands()) return receive_landing(core, net, now);
    const std::uint16_t count = net.take_burst();
    net.arrivals().took(count == kRxBurst, now);
    if (count == 0) return false;
    net.show_received(net.burst(), count);
    (void)receive_burst(core, net, count, now);
    return true;
}

}  // namespace ulc::engine
