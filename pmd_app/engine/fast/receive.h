// SPDX-License-Identifier: BSD-3-Clause
// A short message on its way in: frame → completion. Inline, for quiet.cc.
#pragma once

#include <algorithm>

#include "engine/core.h"
#include "urtp/fast.h"

namespace ulc::engine {

inline void count_delivered(Core& core, std::uint32_t messages) noexcept {
    core.counters().add(Counter::completions, messages);
    core.counters().add(Counter::messages_received, messages);
}

/// Tries the records again that wait in the ring of an endpoint, in this round or the next one.
[[gnu::noinline]] inline void retry_waiting(Core& core, Endpoint& endpoint) noexcept {
    endpoint.inlet().retry();
    core.quiet().look_again(endpoint);
}

/// Notes what a short message left to do at the endpoint that took it.
[[gnu::always_inline]] inline void after_short(Core& core, Endpoint& endpoint) noexcept {
    if (endpoint.member()->has_tx()) [[unlikely]]
        endpoint.mark(Work::kTransmit);
    if (!endpoint.sends().empty()) [[unlikely]]
        endpoint.mark(Work::kSend);
    if (endpoint.inlet().waits()) [[unlikely]]
        retry_waiting(core, endpoint);
}

/// Longest frame of a message that is inside its completion.
inline constexpr std::uint32_t kInsideFrameMax =
    wire::kHeadOctets + sizeof(wire::AckEntry) + sizeof(Be64) + abi::kInlineOctetsMax;

/// Notes what a message with an acknowledgement, or one alone, left to do.
[[gnu::noinline]] inline void after_acknowledgement(Core& core, Endpoint& endpoint) noexcept {
    after_short(core, endpoint);
    if (endpoint.member()->outlook().event) endpoint.mark(Work::kSettle);
}

/// Judges a received frame: whether frames of its kind and stream go to the client of one endpoint,
/// at once: short messages, or packets from the middle of the message that is arriving. Keeps the
/// verdict, and returns it. nullptr: the general steps decide.
[[gnu::noinline]] inline const FrameVerdict* judge(Core& core, Net& net, const Segment& segment) {
    const std::byte* frame = segment.frame;
    if (core.config().crc || segment.length < wire::kFrameOctetsMin) return nullptr;
    const bool is_part = wire::has_part_head(frame, core.config().ether_type);
    if (!is_part &&
        (segment.tail != nullptr || !wire::has_short_head(frame, core.config().ether_type)))
        return nullptr;
    FrameVerdict& out =
        is_part ? net.verdicts().place_of_part(frame) : net.verdicts().place_of(frame);
    out.epoch = Verdicts::kNever;
    const auto& header =
        *reinterpret_cast<const wire::Header*>(frame + sizeof(wire::EthernetHeader));
    LocalGroup* group = nullptr;
    Endpoint* endpoint = nullptr;
    if (is_group(header.handle)) {
        group = net.groups().find(header.handle);
        if (group == nullptr || group->members.size() != 1) return nullptr;
        endpoint = group->members[0];
    } else {
        endpoint = core.find(header.handle);
    }
    const Rank rank = header.rank;
    if (endpoint == nullptr || !endpoint->is_on(net) || !endpoint->life().is_open() ||
        endpoint->member() == nullptr || !endpoint->member()->predict(frame, out.of) ||
        !endpoint->membership().is_here(rank) ||
        !(is_part ? endpoint->outlet()->takes_parts(rank, out.of.rx->id)
                  : endpoint->outlet()->may_claim(rank)))
        return nullptr;
    out.is_part = is_part;
    out.heard = net.place_of_heard(endpoint->membership().node_of(rank));
    out.endpoint = endpoint;
    out.frames = group != nullptr ? &group->frames : nullptr;
    out.sends_wait = !endpoint->sends().empty();
    out.epoch = core.verdicts_epoch();
    return &out;
}

/// Delivers the short message in a frame, or the packet from the middle of a message, by a verdict
/// that its head matches. The caller counts. kInside: only a message that goes inside its
/// completion. Returns its endpoint; nullptr: nothing was changed.
template <bool kInside>
[[gnu::always_inline]] inline Endpoint* act(Core& core, Net& net, const FrameVerdict& verdict,
                                            Segment& segment, Nanos now) {
    Endpoint& endpoint = *verdict.endpoint;
    urtp::Transport& member = *endpoint.member();
    const urtp::RxStream& rx = *verdict.of.rx;
    const Rank source = rx.session->rank;
    const bool is_part = !kInside && verdict.is_part;
    wire::ShortBody frame;
    if (!member.is_next(verdict.of, segment.frame, segment.length, frame) ||
        (kInside && frame.length > abi::kInlineOctetsMax))
        return nullptr;
    endpoint::Outlet& outlet = *endpoint.outlet();
    endpoint::Claim claim;
    if (is_part) {
        const std::byte* payload = segment.tail != nullptr ? segment.tail : frame.payload;
        if (frame.has_tag() || !outlet.take_part(source, {payload, frame.length})) return nullptr;
    } else {
        claim = outlet.claim<kInside>(frame.length, frame.has_tag(), frame.tag, true);
        if (claim.out == nullptr) [[unlikely]]
            return nullptr;
    }
    *verdict.heard = now;
    if (verdict.frames != nullptr) ++*verdict.frames;
    const bool more = member.take_next(verdict.of, frame, now);
    if (!is_part)
        outlet.deliver_to(claim, source,
                          {rx.id, frame.length, frame.payload, frame.tag, frame.has_tag()},
                          &segment);
    if (!claim.lends) net.port().pool.drop(&segment);
    if (more || verdict.sends_wait || endpoint.inlet().waits()) [[unlikely]]
        after_acknowledgement(core, endpoint);
    return &endpoint;
}

/// Returns the kept verdict on packets from the middle of a message; nullptr: there is none. frame:
/// at least kFrameOctetsMin.
[[gnu::always_inline]] inline const FrameVerdict* kept_part(const Core& core, Net& net,
                                                            const std::byte* frame) noexcept {
    const FrameVerdict& verdict = net.verdicts().place_of_part(frame);
    return core.holds(verdict) && verdict.of.head.matches(frame) ? &verdict : nullptr;
}

/// Returns the kept verdict on a received frame; nullptr: there is none.
[[gnu::always_inline]] inline const FrameVerdict* kept_verdict(const Core& core, Net& net,
                                                               const Segment& segment) noexcept {
    if (segment.length < wire::kFrameOctetsMin || segment.tail != nullptr) return nullptr;
    const FrameVerdict& verdict = net.verdicts().place_of(segment.frame);
    return core.holds(verdict) && verdict.of.head.matches(segment.frame) ? &verdict : nullptr;
}

/// Counts of received frames.
struct Received {
    std::uint64_t octets = 0;
    std::uint32_t frames = 0;
    std::uint32_t messages = 0;  ///< short ones
    std::uint32_t parts = 0;     ///< packets from the middle of messages

    void count(Core& core) const noexcept {
        core.counters().add(Counter::rx_frames, frames);
        core.counters().add(Counter::rx_bytes, octets);
        core.counters().add(Counter::data_received, messages + parts);
        count_delivered(core, messages);
    }
};

/// Settles an endpoint that short messages changed: its timer, and a client that sleeps.
inline void settle_short(Core& core, Endpoint& endpoint) {
    const Nanos timer = endpoint.member()->next_timer();
    endpoint.set_timer(timer);
    if (endpoint.has_work()) {
        core.quiet().leave();
    } else {
        core.quiet().limit(timer);
    }
    if (endpoint.owes_wake() && endpoint.take_wake()) notify_client(core, endpoint);
}

}  // namespace ulc::engine
