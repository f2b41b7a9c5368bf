// SPDX-License-Identifier: BSD-3-Clause
// One endpoint's turn in a round, and its end. Nothing here depends on data of a client that
// drain.cc has not validated.
#include "base/check.h"
#include "engine/core.h"

namespace ulc::engine {

bool deliver(Core& core, Endpoint& endpoint, Nanos now) {
    core.end_verdicts();
    endpoint.unmark(Work::kDeliver);
    bool moved = false;
    if (endpoint.life().is_lingering()) {
        moved = endpoint::Outlet::discard(*endpoint.member(), core.config().packets_per_round, now);
        if (moved) endpoint.mark(Work::kDeliver);
    } else {
        if (!endpoint.outlet()->reclaim()) {
            core.counters().add(Counter::client_bad_record);
            close_corrupt(core, endpoint, now);
            return true;
        }
        if (endpoint.links() != nullptr && !may_deliver_links(core, endpoint, now)) return false;
        moved = endpoint.outlet()->run(*endpoint.member(), core.config().packets_per_round, now);
        if (endpoint.outlet()->unfinished()) endpoint.mark(Work::kDeliver);
        update_landing(endpoint);
    }
    if (moved) endpoint.mark(Work::kSettle);
    if (endpoint.offloads() != nullptr && endpoint.offloads()->busy()) endpoint.mark(Work::kSend);
    return moved;
}

namespace {

/// Reports that the last messages to a peer that is gone failed. Ranks of links change their peers.
void report_failed(Endpoint& endpoint, Err how, Rank rank, std::uint32_t messages) {
    if (messages > 0 && endpoint.links() == nullptr) fault(endpoint, how, rank, messages);
}

[[gnu::noinline]] void take_failed(Endpoint& endpoint) {
    endpoint.sends().take_failed([&](Rank rank, std::uint32_t refused, std::uint32_t rests) {
        ULC_CHECK(rank < endpoint.membership().ranks());
        // The transport may know of a death before the engine, but the rest of a message to a rank
        // that is here failed for another reason.
        if (endpoint.membership().is_here(rank)) rests = 0;
        const bool left = endpoint.membership().has_left(rank);
        report_failed(endpoint, left ? Err::kPeerLeft : Err::kPeerDied, rank, refused + rests);
    });
}

bool send(Core& core, Endpoint& endpoint, Nanos now) {
    endpoint.unmark(Work::kSend);
    endpoint::Offloads* offloads = endpoint.offloads();
    bool moved = offloads != nullptr && offloads->run(endpoint.sends(), *endpoint.outlet());
    if (!endpoint.sends().empty()) {
        endpoint.mark(Work::kSettle);  // a refusal may have armed a timer
        if (endpoint.sends().pump(core.send_context(endpoint), now)) {
            endpoint.mark(Work::kTransmit);
            moved = true;
            if (endpoint.sends().has_failed()) [[unlikely]]
                take_failed(endpoint);
        }
    }
    if (offloads != nullptr && offloads->busy()) endpoint.mark(Work::kSend);
    return moved;
}

// Takes the member's reports on its peers.
[[gnu::noinline]] void take_events(Core& core, Endpoint& endpoint, Nanos now) {
    core.end_verdicts();
    urtp::Event event;
    while (endpoint.member()->poll_event(event)) {
        switch (event.kind) {
            case urtp::EventKind::kPeerLeft:
                report_failed(endpoint, Err::kPeerLeft, event.rank, event.count);
                peer_gone(core, endpoint, event.rank, kGoneLeft, now);
                break;
            case urtp::EventKind::kPeerDied:
                report_failed(endpoint, Err::kPeerDied, event.rank, event.count);
                if (!endpoint.membership().is_here(event.rank)) break;  // the engine reported it
                peer_gone(core, endpoint, event.rank, kGoneDied, now);
                if (endpoint.links() != nullptr)
                    endpoint.net().jobs().links().peer_died(endpoint.handle(), event.rank, now);
                endpoint.net().jobs().peer_died(endpoint.membership().job(), event.rank, now);
                break;
            case urtp::EventKind::kPeerExcluded:
                report_failed(endpoint, Err::kPeerDied, event.rank, event.count);
                if (!endpoint.membership().is_here(event.rank)) break;
                endpoint.net().jobs().exclude(endpoint.membership().job(), event.rank, now);
                break;
            case urtp::EventKind::kHeldSlow:
                fault(endpoint, Err::kPeerSlow, event.rank, event.count, event.stream);
                break;
            case urtp::EventKind::kHeldSilent:
                fault(endpoint, Err::kPeerSilent, event.rank, event.count, event.stream);
                break;
            case urtp::EventKind::kLost:
                fault(endpoint, Err::kLost, event.rank, event.count);
                break;
            case urtp::EventKind::kSendFailed:
                fault(endpoint, Err::kPortDown, event.rank, event.count);
                break;
            case urtp::EventKind::kPathNarrow:
                path_narrowed(core, endpoint, event.rank, now);
                return;
        }
    }
}

// Takes events of the member and its next timer.
void look_at_member(Core& core, Endpoint& endpoint, Nanos now) {
    endpoint.unmark(Work::kSettle);
    urtp::Transport::Outlook outlook = endpoint.member()->outlook();
    if (outlook.event) [[unlikely]] {
        take_events(core, endpoint, now);
        if (endpoint.member() == nullptr) return;  // the job ended
        outlook = endpoint.member()->outlook();
    }
    endpoint.set_timer(outlook.timer);
    if (outlook.tx) endpoint.mark(Work::kTransmit);
}

}  // namespace

// Completions are in the ring; a client that sleeps is woken, and one that computes is interrupted.
// Memory order: the marks were stored with release; client_to_notify() fences and loads the state,
// and the client stores the state, fences and checks the ring before it sleeps or computes (C in
// abi/slot_ring.h), so one of the two sees the other.
void notify_client(Core& core, Endpoint& endpoint) {
    abi::EndpointControl& control = endpoint.region().control();
    switch (abi::client_to_notify(control)) {
        case abi::ClientState::kPolling:
            return;
        case abi::ClientState::kAsleep:
            if (core.config().wake == nullptr) return;  // an embedded engine: clients nap
            core.counters().add(Counter::client_wakes);
            core.config().wake(core.config().wake_context, endpoint.handle(),
                               &control.wake_sequence);
            return;
        case abi::ClientState::kComputing:
            if (endpoint.interrupt().call == nullptr) return;  // its client never asked for upcalls
            core.counters().add(Counter::client_upcalls);
            endpoint.interrupt().call(endpoint.interrupt().context);
            return;
    }
}

namespace {

/// Obeys the note of the client about a source, if there is a new one. A kExpect follows each note,
/// so this endpoint has a turn.
void obey_note(Core& core, Endpoint& endpoint) {
    abi::EndpointControl& page = endpoint.region().control();
    const std::uint32_t word = page.source_note.load(std::memory_order_acquire);
    if (!endpoint.is_new_note(word)) [[likely]]
        return;
    abi::SourceNote note{};
    if (!abi::SourceNote::read(word, note) || endpoint.member() == nullptr ||
        note.source >= endpoint.member()->size()) {
        core.counters().add(Counter::client_bad_record);
        endpoint.errors().note();
    } else if (note.intake == abi::Intake::kAll || endpoint.membership().is_here(note.source)) {
        endpoint.outlet()->set_intake(note.source, note.intake);
        if (note.intake == abi::Intake::kNone) core.counters().add(Counter::client_stalled);
        endpoint.mark(Work::kDeliver);
    }
    page.note_taken.store(word, std::memory_order_release);
}

}  // namespace

[[gnu::flatten]] bool serve(Core& core, Endpoint& endpoint, Nanos now) {
    bool moved = false;
    if (endpoint.life().has_memory()) obey_note(core, endpoint);
    if (endpoint.has(Work::kDeliver) && endpoint.member() != nullptr &&
        deliver(core, endpoint, now)) {
        endpoint.mark(Work::kTransmit);  // returned space may make an ACK due
        moved = true;
    }
    if (endpoint.life().has_memory()) moved |= drain(core, endpoint, now);
    core.end_verdicts();  // of drain()
    if (endpoint.has(Work::kSend) || endpoint.sends().retry() ||
        (endpoint.offloads() != nullptr && endpoint.offloads()->retry()))
        moved |= send(core, endpoint, now);
    if (endpoint.member() == nullptr) return moved;
    if (endpoint.timer() <= now) {
        endpoint.member()->on_timer(now);
        endpoint.mark(Work::kDeliver | Work::kSend | Work::kTransmit | Work::kSettle);
        moved = true;
    }
    return moved;
}

[[gnu::flatten]] bool settle(Core& core, Endpoint& endpoint, Nanos now) {
    bool moved = false;
    if (endpoint.member() != nullptr) {
        if (endpoint.has(Work::kDeliver)) moved |= deliver(core, endpoint, now);
        if (endpoint.has(Work::kSettle)) look_at_member(core, endpoint, now);
    }
    if (endpoint.has(Work::kControl)) moved |= control(core, endpoint, now);
    if (!endpoint.life().has_memory()) return moved;
    if (endpoint.outlet()->completions().corrupt()) {
        core.counters().add(Counter::client_bad_cursor);
        close_corrupt(core, endpoint, now);
        return true;
    }
    if (endpoint.owes_wake() && endpoint.take_wake()) notify_client(core, endpoint);
    return moved;
}

void leave_memory(Endpoint& endpoint) {
    endpoint.life().lose_memory();
    endpoint.sends().abort(endpoint.net().port().pool);
    endpoint.net().transmitter().pull_tails();
    if (endpoint.member() != nullptr) endpoint.member()->pull_tails();
}

void linger(Core& core, Endpoint& endpoint, wire::LeaveReason reason, Nanos now) {
    if (!endpoint.life().has_client()) return;
    core.end_verdicts();
    endpoint.drop_offloads();
    const bool died = reason == wire::LeaveReason::kDied;
    endpoint.life().linger(reason,
                           now + (died ? core.config().linger_died : core.config().linger_max),
                           endpoint.in_use());
    endpoint.mark(Work::kControl | Work::kDeliver | Work::kSend);
}

void close_corrupt(Core& core, Endpoint& endpoint, Nanos now) {
    close_client(core, endpoint, Err::kCorrupt, now);
}

void close_client(Core& core, Endpoint& endpoint, Err how, Nanos now) {
    endpoint.life().close(how);
    // First: the memory from which it sent may be freed after the report.
    leave_memory(endpoint);
    linger(core, endpoint, wire::LeaveReason::kDied, now);
    abi::EndpointControl& page = endpoint.region().control();
    page.closed.store(static_cast<std::int32_t>(how), std::memory_order_release);
    if (endpoint.take_wake()) notify_client(core, endpoint);
    core.counters().add(Counter::clients_died);
}

void remove(Core& core, Endpoint& endpoint) {
    User& user = endpoint.user();
    const std::uint64_t octets = endpoint.claimant().octets;
    endpoint.net().set_landing(endpoint, false);
    leave_groups(core, endpoint);
    endpoint.sends().abort(endpoint.net().port().pool);
    const Port& port = endpoint.net().port();
    if (port.remove_memory != nullptr && endpoint.outlet() != nullptr)  // it was admitted
        port.remove_memory(port.context, endpoint.region().tx(0, 0));
    core.table().remove(endpoint);
    core.accounts().leave(user, octets);
}

}  // namespace ulc::engine
