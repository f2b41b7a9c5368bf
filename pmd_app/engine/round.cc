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

/// Returns whether serve() would find anything. Each endpoint pays for it in each general round.
bool has_turn(const Endpoint& endpoint, Nanos now) {
    return endpoint.has(Work::kDeliver | Work::kSend) || endpoint.timer() <= now ||
           endpoint.sends().retry() || (endpoint.life().has_memory() && endpoint.inlet().ready()) ||
           (endpoint.offloads() != nullptr && endpoint.offloads()->retry());
}

/// Asks the port for its link and its counts.
void look_at_link(Core& core, Net& net, Nanos now) {
    core.end_verdicts();
    net.watch().look_at_link(net.port(), core.counters(), now);
    if (net.port().interface != nullptr) follow_interface(core, net, now);
    if (net.port().tap != nullptr) net.port().tap->on_link_look(net.port().tap->context);
    if (net.port().addresses != nullptr)
        net.jobs().set_links(net.port().addresses(net.port().context), now);
    net.count(core.counters(), now);
}

void remove_ended(Core& core) {
    for (std::size_t n = core.table().active().size(); n-- > 0;) {
        Endpoint& endpoint = *core.table().active()[n];
        if (endpoint.life().is_over()) remove(core, endpoint);
    }
}

/// The second half of a round: frames, jobs, and what each endpoint has to settle. receives: the
/// round's frames were not taken yet.
bool receive_and_settle(Core& core, bool receives, Nanos now) {
    bool moved = false;
    bool ended = false;
    for (const auto& net : core.nets()) {
        if (now >= net->watch().due()) look_at_link(core, *net, now);
        if (receives) moved |= receive(core, *net, now);
        if (net->jobs().next_look() <= now) moved |= run_jobs(core, *net, now);
    }
    for (Endpoint* endpoint : core.table().active()) {
        if (endpoint->has_work() || endpoint->owes_wake()) moved |= settle(core, *endpoint, now);
        ended |= endpoint->life().is_over();
    }
    if (ended) {
        core.end_verdicts();
        remove_ended(core);
    }
    for (const auto& net : core.nets())
        net->filter().settle(net->port(), core.counters());
    return moved;
}

/// A round with all its steps (engine.h). True: something moved.
bool general_round(Core& core, Nanos now) {
    bool moved = false;
    bool transmits = false;
    for (Endpoint* endpoint : core.table().active()) {
        if (has_turn(*endpoint, now)) moved |= serve(core, *endpoint, now);
        transmits |= endpoint->has(Work::kTransmit);
    }
    moved |= transmit(core, transmits, now);
    moved |= receive_and_settle(core, true, now);
    core.rounds().pass_turn();
    return moved;
}

/// Returns until when the endpoint needs no round if its client submits nothing; 0: it does.
Nanos quiet_until(const Endpoint& endpoint) noexcept {
    const bool offload_waits = endpoint.offloads() != nullptr && endpoint.offloads()->retry();
    if (endpoint.has_work() || endpoint.sends().retry() || offload_waits) return 0;
    return endpoint.timer();
}

/// Returns until when the net needs no round if no frame comes; 0: it does.
Nanos quiet_until(const Net& net) noexcept {
    // A port that gives frames up, or lets payloads land, is asked in general rounds only.
    if (net.transmitter().kept() || net.port().tx_failed != nullptr || net.lands()) return 0;
    return std::min(net.jobs().next_look(), net.watch().due());
}

/// The same of all nets.
Nanos nets_quiet_until(const Core& core) noexcept {
    Nanos until = kNever;
    for (const auto& net : core.nets())
        until = std::min(until, quiet_until(*net));
    return until;
}

/// Returns whether a schedule of some client is carried out. Quiet rounds begin and end none.
bool has_offload(const Core& core) noexcept {
    return std::ranges::any_of(core.table().active(), [](const Endpoint* endpoint) {
        return endpoint->offloads() != nullptr && !endpoint->offloads()->empty();
    });
}

/// Begins quiet after a general round, if nothing is due.
void begin_quiet(Core& core) noexcept {
    core.rounds().set_offloading(has_offload(core));
    Nanos until = nets_quiet_until(core);
    core.quiet().clear_looks();
    for (Endpoint* endpoint : core.table().active()) {
        until = std::min(until, quiet_until(*endpoint));
        if (until == 0) return;
        if (!endpoint->life().has_memory()) continue;
        core.quiet().add_look(*endpoint);
    }
    core.quiet().set_until(until);
    const bool many = core.quiet().all_looks().size() > core.config().looks_per_round;
    core.quiet().begin_looks(many ? core.config().quiet_after : UINT32_MAX);
}

}  // namespace

bool prolong_quiet(Core& core, Nanos now) {
    Nanos until = nets_quiet_until(core);
    if (until <= now) return false;
    for (Endpoint* endpoint : core.table().active()) {
        if (endpoint->timer() <= now && endpoint->member() != nullptr)
            endpoint->set_timer(endpoint->member()->put_off_timers(now));
        until = std::min(until, quiet_until(*endpoint));
        if (until <= now) return false;
    }
    core.quiet().set_until(until);
    return true;
}

bool poll_general(Core& core, Nanos now) {
    core.quiet().leave();
    const bool moved = general_round(core, now);
    core.quiet().note(moved);
    if (moved) core.counters().add(Counter::rounds_busy);
    begin_quiet(core);
    return moved;
}

void finish_round(Core& core, Nanos now) {
    core.quiet().leave();
    (void)receive_and_settle(core, false, now);
    begin_quiet(core);
}

}  // namespace ulc::engine
