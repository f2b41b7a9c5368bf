// SPDX-License-Identifier: BSD-3-Clause
// The send side of the fast path: record → frame, or completion on this node. Inline, for quiet.cc.
//
//   send_next, pass_next  the next message of a predicted stream: only what changes is judged
//   send_first, pass_to   any other short message: judged in full; makes the prediction
#pragma once

#include "engine/fast/receive.h"
#include "engine/fast/short_record.h"

namespace ulc::engine {

/// Gives a message to its endpoint on this node, and predicts the next one. Returns the endpoint;
/// nullptr: nothing was changed. message: by value, so that the caller keeps its own in registers.
[[gnu::noinline]] inline Endpoint* pass_to(Core& core, Endpoint& from, urtp::Session& session,
                                           const urtp::ShortMessage message, Nanos now) {
    const Mac& here = from.net->port.info.mac;
    const urtp::Peer& peer = from.member->peer(static_cast<Rank>(message.stream));
    Endpoint* to = core.find(peer.handle);
    if (to == nullptr || to->net != from.net || to->job != from.job ||
        to->state != EndpointState::kOpen || to->member == nullptr || peer.mac != here)
        return nullptr;
    const Rank rank = from.member->rank();
    if (rank >= to->member->size() || to->member->peer(rank).mac != here) return nullptr;
    const endpoint::Claim claim = to->outlet->claim_short(rank, message.octets, message.has_tag,
                                                          message.tag, false, to->completions);
    if (claim.out == nullptr) return nullptr;
    if (!from.member->pass(message, session, *to->member, now)) {
        to->outlet->unclaim(claim);
        return nullptr;
    }
    to->outlet->deliver_to(claim, rank, message, nullptr, to->completions, core.counters);
    count_delivered(core, 1);
    after_short(*to);
    core.counters.add(Counter::passed_messages);
    Predictions& predictions = from.net->predictions;
    predictions.place_of(from.handle, message.stream) = {
        .of = {.session = &session},
        .to = to,
        .endpoint = from.handle,
        .stream = message.stream,
        .epoch = predictions.epoch(),
    };
    return to;
}

/// Gives the next message to an endpoint of this node that was predicted. False: nothing was
/// changed.
[[gnu::noinline, gnu::hot]] inline bool pass_next(Core& core, Endpoint& from,
                                                  const NextMessage& next, const ShortRecord record,
                                                  Nanos now) {
    const urtp::ShortMessage message = record.message(next.stream);
    Endpoint& to = *next.to;
    abi::CompletionRecord* out =
        to.outlet->claim_next(message.has_tag, message.tag, to.completions);
    if (out == nullptr || !from.member->pass(message, *next.of.session, *to.member, now))
        return false;
    to.outlet->deliver_inside(from.member->rank(), message, *out, to.completions);
    count_delivered(core, 1);
    after_short(to);
    core.counters.add(Counter::passed_messages);
    return true;
}

/// Makes the frame of a short message to a group of which this endpoint is the only member here,
/// and a prediction. Returns nullptr if nothing was changed.
inline Segment* multicast_short(Endpoint& endpoint, const urtp::ShortMessage& message,
                                NextMessage& next, Nanos now) {
    if (!is_group(message.stream)) return nullptr;
    const LocalGroup* here = endpoint.net->groups.find(message.stream);
    const urtp::Group* group = endpoint.member->find_group(message.stream);
    if (here == nullptr || group == nullptr || here->members.size() != 1 ||
        here->members[0] != &endpoint)
        return nullptr;
    Segment* frame = endpoint.member->transmit_short(message, *group, now);
    if (frame != nullptr) next.of = endpoint.member->predict_next(*group);
    return frame;
}

/// Makes the frame of a short message that was not predicted, and predicts the next message.
/// Returns nullptr if nothing was changed. session: with the receiver; nullptr: none, or a group's.
[[gnu::noinline]] inline Segment* send_first(Endpoint& endpoint, urtp::Session* session,
                                             const urtp::ShortMessage message, Nanos now) {
    Predictions& predictions = endpoint.net->predictions;
    NextMessage& next = predictions.place_of(endpoint.handle, message.stream);
    Segment* frame = nullptr;
    if (session == nullptr) {
        frame = multicast_short(endpoint, message, next, now);
    } else {
        frame = endpoint.member->transmit_short(message, *session, now);
        if (frame != nullptr) next.of = endpoint.member->predict_next(*session);
    }
    if (frame == nullptr) return nullptr;
    next.to = nullptr;
    next.endpoint = endpoint.handle;
    next.stream = message.stream;
    next.epoch = predictions.epoch();
    return frame;
}

/// True if the net has frames to send from, beyond those that are kept for control.
[[gnu::always_inline]] inline bool has_segments(const Net& net) noexcept {
    const SegmentPool& pool = net.port.pool;
    return net.link_is_up && pool.available(pool.context) > endpoint::kKeptForControl;
}

/// True if the net takes one more frame of a client.
[[gnu::always_inline]] inline bool may_transmit(const Core& core, const Net& net) noexcept {
    const Transmitter& wire = net.transmitter;
    if (!wire.has_all_to_give()) {
        const bool shared = core.accounts.users().size() > 1;
        if (!(shared ? wire.may_push_shared() : wire.may_push())) return false;
    }
    return has_segments(net);
}

/// Makes the frame of the next message of a stream that was predicted. Returns nullptr if nothing
/// was changed.
template <typename Record>
[[gnu::noinline, gnu::hot]] inline Segment* send_next(urtp::Transport& member,
                                                      const NextMessage& next, const Record record,
                                                      Nanos now) {
    return member.transmit_next(next.of, record.message(next.stream), now);
}

}  // namespace ulc::engine
