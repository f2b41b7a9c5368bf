// SPDX-License-Identifier: BSD-3-Clause
// Quiet rounds, and the way of short messages through them (engine.h draws the round).
//
// In a quiet round nothing is due: the engine looks at its ports and at the submissions of its
// clients, and no more. A short message that comes then takes no other step than its own:
//
//   record ─ is_short ─▶ kept verdict ─▶ act ─▶ transmit_next ─▶ send_one ─▶ port
//                                         └──▶ pass ─▶ completion on this node
//   port ─▶ kept verdict ─ head.matches ─▶ act ─ is_next ─▶ take_next ─▶ completion
//
// The first message of a stream after any general step is judged in full, which makes the verdict
// (verdicts.h). General rounds take the same functions (drain.cc, demux.cc).
//
// Everything is decided before the first store. All else that comes goes through the general steps
// in the same round, as do messages that any of their rules has a say in.
#include <algorithm>
#include <cstddef>

#include "engine/engine.h"
#include "engine/fast/send.h"

namespace ulc::engine {
namespace {

struct Taken {
    std::uint32_t records = 0;
    bool all = false;  ///< else it left a record that drain() is to judge
};

/// Counts messages that a client submitted, before the port has the last one: a simulated host pays
/// for a record before it pays for the frame.
[[gnu::always_inline]] inline void count_sent(Core& core, std::uint32_t messages) noexcept {
    Counters& counters = core.counters();
    counters.add(Counter::submissions, messages);
    counters.add(Counter::messages_sent, messages);
}

/// Takes the next record of a client.
[[gnu::always_inline]] inline void pop(Endpoint& endpoint, Look& look) noexcept {
    endpoint.inlet().pop();
    look.next = endpoint.inlet().next();
}

/// Sends the first message of a client that has come, in most rounds the only one, by a kept
/// verdict, if nothing is pending at the port. False: nothing was changed.
[[gnu::always_inline]] inline bool send_only(Core& core, Look& look, Nanos now) {
    Endpoint& endpoint = *look.endpoint;
    Net& net = endpoint.net();
    const ShortRecord record(endpoint.inlet().peek());
    if (!record.is_short()) return false;
    const StreamId stream = record.stream();
    const SendVerdict& verdict = net.verdicts().place_of(endpoint.handle(), stream);
    if (!core.holds(verdict) || !verdict.is_of(endpoint.handle(), stream)) return false;
    if (verdict.to == nullptr && (!net.transmitter().may_send_one() || !has_segments(net)))
        return false;
    const Sent sent = act<false>(core, endpoint, verdict, record, now);
    if (!sent) return false;
    count_sent(core, 1);
    if (sent.frame != nullptr) {
        net.transmitter().send_one(sent.frame);
    } else {
        settle_short(core, *sent.to);
    }
    pop(endpoint, look);
    if (endpoint.member()->next_timer() != endpoint.timer()) settle_short(core, endpoint);
    return true;
}

/// Sends short messages of one client, the first of which has come.
[[gnu::noinline, gnu::hot]] Taken take_records(Core& core, Look& look, Nanos now) {
    Endpoint& endpoint = *look.endpoint;
    Transmitter& wire = endpoint.net().transmitter();
    Taken taken;
    Segment* frame = nullptr;  // not given to the port yet
    Endpoint* passed_to = nullptr;
    do {
        if (frame != nullptr) wire.push(std::exchange(frame, nullptr));
        const Sent sent =
            send_short<false>(core, endpoint, ShortRecord(endpoint.inlet().peek()), now);
        taken.all = sent || wait_in_ring(endpoint, now);
        if (!sent) break;
        frame = sent.frame;
        if (sent.to != nullptr) {
            if (passed_to != nullptr && passed_to != sent.to) settle_short(core, *passed_to);
            passed_to = sent.to;
        }
        pop(endpoint, look);
        ++taken.records;
    } while (look.next.has_come() && taken.records < core.config().records_per_round);
    if (endpoint.inlet().waits()) {
        look.next = endpoint.inlet().next();
    } else if (taken.records == 0) {
        return taken;  // the endpoint may have no member to settle
    }
    count_sent(core, taken.records);
    if (frame != nullptr) {
        wire.push_last(frame);
    } else {
        wire.flush();
    }
    if (passed_to != nullptr) settle_short(core, *passed_to);
    settle_short(core, endpoint);
    return taken;
}

/// Delivers the only frame of a net that has come, by a kept verdict, inside a completion. False:
/// nothing was changed.
[[gnu::always_inline]] inline bool receive_only(Core& core, Net& net, Nanos now) {
    Segment& segment = *net.burst()[0];
    const std::uint32_t octets = segment.length;
    const FrameVerdict* verdict =
        octets <= kInsideFrameMax ? kept_verdict(core, net, segment) : nullptr;
    if (verdict == nullptr) return false;
    Endpoint* endpoint = act<true>(core, net, *verdict, segment, now);
    if (endpoint == nullptr) return false;
    settle_short(core, *endpoint);
    Received{.octets = octets, .frames = 1, .messages = 1}.count(core);
    return true;
}

[[gnu::noinline]] void ask_port(Net& net, Nanos now) noexcept {
    net.transmitter().begin_round(now);
}

void count_moved(Core& core) noexcept {
    core.quiet().note(true);
    if (core.quiet().takes_turns()) core.quiet().look_at_all();
    core.rounds().pass_turn();
    core.counters().add(Counter::rounds_busy);
}

/// Looks at the port of a net. Returns how many frames have come, in Net::burst(). asked: the net
/// whose port has said already what has left; nullptr: none.
[[gnu::always_inline]] inline std::uint16_t look_at_port(Net& net, const Net* asked, Nanos now) {
    if (!net.transmitter().idle() && &net != asked) ask_port(net, now);
    return net.take_burst();
}

/// Takes the `count` frames of net number n, the first that brought some, and those of the nets
/// behind it. Apart from the look, which rounds that find nothing pay for.
[[gnu::noinline, gnu::hot]] void take_frames(Core& core, std::size_t n, std::uint16_t count,
                                             const Net* asked, Nanos now) {
    Net& first = *core.nets()[n];
    first.show_received(first.burst(), count);
    bool all =
        (count == 1 && receive_only(core, first, now)) || receive_burst(core, first, count, now);
    for (++n; n < core.nets().size(); ++n) {
        Net& net = *core.nets()[n];
        count = look_at_port(net, asked, now);
        if (count == 0) continue;
        net.show_received(net.burst(), count);
        all &= receive_burst(core, net, count, now);
    }
    if (!all) [[unlikely]]
        finish_round(core, now);
}

/// Looks at the ports, and takes what has come. True: something has.
[[gnu::always_inline]] inline bool look_at_ports(Core& core, const Net* asked, Nanos now) {
    for (const auto& net : core.nets()) {
        const std::uint16_t count = look_at_port(*net, asked, now);
        if (count == 0) continue;
        take_frames(core, static_cast<std::size_t>(&net - core.nets().data()), count, asked, now);
        return true;
    }
    return false;
}

/// A quiet round in which a client has submitted: its messages go first, as in each round. look:
/// the first one's.
[[gnu::noinline, gnu::hot]] bool take_submissions(Core& core, Look& look, Nanos now) {
    for (const Look& other :
         std::span(&look + 1, core.quiet().looks().data() + core.quiet().looks().size()))
        if (other.next.has_come()) return poll_general(core, now);
    Endpoint& endpoint = *look.endpoint;
    Transmitter& wire = endpoint.net().transmitter();
    wire.begin_round(now);
    Taken taken{0, true};
    if (endpoint.inlet().waits()) [[unlikely]] {
        if (!endpoint.inlet().wait_on()) return poll_general(core, now);
        look.next = endpoint.inlet().next();
    } else {
        const bool first = send_only(core, look, now);
        taken.records = first ? 1U : 0U;
        if (!first || look.next.has_come()) {
            const Taken others = take_records(core, look, now);
            taken = {taken.records + others.records, others.all};
        }
    }
    if (!taken.all && may_take(endpoint)) [[unlikely]]
        return poll_general(core, now);
    if (wire.kept()) [[unlikely]]
        core.quiet().leave();
    const bool came = look_at_ports(core, &endpoint.net(), now);
    if (taken.records == 0 && !came) {  // the client takes no completions
        core.quiet().note(false);
        return false;
    }
    count_moved(core);
    return true;
}

/// A round while nothing is due.
[[gnu::always_inline]] inline bool poll_quiet(Core& core, Nanos now) {
    for (Look& look : core.quiet().looks())
        if (look.next.has_come()) return take_submissions(core, look, now);
    if (look_at_ports(core, nullptr, now)) {
        count_moved(core);
        return true;
    }
    core.quiet().note(false);
    if (core.quiet().is_turn_over()) [[unlikely]]
        core.quiet().look_at_next(core.config().looks_per_round);
    return false;
}

}  // namespace

bool Engine::poll(Nanos now) {
    Core& core = *core_;
    core.rounds().begin(now);
    core.counters().add(Counter::rounds);
    const bool quiet =
        core.quiet().holds(now) || (core.quiet().is_on() && prolong_quiet(core, now));
    const bool moved = quiet ? poll_quiet(core, now) : poll_general(core, now);
#ifdef ULC_CHECK_ROUNDS  // debug builds
    check_invariants();
#endif
    return moved;
}

}  // namespace ulc::engine
