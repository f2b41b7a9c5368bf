// SPDX-License-Identifier: BSD-3-Clause
// The round (engine.h): general rounds with all steps, and quiet rounds.
//
// In a quiet round nothing is due. The engine only looks at its ports and at the submissions of
// some clients. A look costs two cache lines a client; a general round costs many. A frame, a
// submission, the first deadline, and every call that changes the engine end the quiet.
#include <algorithm>

#include "endpoint/offload.h"
#include "engine/core.h"
#include "engine/engine.h"

namespace ulc::engine {
namespace {

constexpr Nanos kLinkPatience = 10 * kMillisecond;  ///< between looks at the port's link
constexpr Nanos kLinksPatience = kMillisecond;      ///< the same of several links

/// Returns whether serve() would find anything. Each endpoint pays for it in each general round.
bool has_turn(const Endpoint& endpoint, Nanos now) {
    return endpoint.has(Work::kDeliver | Work::kSend) || endpoint.timer <= now ||
           endpoint.sends.retry() || (endpoint.taking && endpoint.submissions.ready()) ||
           (endpoint.offloads != nullptr && endpoint.offloads->retry());
}

/// Counts what the port's frames have cost since the last look.
void count_costs(Core& core, Net& net) {
    const PortCosts now = net.port.costs(net.port.context);
    core.counters.add(Counter::tx_calls, now.calls - net.costs.calls);
    core.counters.add(Counter::tx_refusals, now.refusals - net.costs.refusals);
    core.counters.add(Counter::port_copied_bytes, now.copied_bytes - net.costs.copied_bytes);
    net.costs = now;
}

/// Counts what a mesh did with frames since the last look.
void count_transit(Core& core, Net& net) {
    const PortTransit now = net.port.transit(net.port.context);
    core.counters.add(Counter::mesh_forwarded, now.forwarded - net.transit.forwarded);
    core.counters.add(Counter::drop_transit_full, now.full - net.transit.full);
    core.counters.add(Counter::drop_forward, now.malformed - net.transit.malformed);
    core.counters.add(Counter::drop_misrouted, now.misrouted - net.transit.misrouted);
    core.counters.add(Counter::drop_no_path, now.pathless - net.transit.pathless);
    net.transit = now;
}

/// Adds the rise of a port's count since the last look. A count that is lower is that of a device
/// that is away.
void count_rise(Core& core, Counter counter, std::uint64_t& counted, std::uint64_t now) {
    if (now <= counted) return;
    core.counters.add(counter, now - counted);
    counted = now;
}

/// Counts the frames that the port dropped since the last look, by reason.
void count_drops(Core& core, Net& net) {
    const PortDrops now = net.port.drops(net.port.context);
    PortDrops& counted = net.drops;
    count_rise(core, Counter::drop_other_station, counted.other_station, now.other_station);
    count_rise(core, Counter::drop_too_long, counted.too_long, now.too_long);
    count_rise(core, Counter::drop_vlan, counted.vlan, now.vlan);
    count_rise(core, Counter::drop_own_echo, counted.own_echo, now.own_echo);
    count_rise(core, Counter::drop_wrong_source, counted.wrong_source, now.wrong_source);
    count_rise(core, Counter::port_errors, counted.damaged, now.damaged);
    count_rise(core, Counter::drop_unsealed, counted.unsealed, now.unsealed);
    count_rise(core, Counter::tx_unsendable, counted.unsendable, now.unsendable);
    count_rise(core, Counter::paths_narrowed, counted.narrowed, now.narrowed);
}

/// Asks the port for its link, whose changes are counted, and for its costs; once a second also for
/// the frames that it lost or dropped. A memif client connects again when it is asked.
void look_at_link(Core& core, Net& net, Nanos now) {
    net.link_due = now + (net.port.info.links > 1 ? kLinksPatience : kLinkPatience);
    if (net.port.link_up != nullptr) {
        const bool up = net.port.link_up(net.port.context);
        if (up != net.link_is_up) core.counters.add(up ? Counter::link_ups : Counter::link_downs);
        net.link_is_up = up;
    }
    if (net.port.interface != nullptr) follow_interface(core, net, now);
    if (net.port.tap != nullptr) net.port.tap->on_link_look(net.port.tap->context);
    if (net.port.addresses != nullptr)
        net.jobs.set_links(net.port.addresses(net.port.context), now);
    if (net.port.costs != nullptr) count_costs(core, net);
    if (net.port.silences != nullptr) {
        const std::uint64_t silences = net.port.silences(net.port.context);
        core.counters.add(Counter::link_silences, silences - net.silences);
        net.silences = silences;
    }
    if (net.port.transit != nullptr) count_transit(core, net);
    if (now < net.missed_due) return;
    net.missed_due = now + kSecond;
    if (net.port.missed != nullptr)
        count_rise(core, Counter::port_missed, net.missed, net.port.missed(net.port.context));
    if (net.port.drops != nullptr) count_drops(core, net);
}

void remove_ended(Core& core) {
    for (std::size_t n = core.active.size(); n-- > 0;) {
        Endpoint& endpoint = *core.active[n];
        if (endpoint.state == EndpointState::kClosed && endpoint.detached) remove(core, endpoint);
    }
}

/// The second half of a round: frames, jobs, and what each endpoint has to settle. receives: the
/// round's frames were not taken yet.
bool receive_and_settle(Core& core, bool receives, Nanos now) {
    bool moved = false;
    bool ended = false;
    for (const auto& net : core.nets) {
        if (now >= net->link_due) look_at_link(core, *net, now);
        if (receives) moved |= receive(core, *net, now);
        if (net->jobs.next_look() <= now) moved |= run_jobs(core, *net, now);
    }
    for (Endpoint* endpoint : core.active) {
        if (endpoint->has_work() || endpoint->given() != endpoint->woken_at)
            moved |= settle(core, *endpoint, now);
        ended |= endpoint->state == EndpointState::kClosed && endpoint->detached;
    }
    if (ended) remove_ended(core);
    for (const auto& net : core.nets)
        net->filter.settle(net->port, core.counters);
    return moved;
}

/// A round with all its steps (engine.h). True: something moved.
bool general_round(Core& core, Nanos now) {
    bool moved = false;
    bool transmits = false;
    for (Endpoint* endpoint : core.active) {
        if (has_turn(*endpoint, now)) moved |= serve(core, *endpoint, now);
        transmits |= endpoint->has(Work::kTransmit);
    }
    moved |= transmit(core, transmits, now);
    moved |= receive_and_settle(core, true, now);
    ++core.turn;
    return moved;
}

/// Returns until when the endpoint needs no round if its client submits nothing; 0: it does.
Nanos quiet_until(const Endpoint& endpoint) noexcept {
    const bool offload_waits = endpoint.offloads != nullptr && endpoint.offloads->retry();
    if (endpoint.has_work() || endpoint.sends.retry() || offload_waits) return 0;
    return endpoint.timer;
}

/// Returns until when the net needs no round if no frame comes; 0: it does.
Nanos quiet_until(const Net& net) noexcept {
    // A port that gives frames up, or lets payloads land, is asked in general rounds only.
    if (net.transmitter.kept() || net.port.tx_failed != nullptr || net.lands()) return 0;
    return std::min(net.jobs.next_look(), net.link_due);
}

/// The same of all nets.
Nanos nets_quiet_until(const Core& core) noexcept {
    Nanos until = kNever;
    for (const auto& net : core.nets)
        until = std::min(until, quiet_until(*net));
    return until;
}

/// Returns whether a schedule of some client is carried out. Quiet rounds begin and end none.
bool has_offload(const Core& core) noexcept {
    return std::ranges::any_of(core.active, [](const Endpoint* endpoint) {
        return endpoint->offloads != nullptr && !endpoint->offloads->empty();
    });
}

/// Sets core.quiet_until, after a general round.
void begin_quiet(Core& core) noexcept {
    core.forget_verdicts();
    core.offloading = has_offload(core);
    Nanos until = nets_quiet_until(core);
    core.looks.clear();
    for (Endpoint* endpoint : core.active) {
        until = std::min(until, quiet_until(*endpoint));
        if (until == 0) return;
        if (endpoint->taking) core.looks.push_back({endpoint->submissions.next(), endpoint});
    }
    core.quiet_until = until;
    look_at_all(core);
    const bool many = core.looks.size() > core.config.looks_per_round;
    core.looks_turn_after = many ? core.config.quiet_after : UINT32_MAX;
}

}  // namespace

bool prolong_quiet(Core& core, Nanos now) {
    Nanos until = nets_quiet_until(core);
    if (until <= now) return false;
    for (Endpoint* endpoint : core.active) {
        if (endpoint->timer <= now && endpoint->member != nullptr)
            endpoint->timer = endpoint->member->put_off_timers(now);
        until = std::min(until, quiet_until(*endpoint));
        if (until <= now) return false;
    }
    core.quiet_until = until;
    return true;
}

bool poll_general(Core& core, Nanos now) {
    core.quiet_until = 0;
    core.moved = general_round(core, now);
    if (core.moved) {
        core.still_rounds = 0;
        core.counters.add(Counter::rounds_busy);
    } else {
        ++core.still_rounds;
    }
    begin_quiet(core);
    return core.moved;
}

void finish_round(Core& core, Nanos now) {
    core.quiet_until = 0;
    (void)receive_and_settle(core, false, now);
    begin_quiet(core);
}

}  // namespace ulc::engine
