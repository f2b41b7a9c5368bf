// SPDX-License-Identifier: BSD-3-Clause
// Quiet rounds, and the fast path of short messages through them (engine.h draws the round).
//
// In a quiet round nothing is due: the engine looks at its ports and at the submissions of its
// clients, and no more. A short message that comes then takes no other step than its own:
//
//   record ─ is_short ─▶ prediction ─▶ transmit_next ─▶ send_one ─▶ port    (send_only, send_next)
//                                 └──▶ pass ─▶ completion on this node      (pass_next)
//   port ─▶ prediction ─ head.matches ─▶ is_next ─▶ take_next ─▶ completion (deliver_next)
//
// The first message of a stream after any general step is looked up and judged in full (send_first,
// pass_to, deliver_short), which makes the prediction (predictions.h) that the next ones go by.
//
// Everything is decided before the first store. All else that comes goes through the general steps
// in the same round, as do messages that any of their rules has a say in. A round with one record
// or one frame, the most frequent, has functions without a loop (send_only, receive_only).
#include <algorithm>
#include <cstddef>

#include "engine/engine.h"
#include "engine/fast/send.h"

namespace ulc::engine {
namespace {

constexpr std::size_t kPrefetchAhead = 2;

struct Sent {
    std::uint32_t records = 0;  ///< taken
    bool all = false;           ///< else it left a record that drain() is to judge
};

/// True if nothing waits before a short message of the endpoint. Predictions stand for it.
[[nodiscard]] bool may_send_short(const Endpoint& endpoint) noexcept {
    return endpoint.state == EndpointState::kOpen && endpoint.member != nullptr &&
           endpoint.sends.passes_short();
}

/// Counts messages that a client submitted, before the port has the last one: a simulated host pays
/// for a record before it pays for the frame.
[[gnu::always_inline]] inline void count_sent(Core& core, std::uint32_t messages) noexcept {
    core.counters.add(Counter::submissions, messages);
    core.counters.add(Counter::messages_sent, messages);
}

/// Takes the next record of a client.
[[gnu::always_inline]] inline void pop(Endpoint& endpoint, Look& look) noexcept {
    endpoint.submissions.pop();
    look.next = endpoint.submissions.next();
}

/// Sends the first message of a client that has come, in most rounds the only one, if it was
/// predicted and nothing is pending at the port. False: nothing was changed.
[[gnu::always_inline]] inline bool send_only(Core& core, Look& look, Nanos now) {
    Endpoint& endpoint = *look.endpoint;
    Net& net = *endpoint.net;
    const ShortRecord record(endpoint.submissions.peek());
    if (!record.is_short()) return false;
    const StreamId stream = record.stream();
    const NextMessage& next = net.predictions.place_of(endpoint.handle, stream);
    if (!net.predictions.holds(next) || !next.is_of(endpoint.handle, stream)) return false;
    if (next.to != nullptr) {
        if (!pass_next(core, endpoint, next, record, now)) return false;
        count_sent(core, 1);
        settle_short(core, *next.to);
    } else {
        if (!net.transmitter.may_send_one() || !has_segments(net)) return false;
        Segment* frame = endpoint.member->transmit_next(next.of, record.message(stream), now);
        if (frame == nullptr) return false;
        count_sent(core, 1);
        net.transmitter.send_one(frame);
    }
    pop(endpoint, look);
    if (endpoint.member->next_timer() != endpoint.timer) settle_short(core, endpoint);
    return true;
}

/// The result for a record: a frame for the port, or the endpoint of this node that has its
/// message.
struct Gone {
    Segment* frame = nullptr;
    Endpoint* to = nullptr;
};

/// Sends a message in the arena of its client. Neither: nothing was changed; drain() judges it.
[[gnu::noinline, gnu::hot]] Gone send_block(Core& core, Endpoint& endpoint, const ShortRecord head,
                                            Nanos now) {
    Net& net = *endpoint.net;
    Gone gone;
    if (!may_send_short(endpoint)) return gone;
    urtp::Transport& member = *endpoint.member;
    const BlockRecord record(head, endpoint.region, member.short_octets_max());
    if (!record.is_valid()) return gone;
    const StreamId stream = record.stream();
    const NextMessage& next = net.predictions.place_of(endpoint.handle, stream);
    const bool predicted = net.predictions.holds(next) && next.is_of(endpoint.handle, stream);
    urtp::Session* session = predicted ? next.of.session : member.find_session(stream);
    if (session != nullptr && session->local) {
        gone.to = pass_to(core, endpoint, *session, record.message(stream), now);
    } else if (may_transmit(core, net)) {
        gone.frame = predicted ? send_next(member, next, record, now)
                               : send_first(endpoint, session, record.message(stream), now);
    }
    if (gone.frame != nullptr || gone.to != nullptr) answer_sent(core, endpoint, record.cookie());
    return gone;
}

/// Sends short messages of one client, the first of which has come.
[[gnu::noinline, gnu::hot]] Sent send_short(Core& core, Look& look, Nanos now) {
    Endpoint& endpoint = *look.endpoint;
    Sent sent;
    Net& net = *endpoint.net;
    Transmitter& wire = net.transmitter;
    Segment* frame = nullptr;  // not given to the port yet
    Endpoint* passed_to = nullptr;
    do {
        sent.all = false;
        const ShortRecord record(endpoint.submissions.peek());
        const StreamId stream = record.stream();
        const NextMessage& next = net.predictions.place_of(endpoint.handle, stream);
        if (frame != nullptr) wire.push(std::exchange(frame, nullptr));
        Endpoint* to = nullptr;
        if (!record.is_short()) {
            const Gone gone = send_block(core, endpoint, record, now);
            frame = gone.frame;
            to = gone.to;
        } else if (net.predictions.holds(next) && next.is_of(endpoint.handle, stream)) [[likely]] {
            if (next.to == nullptr) {
                if (!may_transmit(core, net)) break;
                frame = send_next(*endpoint.member, next, record, now);
            } else if (pass_next(core, endpoint, next, record, now)) {
                to = next.to;
            }
        } else if (!may_send_short(endpoint)) {
            break;
        } else if (urtp::Session* session = endpoint.member->find_session(stream);
                   session != nullptr && session->local) {
            to = pass_to(core, endpoint, *session, record.message(stream), now);
        } else if (may_transmit(core, net)) {
            frame = send_first(endpoint, session, record.message(stream), now);
        }
        if (frame == nullptr && to == nullptr) break;
        if (to != nullptr) {
            if (passed_to != nullptr && passed_to != to) settle_short(core, *passed_to);
            passed_to = to;
        }
        pop(endpoint, look);
        sent.all = true;
        ++sent.records;
    } while (look.next.has_come() && sent.records < core.config.records_per_round);
    if (sent.records == 0) return sent;  // the endpoint may have no member to settle
    count_sent(core, sent.records);
    if (frame != nullptr) {
        wire.push_last(frame);
    } else {
        wire.flush();
    }
    if (passed_to != nullptr) settle_short(core, *passed_to);
    settle_short(core, endpoint);
    return sent;
}

/// deliver_next() of one frame of many.
[[gnu::noinline, gnu::hot]] Endpoint* deliver_one_of(Core& core, Net& net, Segment& segment,
                                                     Nanos now) {
    return deliver_next<true>(core, net, segment, now);
}
[[gnu::noinline, gnu::hot]] Endpoint* deliver_block_of(Core& core, Net& net, Segment& segment,
                                                       Nanos now) {
    return deliver_next<false>(core, net, segment, now);
}

/// Counts received frames, of which `delivered` were predicted.
[[gnu::always_inline]] inline void count_received(Core& core, std::uint32_t frames,
                                                  std::uint64_t octets,
                                                  std::uint32_t delivered) noexcept {
    core.counters.add(Counter::rx_frames, frames);
    core.counters.add(Counter::rx_bytes, octets);
    core.counters.add(Counter::data_received, delivered);
    count_delivered(core, delivered);
}

/// Delivers the only frame of a net that has come, if it was predicted and is no longer than most.
/// False: nothing was changed.
[[gnu::always_inline]] inline bool receive_only(Core& core, Net& net, Nanos now) {
    Segment& segment = *net.burst[0];
    const std::uint32_t octets = segment.length;
    if (octets > kInsideFrameMax) return false;
    Endpoint* endpoint = deliver_next<true>(core, net, segment, now);
    if (endpoint == nullptr) return false;
    settle_short(core, *endpoint);
    count_received(core, 1, octets, 1);
    return true;
}

/// Takes the first `count` frames of the net's burst. False: some took a general step.
[[gnu::noinline, gnu::hot]] bool receive_short(Core& core, Net& net, std::uint32_t count,
                                               Nanos now) {
    std::uint64_t octets = 0;
    Endpoint* last = nullptr;
    bool all = true;
    std::uint32_t delivered = 0;
    for (std::uint32_t n = 0; n < count; ++n) {
        Segment& segment = *net.burst[n];
        if (n + kPrefetchAhead < count) __builtin_prefetch(net.burst[n + kPrefetchAhead]->frame);
        octets += segment.length;
        Endpoint* endpoint = segment.length > kInsideFrameMax
                                 ? deliver_block_of(core, net, segment, now)
                                 : deliver_one_of(core, net, segment, now);
        if (endpoint != nullptr) ++delivered;
        if (endpoint == nullptr) endpoint = deliver_short(core, net, segment, now);
        if (endpoint == nullptr) endpoint = take_acks(core, net, segment, now);
        if (endpoint == nullptr) {
            take_frame(core, net, &segment, now);
            core.forget_predictions();
            all = false;
            continue;
        }
        if (endpoint != last && last != nullptr) settle_short(core, *last);
        last = endpoint;
    }
    if (last != nullptr) settle_short(core, *last);
    count_received(core, count, octets, delivered);
    return all;
}

/// The next quiet round looks at the next few clients. The first time after all, at the first.
[[gnu::noinline]] void look_at_next(Core& core) noexcept {
    Look* const end = core.looks.data() + core.looks.size();
    core.looks_from = core.looks_to == end ? core.looks.data() : core.looks_to;
    const auto left = static_cast<std::size_t>(end - core.looks_from);
    core.looks_to = core.looks_from + std::min<std::size_t>(left, core.config.looks_per_round);
}

[[gnu::noinline]] void ask_port(Net& net, Nanos now) noexcept { net.transmitter.begin_round(now); }

void count_moved(Core& core) noexcept {
    core.moved = true;
    core.still_rounds = 0;
    if (core.looks_turn_after != UINT32_MAX) look_at_all(core);
    ++core.turn;
    core.counters.add(Counter::rounds_busy);
}

/// Looks at the port of a net. Returns how many frames have come, in Net::burst. asked: the net
/// whose port has said already what has left; nullptr: none.
[[gnu::always_inline]] inline std::uint16_t look_at_port(Net& net, const Net* asked, Nanos now) {
    if (!net.transmitter.idle() && &net != asked) ask_port(net, now);
    return net.port.rx(net.port.context, net.burst, kRxBurst);
}

/// Takes the `count` frames of net number n, the first that brought some, and those of the nets
/// behind it. Apart from the look, which rounds that find nothing pay for.
[[gnu::noinline, gnu::hot]] void take_frames(Core& core, std::size_t n, std::uint16_t count,
                                             const Net* asked, Nanos now) {
    Net& first = *core.nets[n];
    first.show_received(first.burst, count);
    bool all =
        (count == 1 && receive_only(core, first, now)) || receive_short(core, first, count, now);
    for (++n; n < core.nets.size(); ++n) {
        Net& net = *core.nets[n];
        count = look_at_port(net, asked, now);
        if (count == 0) continue;
        net.show_received(net.burst, count);
        all &= receive_short(core, net, count, now);
    }
    if (!all) [[unlikely]]
        finish_round(core, now);
}

/// Looks at the ports, and takes what has come. True: something has.
[[gnu::always_inline]] inline bool look_at_ports(Core& core, const Net* asked, Nanos now) {
    for (const auto& net : core.nets) {
        const std::uint16_t count = look_at_port(*net, asked, now);
        if (count == 0) continue;
        take_frames(core, static_cast<std::size_t>(&net - core.nets.data()), count, asked, now);
        return true;
    }
    return false;
}

/// The same in a build without the fast path: general steps take what is in Net::came.
bool fill_nets(Core& core, Nanos now) {
    bool came = false;
    for (const auto& net : core.nets) {
        net->came = look_at_port(*net, nullptr, now);
        came |= net->came != 0;
    }
    return came;
}

/// A quiet round in which a client has submitted: its messages go first, as in each round. look:
/// the first one's.
[[gnu::noinline, gnu::hot]] bool take_submissions(Core& core, Look& look, Nanos now) {
    for (const Look* other = &look + 1; other != core.looks_to; ++other)
        if (other->next.has_come()) return poll_general(core, now);
    Endpoint& endpoint = *look.endpoint;
    Transmitter& wire = endpoint.net->transmitter;
    wire.begin_round(now);
    const bool first = send_only(core, look, now);
    Sent sent{1, true};
    if (!first || look.next.has_come()) {
        sent = send_short(core, look, now);
        if (!sent.all && may_take(endpoint)) [[unlikely]]
            return poll_general(core, now);
    }
    if (wire.kept()) [[unlikely]]
        core.quiet_until = 0;
    const bool came = look_at_ports(core, endpoint.net, now);
    if (!first && sent.records == 0 && !came) {  // the client takes no completions
        core.moved = false;
        return false;
    }
    count_moved(core);
    return true;
}

/// A round while nothing is due.
[[gnu::always_inline]] inline bool poll_quiet(Core& core, Nanos now) {
    for (Look* look = core.looks_from; look != core.looks_to; ++look) {
        if (!look->next.has_come()) continue;
        return urtp::kFastPath ? take_submissions(core, *look, now) : poll_general(core, now);
    }
    if (urtp::kFastPath ? look_at_ports(core, nullptr, now) : fill_nets(core, now)) {
        if (!urtp::kFastPath) return poll_general(core, now);
        count_moved(core);
        return true;
    }
    core.moved = false;
    if (++core.still_rounds >= core.looks_turn_after) look_at_next(core);
    return false;
}

}  // namespace

bool take_short_frame(Core& core, Net& net, Segment& segment, Nanos now) {
    Endpoint* endpoint = deliver_short(core, net, segment, now);
    if (endpoint == nullptr) return false;
    endpoint->mark(Work::kSettle);
    return true;
}

Endpoint* pass_short(Core& core, Endpoint& from, const urtp::ShortMessage& message, Nanos now) {
    urtp::Session* session = from.member->find_session(message.stream);
    return session == nullptr ? nullptr : pass_to(core, from, *session, message, now);
}

bool Engine::poll(Nanos now) {
    Core& core = *core_;
    core.now = now;
    core.counters.add(Counter::rounds);
    const bool quiet =
        now < core.quiet_until || (core.quiet_until != 0 && prolong_quiet(core, now));
    const bool moved = quiet ? poll_quiet(core, now) : poll_general(core, now);
#ifdef ULC_CHECK_ROUNDS  // debug builds
    check_invariants();
#endif
    return moved;
}

}  // namespace ulc::engine
