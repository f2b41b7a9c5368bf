// SPDX-License-Identifier: BSD-3-Clause
#include "client/endpoint.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "abi/engine_entry.h"
#include "client/p2p/tags.h"

namespace ulc::client {
namespace {

/// Empty polls before the source that a receive names is announced to the engine, and between
/// checks of `closed`.
constexpr std::uint32_t kAnnouncePolls = 1024;
constexpr unsigned kAwaitedMax = 16;

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
      outbox_(region, submitter_),
      inbox_(region_, recall_.handler, limits.unexpected_octets,
             {hooks.forget_place, hooks.context}),
      groups_(submitter_, outbox_),
      offloads_(submitter_, outbox_.arena()),
      watch_(region.control(), hooks_) {
    checks_collectives_ = limits.check_collectives != 0;
    if (checks_collectives_ && hooks_.now != nullptr)
        collective_patience_ = static_cast<Nanos>(limits.patience_ms) * kMillisecond;
    offloads_collectives_ = limits.offload != 0;
    medium_said_ = limits.medium;
    if (!outbox_.arena().ok()) throw std::bad_alloc();
}

Endpoint::~Endpoint() {
    if (hooks_.close != nullptr) hooks_.close(hooks_.context);
}

// ---------------------------------------------------------------- poll

/// Runs a round of an engine in this process. Returns true if something moved.
[[gnu::always_inline]] inline bool Endpoint::run_engine() {
    if (hooks_.progress == nullptr) return false;
    const std::uint32_t published = submitter_.published();
    const int round = hooks_.progress(hooks_.context);
    if (round != abi::kRoundElsewhere) {
        taken_by_engine_ = published;
        engine_owes_ = (round & abi::kRoundOwes) != 0;
    }
    return (round & abi::kRoundMoved) != 0;
}

/// Returns true if a poll has more to do than to take completions.
[[gnu::always_inline]] inline bool Endpoint::has_more_to_do() const noexcept {
    return events_aside_ != 0 || !outbox_.all_submitted() || outbox_.has_done() ||
           groups_.waits() || near_ != nullptr || inbox_.owes_answers() ||
           inbox_.arrivals().shares().has_intakes() || state_ == State::kLeaving ||
           submitter_.corrupt();
}

// Mostly nothing has come, or one short message whose receive is posted.
int Endpoint::poll() {
    if (ended_ != 0) return -ended_;
    const bool moved = run_engine();
    int events = 0;
    const abi::CompletionRecord* record = completions_.front();
    if (record != nullptr && near_ == nullptr && inbox_.take_short(*record)) {
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
        announce_awaited();
        end_if_closed();
    }
    if (!watch_.may_wait() && watch_.pace() && !has_come()) end(ULC_ERR_NO_ENGINE);
    return -ended_;
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
        if (near_ != nullptr && !drain_near(record->source)) [[unlikely]] {
            stalled = true;
            break;
        }
        if (record->kind == abi::CompletionKind::kMessage) {
            const Inbox::Taken taken = on_message(*record);
            stalled = taken == Inbox::Taken::kStalled;
            if (stalled) break;
            if (taken == Inbox::Taken::kCorrupt) end(ULC_ERR_CORRUPT);
        } else {
            // The ends of sends that the engine gave before the record come before it.
            events += take_sends_done();
            if (ended_ == 0 && !dispatch(*record)) end(ULC_ERR_CORRUPT);
        }
        if (ended_ != 0) {
            completions_.pop();
            return events > 0 ? events : -ended_;
        }
        completions_.pop();
        ++events;
    }
    events += take_sends_done();
    events += static_cast<int>(outbox_.progress() + groups_.progress());
    if (near_ != nullptr) [[unlikely]]
        events += static_cast<int>(near_->drain_all(&stalled));
    if (inbox_.owes_answers()) [[unlikely]]
        answer_announced();
    if (inbox_.arrivals().shares().has_intakes()) [[unlikely]]
        note_sources();
    if (near_ != nullptr) [[unlikely]]
        answer_near();
    if (state_ == State::kLeaving && !leave_pushed_) push_leave();
    if (submitter_.corrupt()) end(ULC_ERR_CORRUPT);
    if (events > 0 || moved) {
        empty_polls_ = 0;
        if (events > 0) return events;
    } else {
        (void)on_idle_poll();
    }
    if (ended_ != 0) return -ended_;
    return stalled ? -ULC_ERR_LIMIT : 0;
}

int Endpoint::take_sends_done() {
    const int taken = outbox_.take_done();
    if (taken >= 0) return taken;
    end(ULC_ERR_CORRUPT);
    return 0;
}

void Endpoint::note_sources() noexcept {
    abi::EndpointControl& page = region_.control();
    if (page.note_taken.load(std::memory_order_acquire) != source_note_) return;
    abi::SourceNote note{};
    if (!inbox_.arrivals().shares().next_intake(note.source, note.intake)) return;
    const std::uint32_t last = source_note_ >> 18;
    note.number = last == abi::SourceNote::kNumberMax ? 1 : last + 1;
    source_note_ = note.packed();
    page.source_note.store(source_note_, std::memory_order_release);
    // If the ring is full, the engine looks at this endpoint because of the records in it.
    if (abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kExpect)) {
        record->stream = note.source;
        submitter_.publish();
    }
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

void Endpoint::announce_awaited() noexcept {
    if (state_ != State::kFormed) return;
    inbox_.matcher().each_awaited(kAwaitedMax, [this](std::uint16_t source) {
        if (source == rank_) return true;
        abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kExpect);
        if (record == nullptr) return false;
        record->stream = source;
        submitter_.publish();
        return true;
    });
}

// Handles a completion other than a message. Returns false if no correct engine writes it.
bool Endpoint::dispatch(const abi::CompletionRecord& record) {
    switch (record.kind) {
        case abi::CompletionKind::kMessage:
            return false;
        case abi::CompletionKind::kOffloadDone:
            return offloads_.on_done(record);
        case abi::CompletionKind::kJobFormed:
            if (state_ != State::kForming) return false;
            on_formed(record);
            return true;
        case abi::CompletionKind::kJobFailed:
            if (state_ != State::kForming && state_ != State::kLeaving && state_ != State::kFormed)
                return false;
            on_job_failed(record);
            return true;
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
            if (record.source >= size_) return false;
            const bool left = record.kind == abi::CompletionKind::kPeerLeft;
            on_peer_gone(record.source, left ? ULC_ERR_PEER_LEFT : ULC_ERR_PEER_DIED,
                         static_cast<Nanos>(record.tag % (1U << 31U)) * kMillisecond);
            return true;
        }
        case abi::CompletionKind::kFault:
            if (record.source >= size_) return false;
            on_fault(record);
            return true;
        case abi::CompletionKind::kLinksOpen:
            return state_ == State::kForming && on_links_open(record);
        case abi::CompletionKind::kLinked:
        case abi::CompletionKind::kLinkDone:
        case abi::CompletionKind::kUnlinked:
            return links_ != nullptr && on_link_record(record);
        case abi::CompletionKind::kNear:
            return on_near_record(record);
        case abi::CompletionKind::kLeft:
            left_error_ = record.status;
            end(ULC_ERR_CLOSED);
            return true;
    }
    return false;
}

/// Handles a report that belongs to no request. A member that held up a group is noted there.
void Endpoint::on_fault(const abi::CompletionRecord& record) {
    const bool slow = record.status == ULC_ERR_PEER_SLOW || record.status == ULC_ERR_PEER_SILENT;
    if (Group* held = slow ? groups_.find(record.stream) : nullptr; held != nullptr) {
        ulc_holder& holder = held->slowest;
        if (holder.error == ULC_OK || holder.rank != record.source) holder.held_ns = 0;
        holder.error = record.status;
        holder.rank = record.source;
        holder.held_ns += record.tag * kMillisecond;
    }
    recall_.handler.report(record.status, record.source, record.tag);
}

Inbox::Taken Endpoint::on_message(const abi::CompletionRecord& record) {
    const bool tagged = (record.flags & abi::kCompleteHasTag) != 0;
    const bool word = tagged && is_of_libulc(record.tag);
    const Inbox::Taken taken = word ? on_word(record) : inbox_.on_message(record);
    const bool counts = !word || record.tag == kTagAnnouncement;
    if (near_ != nullptr && counts && taken == Inbox::Taken::kYes &&
        (record.flags & abi::kCompleteFirst) != 0 && group_of(record.stream) == 0)
        near_->arrived(record.source);
    return taken;
}

bool Endpoint::may_place(const abi::Beginning& message) const noexcept {
    const bool tells_libulc = is_of_libulc(message.tag) && !is_rest(message.tag);
    return !tells_libulc && ended_ == 0 &&
           static_cast<std::int32_t>(completions_.consumed() - message.taken_at_least) >= 0;
}

abi::Placer Endpoint::placer() noexcept {
    abi::Placer placer;
    placer.context = this;
    placer.find = [](void* context, const abi::Beginning& message) -> abi::Place {
        auto& self = *static_cast<Endpoint*>(context);
        return self.may_place(message) ? self.inbox_.find_place(message) : abi::Place{};
    };
    placer.place = [](void* context, const abi::Beginning& message) -> abi::Place {
        auto& self = *static_cast<Endpoint*>(context);
        return self.may_place(message) ? self.inbox_.place(message) : abi::Place{};
    };
    return placer;
}

void Endpoint::abandon() noexcept {
    ended_ = ULC_ERR_CLOSED;
    state_ = State::kClosed;
}

// Ends the endpoint: everything pending ends with it.
void Endpoint::end(int error) {
    if (ended_ != 0) return;
    ended_ = error;
    state_ = State::kClosed;
    outbox_.fail_all(error);
    inbox_.fail_all(error);
    groups_.fail_all(error);
    if (links_ != nullptr) links_->fail_all(error);
    offloads_.fail_all(error);
}

}  // namespace ulc::client
