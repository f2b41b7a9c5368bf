// SPDX-License-Identifier: BSD-3-Clause
// The receive side of the fast path: frame → completion. Inline, for quiet.cc and the send side.
//
//   deliver_next   the next frame of a predicted stream: one comparison, and what differs is judged
//   deliver_short  any other short message: looked up and judged in full; makes the prediction
//   take_acks      a frame of acknowledgements alone, by the transport's general step
#pragma once

#include <algorithm>

#include "engine/core.h"
#include "urtp/fast.h"
#include "wire/build.h"
#include "wire/parse.h"

namespace ulc::engine {

inline void count_delivered(Core& core, std::uint32_t messages) noexcept {
    core.counters.add(Counter::completions, messages);
    core.counters.add(Counter::messages_received, messages);
}

/// Notes what a short message or acknowledgement that the endpoint took left to do.
[[gnu::always_inline]] inline void after_short(Endpoint& endpoint) noexcept {
    if (endpoint.member->has_tx()) [[unlikely]]
        endpoint.mark(Work::kTransmit);
    if (!endpoint.sends.empty()) [[unlikely]]
        endpoint.mark(Work::kSend);
}

/// Longest frame whose payload fits in a completion. One that is as long and whose payload does not
/// fit is delivered by deliver_short().
inline constexpr std::uint32_t kInsideFrameMax =
    wire::kHeadOctets + sizeof(wire::AckEntry) + sizeof(Be64) + abi::kInlineOctetsMax;

/// Delivers the next frame of a stream that was predicted, and leaves counting to the caller.
/// kInside: its payload goes inside the completion, else into a block. Returns its endpoint;
/// nullptr: nothing was changed.
template <bool kInside>
[[gnu::always_inline]] inline Endpoint* deliver_next(Core& core, Net& net, Segment& segment,
                                                     Nanos now) {
    const std::byte* octets = segment.frame;
    if (segment.length < wire::kFrameOctetsMin || segment.tail != nullptr) return nullptr;
    const NextFrame& next = net.predictions.place_of(octets);
    if (!net.predictions.holds(next) || !next.of.head.matches(octets)) return nullptr;
    Endpoint& endpoint = *next.endpoint;
    urtp::Transport& member = *endpoint.member;
    wire::ShortBody frame;
    if (!member.is_next(next.of, octets, segment.length, frame) ||
        (frame.length <= abi::kInlineOctetsMax) != kInside)
        return nullptr;
    endpoint::Outlet& outlet = *endpoint.outlet;
    const urtp::RxStream& rx = *next.of.rx;
    endpoint::Claim claim{outlet.claim_next(frame.has_tag(), frame.tag, endpoint.completions)};
    if constexpr (!kInside) outlet.claim_block(claim, frame.length, true);
    if (claim.out == nullptr) return nullptr;
    *next.heard = now;
    if (next.frames != nullptr) ++*next.frames;
    const bool more = member.take_next(next.of, frame, now);
    const urtp::ShortMessage message{rx.id, frame.length, frame.payload, frame.tag,
                                     frame.has_tag()};
    if constexpr (kInside) {
        outlet.deliver_inside(rx.session->rank, message, *claim.out, endpoint.completions);
    } else {
        outlet.deliver_block(rx.session->rank, message, claim, &segment, endpoint.completions,
                             core.counters);
    }
    if (kInside || !claim.lends) net.port.pool.drop(&segment);
    if (more) [[unlikely]]
        after_short(endpoint);
    return &endpoint;
}

/// Delivers a short frame, and predicts the next one of its stream. Returns its endpoint; nullptr:
/// nothing was changed.
[[gnu::noinline]] inline Endpoint* deliver_short(Core& core, Net& net, Segment& segment,
                                                 Nanos now) {
    wire::ShortFrame frame;
    if (!urtp::kFastPath || core.config.crc || segment.tail != nullptr ||
        !wire::parse_short(segment.frame, segment.length, core.config.ether_type, frame))
        return nullptr;
    LocalGroup* group = nullptr;
    Endpoint* endpoint = nullptr;
    if (frame.to_group()) {
        group = net.groups.find(frame.handle);
        if (group == nullptr || group->members.size() != 1) return nullptr;
        endpoint = group->members[0];
    } else {
        endpoint = core.find(frame.handle);
    }
    if (endpoint == nullptr || endpoint->net != &net || endpoint->state != EndpointState::kOpen ||
        endpoint->member == nullptr)
        return nullptr;
    urtp::Transport& member = *endpoint->member;
    urtp::RxStream* stream = member.predict(frame);
    if (stream == nullptr || frame.rank >= endpoint->gone.size() ||
        endpoint->gone[frame.rank] != kHere)
        return nullptr;
    const endpoint::Claim claim = endpoint->outlet->claim_short(
        frame.rank, frame.length, frame.has_tag(), frame.tag, true, endpoint->completions);
    if (claim.out == nullptr) return nullptr;
    Nanos* heard = net.jobs.place_of_heard(endpoint->nodes[frame.rank]);
    if (heard == nullptr) heard = &net.heard_else;
    *heard = now;
    const StreamId name = member.take_short(frame, *stream, now);
    if (group != nullptr) ++group->frames;
    endpoint->outlet->deliver_to(claim, frame.rank,
                                 {name, frame.length, frame.payload, frame.tag, frame.has_tag()},
                                 &segment, endpoint->completions, core.counters);
    count_delivered(core, 1);
    after_short(*endpoint);
    // The next one goes by a prediction, unless it would have more to see to.
    if (!endpoint->has_work())
        net.predictions.place_of(segment.frame) = {
            member.predict_next(segment.frame, *stream), endpoint, heard,
            group != nullptr ? &group->frames : nullptr, net.predictions.epoch()};
    if (!claim.lends) net.port.pool.drop(&segment);
    return endpoint;
}

/// Takes a frame of acknowledgements alone, of a peer that is known, as any round does. It changes
/// nothing that predictions stand for, so the quiet goes on unless there is something to send or to
/// tell. Returns its endpoint; nullptr: nothing was changed.
[[gnu::noinline]] inline Endpoint* take_acks(Core& core, Net& net, Segment& segment, Nanos now) {
    wire::FrameView view;
    if (core.config.crc || segment.tail != nullptr || segment.length < wire::kFrameOctetsMin ||
        segment.frame[sizeof(wire::EthernetHeader)] !=
            std::byte{wire::version_type(wire::FrameType::kAck)} ||
        wire::parse_by_rules(segment.frame, segment.length, core.config.ether_type, view) !=
            Counter::kCount ||
        view.source == net.port.info.mac)
        return nullptr;
    Endpoint* endpoint = core.find(view.handle);
    if (endpoint == nullptr || endpoint->net != &net || endpoint->state != EndpointState::kOpen ||
        endpoint->member == nullptr)
        return nullptr;
    urtp::Transport& member = *endpoint->member;
    if (view.rank >= endpoint->gone.size() || endpoint->gone[view.rank] != kHere ||
        member.find_session(view.rank) == nullptr || member.peer(view.rank).mac != view.source)
        return nullptr;
    net.jobs.heard(endpoint->nodes[view.rank], now);
    member.on_frame(view, &segment, now);
    if (member.outlook().event) [[unlikely]]
        endpoint->mark(Work::kSettle);
    after_short(*endpoint);
    return endpoint;
}

/// Settles an endpoint that short messages changed: its timer, and a client that sleeps.
inline void settle_short(Core& core, Endpoint& endpoint) {
    const Nanos timer = endpoint.member->next_timer();
    endpoint.timer = timer;
    core.quiet_until = endpoint.has_work() ? 0 : std::min(core.quiet_until, timer);
    if (endpoint.given() == endpoint.woken_at) return;
    endpoint.woken_at = endpoint.given();
    if (endpoint.notified) notify_client(core, endpoint);
}

}  // namespace ulc::engine
