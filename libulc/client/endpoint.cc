// SPDX-License-Identifier: BSD-3-Clause
#include "client/endpoint.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "client/error_text.h"
#include "client/p2p/rendezvous.h"

namespace ulc::client {
namespace {

/// Empty polls before the source that a receive names is announced to the engine, and between
/// checks of `closed`.
constexpr std::uint32_t kAnnouncePolls = 1024;

}  // namespace

std::unique_ptr<ulc_endpoint> make_endpoint(const abi::Region& region, const Hooks& hooks,
                                            const Limits& limits) noexcept {
    try {
        // Only the arena's table is allocated here; the rest grows with use.
        auto endpoint = std::make_unique<ulc_endpoint>(region, hooks, limits);
        return endpoint;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

Endpoint::Endpoint(const abi::Region& region, const Hooks& hooks, const Limits& limits)
    : region_(region),
      hooks_(hooks),
      completions_(region.completion_consumer()),
      submitter_(region, hooks_),
      rounds_(hooks, submitter_),
      messages_(region_, hooks, submitter_, membership_, groups_, limits.unexpected_octets),
      membership_(region_, hooks_, submitter_, messages_.outbox().arena(), limits.medium),
      groups_(submitter_, messages_.outbox(), membership_),
      links_(submitter_, membership_, messages_),
      offloads_(submitter_, messages_.outbox().arena()),
      watch_(region.control(), hooks_) {
    collectives_.checks = limits.check_collectives != 0;
    if (collectives_.checks && hooks_.now != nullptr)
        collectives_.patience = static_cast<Nanos>(limits.patience_ms) * kMillisecond;
    collectives_.offloads = limits.offload != 0;
    if (!messages_.outbox().arena().ok()) throw std::bad_alloc();
}

Endpoint::~Endpoint() {
    if (hooks_.close != nullptr) hooks_.close(hooks_.context);
}

// ---------------------------------------------------------------- poll

/// Returns true if a poll has more to do than to take completions.
[[gnu::always_inline]] inline bool Endpoint::has_more_to_do() const noexcept {
    return events_aside_ != 0 || messages_.has_more_to_do() || groups_.waits() ||
           membership_.is_leaving() || submitter_.corrupt();
}

// Mostly nothing has come, or one short message whose receive is posted.
int Endpoint::poll() {
    if (ended() != 0) return ended();
    const bool moved = rounds_.run();
    int events = 0;
    const abi::CompletionRecord* record = completions_.front();
    if (record != nullptr && messages_.take_short(*record)) {
        completions_.pop();
        record = completions_.front();
        events = 1;
    }
    if (record != nullptr || has_more_to_do()) [[unlikely]]
        return poll_all(events, moved);
    if (events == 0 && !moved) return on_idle_poll();
    empty_polls_ = 0;
    return events;
}

int Endpoint::on_idle_poll() {
    if (++empty_polls_ % kAnnouncePolls == 0) {
        messages_.source_notes().announce_awaited();
        end_if_closed();
    }
    if (!watch_.may_wait() && watch_.pace() && !has_come()) end(ULC_ERR_NO_ENGINE);
    return ended();
}

/// Takes the rest of the completions, and runs all other steps of a poll. events: completions that
/// were taken; moved: the engine's round moved something.
int Endpoint::poll_all(int events, bool moved) {
    events += std::exchange(events_aside_, 0);
    bool stalled = false;
    for (unsigned n = 0; n < kPollRecordsMax; ++n) {
        const abi::CompletionRecord* record = completions_.front();
        if (record == nullptr) break;
        // Everything that the peer wrote to its ring comes before.
        if (!messages_.drain_near(record->source)) [[unlikely]] {
            stalled = true;
            break;
        }
        if (record->kind == abi::CompletionKind::kMessage) {
            const Inbox::Taken taken = messages_.on_message(*record);
            stalled = taken == Inbox::Taken::kStalled;
            if (stalled) break;
            if (taken == Inbox::Taken::kCorrupt) end(ULC_ERR_CORRUPT);
        } else {
            // The ends of sends that the engine gave before the record come before it.
            events += take_sends_done();
            if (ended() == 0 && !dispatch(*record)) end(ULC_ERR_CORRUPT);
        }
        if (ended() != 0) {
            completions_.pop();
            return events > 0 ? events : ended();
        }
        completions_.pop();
        ++events;
    }
    events += take_sends_done();
    events += static_cast<int>(messages_.outbox().progress() + groups_.progress());
    if (messages_.owes_answers()) [[unlikely]]
        events += static_cast<int>(messages_.answer(&stalled));
    submit_leave();
    if (submitter_.corrupt()) end(ULC_ERR_CORRUPT);
    if (events > 0 || moved) {
        empty_polls_ = 0;
        if (events > 0) return events;
    } else {
        (void)on_idle_poll();
    }
    if (ended() != 0) return ended();
    return stalled ? -ULC_ERR_LIMIT : 0;
}

int Endpoint::take_sends_done() {
    const int taken = messages_.outbox().take_done();
    if (taken >= 0) return taken;
    end(ULC_ERR_CORRUPT);
    return 0;
}

void Endpoint::end_if_closed() {
    const int closed = watch_.closed();
    if (closed != 0 && !has_come()) end(closed);
}

void Endpoint::end_with_engine() {
    if (has_come()) return;
    if (watch_.closed() != 0) return end_if_closed();
    if (watch_.is_gone_now() && !has_come()) end(ULC_ERR_NO_ENGINE);
}

void Endpoint::look_at_engine(Nanos now, Nanos apart) {
    if (watch_.is_due(now, apart) && watch_.is_gone(now) && !has_come()) end(ULC_ERR_NO_ENGINE);
}

// Handles a completion other than a message. Returns false if no correct engine writes it.
bool Endpoint::dispatch(const abi::CompletionRecord& record) {
    switch (record.kind) {
        case abi::CompletionKind::kMessage:
            return false;
        case abi::CompletionKind::kOffloadDone:
            return offloads_.on_done(record);
        case abi::CompletionKind::kJobFormed:
        case abi::CompletionKind::kLinksOpen:
            return begin_job(record);
        case abi::CompletionKind::kJobFailed:
            return on_job_failed(record);
        case abi::CompletionKind::kGroupReady:
        case abi::CompletionKind::kGroupFailed: {
            const bool ready = record.kind == abi::CompletionKind::kGroupReady;
            const int status = record.status != 0 ? int{record.status} : int{ULC_ERR_SYSTEM};
            abi::GroupOffers offers{};
            if (ready) std::memcpy(&offers, record.body.inline_octets, sizeof offers);
            return groups_.on_registered(static_cast<std::uint32_t>(record.tag), ready ? 0 : status,
                                         offers);
        }
        case abi::CompletionKind::kGroupListens:
            groups_.on_listens(record.stream, static_cast<std::uint32_t>(record.tag),
                               record.status);
            return true;
        case abi::CompletionKind::kPeerLeft:
        case abi::CompletionKind::kPeerDied: {
            if (record.source >= membership_.size()) return false;
            const bool left = record.kind == abi::CompletionKind::kPeerLeft;
            on_peer_gone(record.source, left ? ULC_ERR_PEER_LEFT : ULC_ERR_PEER_DIED,
                         static_cast<Nanos>(record.tag % (1U << 31U)) * kMillisecond);
            return true;
        }
        case abi::CompletionKind::kFault:
            if (record.source >= membership_.size()) return false;
            groups_.on_fault(record);
            messages_.settings().handler.report(record.status, record.source, record.tag);
            return true;
        case abi::CompletionKind::kLinked:
        case abi::CompletionKind::kLinkDone:
        case abi::CompletionKind::kUnlinked:
            return links_.on_record(record);
        case abi::CompletionKind::kNear:
            return messages_.near() != nullptr && messages_.near()->on_record(record);
        case abi::CompletionKind::kLeft:
            membership_.on_left(record);
            end(ULC_ERR_CLOSED);
            return true;
    }
    return false;
}

/// Handles kJobFormed and kLinksOpen. Returns false if no correct engine writes it.
bool Endpoint::begin_job(const abi::CompletionRecord& record) {
    try {
        if (record.kind == abi::CompletionKind::kLinksOpen) {
            if (!membership_.on_links_open(record)) return false;
            links_.open(record.body.inline_octets);
        } else {
            if (!membership_.on_formed(record)) return false;
            groups_.begin_job(record.body.block.message_length);
        }
        if (messages_.begin_job()) return true;
    } catch (const std::bad_alloc&) {  // as below
    }
    end(ULC_ERR_NO_MEMORY);
    return true;
}

bool Endpoint::on_job_failed(const abi::CompletionRecord& record) {
    if (!membership_.on_failed(record)) return false;
    if (!membership_.is_formed()) return true;
    set_last_error("%s", membership_.job_text().c_str());
    end(membership_.job_error());
    return true;
}

/// absence: how long the engine was stopped before, which may be why; 0: it was not.
void Endpoint::on_peer_gone(std::uint16_t rank, int error, Nanos absence) {
    // Also of a peer that was let go.
    if (rank == membership_.rank() || membership_.peer_error(rank) != 0) return;
    membership_.set_peer_error(rank, error);
    if (absence > 0)
        set_last_error("%s was stopped for %.1f s, which may be why others ended the job",
                       region_.reaches_process() ? "this process" : "the engine of this node",
                       static_cast<double>(absence) / static_cast<double>(kSecond));
    messages_.peer_gone(rank, error);
    groups_.peer_gone(rank, error);
}

bool Endpoint::may_place(const abi::Beginning& message) const noexcept {
    const bool tells_libulc = is_of_libulc(message.tag) && !is_rest(message.tag);
    return !tells_libulc && ended() == 0 &&
           static_cast<std::int32_t>(completions_.consumed() - message.taken_at_least) >= 0;
}

abi::Placer Endpoint::placer() noexcept {
    abi::Placer placer;
    placer.context = this;
    placer.find = [](void* context, const abi::Beginning& message) -> abi::Place {
        auto& self = *static_cast<Endpoint*>(context);
        return self.may_place(message) ? self.messages_.inbox().find_place(message) : abi::Place{};
    };
    placer.place = [](void* context, const abi::Beginning& message) -> abi::Place {
        auto& self = *static_cast<Endpoint*>(context);
        return self.may_place(message) ? self.messages_.inbox().place(message) : abi::Place{};
    };
    return placer;
}

int Endpoint::lend_frames(bool lend) noexcept {
    if (ended() != 0) return -ended();
    if (hooks_.lend_frames == nullptr) return ULC_ERR_UNSUPPORTED;
    return hooks_.lend_frames(hooks_.context, lend);
}

// ---------------------------------------------------------------- ends

void Endpoint::prepare_as(const Endpoint& other) {
    membership_.prepare_as(other.membership_.recall());
    const Messages::Settings& settings = other.messages_.settings();
    messages_.set_error_handler(settings.handler);
    static_cast<void>(messages_.set_rendezvous(settings.announce_from, settings.held_max));
}

int Endpoint::leave() noexcept {
    if (ended() != 0) return -ended();
    if (!membership_.begin_leaving()) {
        end(ULC_ERR_CLOSED);
        return ULC_OK;
    }
    messages_.push_announced();
    submit_leave();
    return ULC_OK;
}

void Endpoint::submit_leave() noexcept {
    if (membership_.is_leave_due() && messages_.outbox().all_submitted())
        membership_.submit_leave();
}

void Endpoint::end(int error) {
    if (ended() != 0) return;
    membership_.end(error);
    messages_.fail_all(error);
    groups_.fail_all(error);
    links_.fail_all(error);
    offloads_.fail_all(error);
}

void Endpoint::check_invariants() const {
    membership_.check_invariants();
    if (ended() != 0) return;
    messages_.check_invariants();
    groups_.check_invariants();
    links_.check_invariants();
    offloads_.check_invariants();
}

}  // namespace ulc::client
