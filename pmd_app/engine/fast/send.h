// SPDX-License-Identifier: BSD-3-Clause
// A short message on its way out: record → frame, or completion on this node. Inline, for quiet.cc
// and drain.cc.
#pragma once

#include "endpoint/short_record.h"
#include "engine/fast/receive.h"

namespace ulc::engine {

using endpoint::BlockRecord;
using endpoint::ShortRecord;

/// Returns the endpoint of this node that gets messages of a session; nullptr: not at once.
inline Endpoint* receiver_here(Core& core, const Endpoint& from, Rank peer_rank) {
    const Mac& here = from.net().port().info.mac;
    const urtp::Peer& peer = from.member()->peer(peer_rank);
    Endpoint* to = core.find(peer.handle);
    if (to == nullptr || !to->is_on(from.net()) ||
        to->membership().job() != from.membership().job() || !to->life().is_open() ||
        to->member() == nullptr || peer.mac != here)
        return nullptr;
    const Rank rank = from.member()->rank();
    const bool knows = to->member()->rank() == peer_rank && rank < to->member()->size() &&
                       to->member()->peer(rank).mac == here;
    return knows && to->outlet()->may_claim(rank) ? to : nullptr;
}

/// Judges a stream: whether short messages of the client go there at once, as a frame to one
/// receiver or to the only group of which no other member is here, or to an endpoint of this node.
/// False: the general steps decide.
[[gnu::noinline]] inline bool judge(Core& core, Endpoint& endpoint, StreamId stream,
                                    SendVerdict& out) {
    out.epoch = Verdicts::kNever;
    if (!endpoint.life().is_open() || endpoint.member() == nullptr ||
        !endpoint.sends().passes_short())
        return false;
    urtp::Transport& member = *endpoint.member();
    out.to = nullptr;
    if (is_group(stream)) {
        const LocalGroup* here = endpoint.net().groups().find(stream);
        const urtp::Group* group = member.find_group(stream);
        if (here == nullptr || group == nullptr || group->tx == nullptr ||
            here->members.size() != 1 || here->members[0] != &endpoint)
            return false;
        out.of = member.predict(*group);
    } else {
        urtp::Session* session = member.find_session(stream);
        if (session == nullptr || session->tx == nullptr) return false;
        out.of = member.predict(*session);
        if (session->local) {
            out.to = session->gone ? nullptr : receiver_here(core, endpoint, session->rank);
            if (out.to == nullptr) return false;
            out.of.theirs = out.to->member()->takes_passed(member.rank());
            if (out.of.theirs == nullptr) return false;
        }
    }
    out.endpoint = endpoint.handle();
    out.stream = stream;
    out.epoch = core.verdicts_epoch();
    return true;
}

/// Gives a message to its endpoint of this node. False: nothing was changed. message: by value, so
/// that the caller keeps its own in registers.
template <bool kInside>
[[gnu::noinline, gnu::hot]] inline bool pass(Core& core, Endpoint& from, const SendVerdict& verdict,
                                             const urtp::ShortMessage message, Nanos now) {
    Endpoint& to = *verdict.to;
    const endpoint::Claim claim =
        to.outlet()->claim<kInside>(message.octets, message.has_tag, message.tag, false);
    if (claim.out == nullptr) return false;
    if (!from.member()->pass(verdict.of, *to.member(), now)) {
        to.outlet()->unclaim(claim);
        return false;
    }
    to.outlet()->deliver_to(claim, from.member()->rank(), message, nullptr);
    count_delivered(core, 1);
    after_short(core, to);
    core.counters().add(Counter::passed_messages);
    return true;
}

/// True if the net has frames to send from.
[[gnu::always_inline]] inline bool has_segments(const Net& net) noexcept {
    return net.watch().link_is_up() && net.port().pool.has_for_data();
}

/// True if the net takes one more frame of a client.
[[gnu::always_inline]] inline bool may_transmit(const Core& core, const Net& net) noexcept {
    const Transmitter& wire = net.transmitter();
    if (!wire.has_all_to_give()) {
        const bool shared = core.accounts().users().size() > 1;
        if (!(shared ? wire.may_push_shared() : wire.may_push())) return false;
    }
    return has_segments(net);
}

/// The end of a short message: a frame for the port, the endpoint of this node that has it, or a
/// frame in the queue of its transport.
struct Sent {
    Segment* frame = nullptr;
    Endpoint* to = nullptr;
    bool queued = false;

    explicit operator bool() const noexcept { return frame != nullptr || to != nullptr || queued; }
};

/// Sends a short message by its verdict. kQueues: its frame waits for the round's transmit step;
/// else the net takes a frame. None: nothing was changed.
template <bool kQueues, typename Record>
[[gnu::always_inline]] inline Sent act(Core& core, Endpoint& from, const SendVerdict& verdict,
                                       const Record& record, Nanos now) {
    if (verdict.to != nullptr) [[unlikely]] {
        const urtp::ShortMessage message = record.message(verdict.stream);
        const bool passed = pass<Record::kInside>(core, from, verdict, message, now);
        return {.to = passed ? verdict.to : nullptr};
    }
    if constexpr (kQueues) {
        return {.queued =
                    from.net().port().pool.has_for_data() &&
                    from.member()->queue_next(verdict.of, record.message(verdict.stream), now)};
    } else {
        return {.frame =
                    from.member()->transmit_next(verdict.of, record.message(verdict.stream), now)};
    }
}

/// Sends the message of a record. None: nothing was changed; the general steps decide.
template <bool kQueues, typename Record>
[[gnu::always_inline]] inline Sent send_message(Core& core, Endpoint& from, const Record& record,
                                                Nanos now) {
    const StreamId stream = record.stream();
    SendVerdict& verdict = from.net().verdicts().place_of(from.handle(), stream);
    if (!core.holds(verdict) || !verdict.is_of(from.handle(), stream)) [[unlikely]]
        if (!judge(core, from, stream, verdict)) return {};
    if (!kQueues && verdict.to == nullptr && !may_transmit(core, from.net())) return {};
    return act<kQueues>(core, from, verdict, record, now);
}

/// Sends a message in the arena of its client, as send_short().
template <bool kQueues>
[[gnu::noinline, gnu::hot]] inline Sent send_block(Core& core, Endpoint& from,
                                                   const ShortRecord head, Nanos now) {
    if (from.member() == nullptr) return {};
    const BlockRecord record(head, from.region(), from.member()->short_octets_max());
    if (!record.is_valid()) return {};
    const Sent sent = send_message<kQueues>(core, from, record, now);
    if (sent) from.outlet()->end_send(record.cookie(), Err::kOk);
    return sent;
}

/// Leaves the endpoint's next record in the ring if it is a short message whose stream has no
/// window, and those behind it too. False: the general steps decide.
[[gnu::noinline]] inline bool wait_in_ring(Endpoint& endpoint, Nanos now) {
    if (!endpoint.life().is_open() || endpoint.member() == nullptr ||
        !endpoint.sends().passes_short())
        return false;
    const ShortRecord head(endpoint.inlet().peek());
    if (!head.is_short() &&
        !BlockRecord(head, endpoint.region(), endpoint.member()->short_octets_max()).is_valid())
        return false;
    const StreamId stream = head.stream();
    return endpoint.member()->lacks_window(stream, now) && endpoint.inlet().wait(stream);
}

/// Sends the message of a record if it is short. None: nothing was changed; the general steps
/// decide. The caller counts.
template <bool kQueues>
[[gnu::always_inline]] inline Sent send_short(Core& core, Endpoint& from, const ShortRecord& record,
                                              Nanos now) {
    if (!record.is_short()) [[unlikely]]
        return send_block<kQueues>(core, from, record, now);
    return send_message<kQueues>(core, from, record, now);
}

}  // namespace ulc::engine
