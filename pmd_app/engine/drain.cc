// SPDX-License-Identifier: BSD-3-Clause
// The command drain: submission records of one client, each copied once into private memory and
// validated there (decision D4). A record that no correct client writes closes the endpoint;
// one that came at a wrong time, or names a stream that does not exist, is answered.
//
// Sends that the transport does not admit fill the send queue, and then the records behind them
// wait in the ring. Short messages to one rank wait there at once (endpoint/inlet.h). No circle of
// ranks can wait so without end: a send waits for memory of its
// receivers alone, never for its own client, which may compute or wait elsewhere after it has sent.
// The return of memory, in both directions, waits for no record and no completion
// (abi/entry_rings.h). The other records may wait behind sends: kRemoveGroup and kLeave must come
// after them; a client that waits for its kAddGroup takes messages meanwhile; and kExpect only
// hastens a retransmission that the source's probe causes anyway. A record that may be answered at
// once waits while the completion ring is full, and the sends behind it too: its client polls, for
// it waits for the answer.
#include <algorithm>

#include "base/check.h"
#include "engine/fast/send.h"

namespace ulc::engine {
namespace {

using abi::SubmissionRecord;
using abi::SubmitKind;

// Returns whether the stream of a send may be used at this time.
Err stream_error(const Endpoint& endpoint, const SubmissionRecord& record) noexcept {
    if (endpoint.member() == nullptr) return Err::kNotFormed;
    if (endpoint.life().is_leaving()) return Err::kClosed;
    const urtp::Transport& member = *endpoint.member();
    if (!is_group(record.stream)) return record.stream < member.size() ? Err::kOk : Err::kInvalid;
    const std::size_t size = member.members(record.stream).size();
    if (size == 0) return Err::kInvalid;
    if ((record.flags & abi::kSubmitHasSubset) == 0 || (record.flags & abi::kSubmitInline) != 0)
        return Err::kOk;
    const std::uint64_t subset = record.body.block.subset;
    if (size > 64 || subset == 0) return Err::kInvalid;
    return size == 64 || (subset >> size) == 0 ? Err::kOk : Err::kInvalid;
}

bool on_send(Core& core, Endpoint& endpoint, const SubmissionRecord& record) {
    switch (endpoint.sends().accept(endpoint.region(), stream_error(endpoint, record))) {
        case endpoint::SendQueue::Verdict::kOk:
            return true;
        case endpoint::SendQueue::Verdict::kFailed:
            bad_record(core, endpoint);
            return true;
        case endpoint::SendQueue::Verdict::kCorrupt:
            return false;
    }
    return false;
}

/// Sends the message of the next record, if it is short and waits for no other.
bool sent_at_once(Core& core, Endpoint& endpoint, Nanos now) {
    const Sent sent = send_short<true>(core, endpoint, ShortRecord(endpoint.inlet().peek()), now);
    if (!sent) return false;
    if (sent.to != nullptr) sent.to->mark(Work::kSettle);
    if (sent.queued) endpoint.mark(Work::kTransmit | Work::kSettle);
    endpoint.inlet().pop();
    core.counters().add(Counter::submissions);
    core.counters().add(Counter::messages_sent);
    return true;
}

void on_expect(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    if (endpoint.member() == nullptr || record.stream >= endpoint.member()->size()) {
        bad_record(core, endpoint);
        return;
    }
    if (endpoint.member()->expect(static_cast<Rank>(record.stream), now))
        endpoint.mark(Work::kDeliver);
    endpoint.mark(Work::kTransmit | Work::kSettle);
}

// Returns false if corrupt. A slot of the completion ring is free.
[[gnu::noinline]] bool on_offload(Core& core, Endpoint& endpoint, const SubmissionRecord& record) {
    endpoint::Offloads& offloads =
        endpoint.offloads() != nullptr
            ? *endpoint.offloads()
            : endpoint.begin_offloads(core.config().offloads_max, core.config().offload_steps_max,
                                      core.counters());
    const urtp::Transport* member = endpoint.life().is_open() ? endpoint.member() : nullptr;
    const Err error = offloads.take(record, {endpoint.region(), member, *endpoint.outlet()});
    if (error == Err::kCorrupt) return false;
    if (error != Err::kOk) {
        if (error == Err::kInvalid) endpoint.errors().note();
        ULC_CHECK(endpoint::Offloads::answer(*endpoint.outlet(), record.cookie, error));
        return true;
    }
    for (Rank rank = 0; rank < endpoint.member()->size(); ++rank) {
        if (!endpoint.membership().is_here(rank) && !endpoint.reports().has_end_of(rank))
            offloads.peer_gone(rank, endpoint.membership().has_died(rank));
    }
    return true;
}

// Returns false if no correct client writes this.
bool on_record(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    switch (record.kind) {
        case SubmitKind::kSend:
            return on_send(core, endpoint, record);
        case SubmitKind::kExpect:
            on_expect(core, endpoint, record, now);
            return true;
        case SubmitKind::kOffload:
            if (endpoint.life().is_lingering()) return true;  // no client waits for it
            return on_offload(core, endpoint, record);
        case SubmitKind::kNear:
            return endpoint.life().is_lingering() || near_record(core, endpoint, record);
        case SubmitKind::kCancelOffload:
            if (endpoint.offloads() != nullptr) endpoint.offloads()->cancel(record.cookie);
            return true;
        case SubmitKind::kJoinJob:
        case SubmitKind::kAddGroup:
        case SubmitKind::kRemoveGroup:
        case SubmitKind::kListenGroup:
        case SubmitKind::kUseAddress:
        case SubmitKind::kOpenLinks:
        case SubmitKind::kLink:
        case SubmitKind::kUnlink:
        case SubmitKind::kHold:
        case SubmitKind::kLeave:
            if (endpoint.life().is_lingering()) return true;  // no client to answer
            return control_record(core, endpoint, record, now);
    }
    return false;
}

/// True if a record may be answered at once.
bool may_answer(Endpoint& endpoint) noexcept {
    return endpoint.life().is_lingering() || endpoint.outlet()->completions().room() != 0;
}

/// Returns whether the next record, which has come, is a send: that needs no completion.
bool next_is_send(const Endpoint& endpoint) noexcept {
    return ShortRecord(endpoint.inlet().peek()).is_send();
}

/// Closes an endpoint with too many errors in a second.
[[gnu::noinline]] void judge_errors(Core& core, Endpoint& endpoint, Nanos now) {
    if (!endpoint.errors().is_over(core.config().accounts.errors_per_second, now)) return;
    core.counters().add(Counter::clients_over_errors);
    close_corrupt(core, endpoint, now);
}

}  // namespace

bool may_take(Endpoint& endpoint) noexcept {
    if (!endpoint.life().has_memory() || !endpoint.inlet().ready()) return false;
    if (endpoint.sends().slot() == nullptr) return false;
    return may_answer(endpoint) || endpoint.outlet()->completions().corrupt() ||
           next_is_send(endpoint);
}

[[gnu::flatten]] bool drain(Core& core, Endpoint& endpoint, Nanos now) {
    bool moved = false;
    core.end_verdicts();
    for (std::uint32_t n = 0; endpoint.life().has_memory() && n < core.config().records_per_round;
         ++n) {
        if (n > 0 && !endpoint.inlet().ready()) break;
        const bool answers = may_answer(endpoint);
        if (!answers && endpoint.outlet()->completions().corrupt()) {
            core.counters().add(Counter::client_bad_cursor);
            close_corrupt(core, endpoint, now);
            return true;
        }
        if (!endpoint.inlet().ready()) break;
        if (endpoint.inlet().waits() && endpoint.inlet().wait_on()) break;
        if (sent_at_once(core, endpoint, now)) {
            moved = true;
            continue;
        }
        if (wait_in_ring(endpoint, now)) {
            endpoint.mark(Work::kSettle);  // the refusal may have armed a timer
            break;
        }
        SubmissionRecord* slot = endpoint.sends().slot();
        if (slot == nullptr || (!answers && !next_is_send(endpoint))) break;
        endpoint.inlet().take(*slot);
        core.counters().add(Counter::submissions);
        moved = true;
        core.end_verdicts();
        const bool changed = !answers && slot->kind != SubmitKind::kSend;  // since it was looked at
        if (changed || !on_record(core, endpoint, *slot, now)) {
            core.counters().add(Counter::client_bad_record);
            close_corrupt(core, endpoint, now);
            return true;
        }
    }
    if (moved && (!endpoint.sends().empty() || endpoint.offloads() != nullptr))
        endpoint.mark(Work::kSend);
    if (endpoint.errors().has_noted()) [[unlikely]]
        judge_errors(core, endpoint, now);
    return moved;
}

}  // namespace ulc::engine
