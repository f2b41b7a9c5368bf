// The command drain: submission records of one client, each copied once into private memory and judged there (DESIGN
// decision 4). A record that no correct client writes closes the endpoint; one that came at a wrong time, or names a
// stream that does not exist, is answered.
//
// Sends that the transport does not admit fill the send queue, and then the records behind them wait in the ring; all wait
// while the completion ring is full. Releases
// must not: two clients that flood each other would each wait for the memory that the other's waiting releases give
// back. So, while the queue is full, the drain looks ahead in the ring, takes the releases that it finds out of turn, and
// marks their slots to be skipped. (A client keeps part of its ring free of sends for them, abi/records.h.)
#include <cstring>

#include "engine/core.h"

namespace ulc::engine {
namespace {

using abi::SubmissionRecord;
using abi::SubmitKind;

// Whether the stream of a send may be used now.
Err stream_error(const Endpoint& endpoint, const SubmissionRecord& record) noexcept {
    if (endpoint.member == nullptr) return Err::kNotFormed;
    if (endpoint.state == EndpointState::kLeaving) return Err::kClosed;
    const urtp::Member& member = *endpoint.member;
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
    switch (endpoint.sends.accept(endpoint.region, stream_error(endpoint, record))) {
        case SendQueue::Verdict::kOk:
            return true;
        case SendQueue::Verdict::kFailed:
            core.counters.add(Counter::client_bad_record);
            return true;
        case SendQueue::Verdict::kCorrupt:
            return false;
    }
    return false;
}

bool on_release(Endpoint& endpoint, const SubmissionRecord& record) {
    if (endpoint.deliverer == nullptr) return false;
    if (!endpoint.deliverer->release(record.body.block.offset)) return false;
    endpoint.work |= kWorkDeliver;
    return true;
}

void on_expect(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    if (endpoint.member == nullptr || record.stream >= endpoint.member->size()) {
        core.counters.add(Counter::client_bad_record);
        return;
    }
    endpoint.member->expect(static_cast<Rank>(record.stream), now);
    endpoint.work |= kWorkTransmit | kWorkSettle;
}

// False: no correct client writes this.
bool on_record(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    switch (record.kind) {
        case SubmitKind::kSend:
            return on_send(core, endpoint, record);
        case SubmitKind::kRelease:
            return on_release(endpoint, record);
        case SubmitKind::kExpect:
            on_expect(core, endpoint, record, now);
            return true;
        case SubmitKind::kJoinJob:
        case SubmitKind::kAddGroup:
        case SubmitKind::kRemoveGroup:
        case SubmitKind::kLeave:
            if (endpoint.state == EndpointState::kLingering) return true;  // nobody to answer
            return control_record(core, endpoint, record, now);
    }
    return false;
}

bool was_taken_ahead(Endpoint& endpoint) noexcept {
    const std::uint32_t slot = endpoint.submissions.consumed() & (endpoint.submissions.slots() - 1);
    std::uint64_t& word = endpoint.taken_ahead[slot / 64];
    const std::uint64_t bit = 1ULL << (slot % 64);
    if ((word & bit) == 0) return false;
    word &= ~bit;
    return true;
}

// Takes releases that stand behind waiting sends. False: a corrupt one.
bool look_ahead(Core& core, Endpoint& endpoint, bool& moved) {
    const std::uint32_t slots = endpoint.submissions.slots();
    const std::uint32_t from = endpoint.submissions.consumed();
    if (static_cast<std::int32_t>(endpoint.looked_until - from) < 0) endpoint.looked_until = from;
    auto* ring = reinterpret_cast<SubmissionRecord*>(
        static_cast<std::byte*>(endpoint.region.base()) + endpoint.region.layout().sq_offset);
    for (std::uint32_t n = endpoint.looked_until; n - from < slots; ++n) {
        SubmissionRecord& slot = ring[n & (slots - 1)];
        if (std::atomic_ref<std::uint32_t>(slot.mark).load(std::memory_order_acquire) !=
            abi::mark_of(n, slots))  // order A of abi/slot_ring.h
            break;
        endpoint.looked_until = n + 1;
        SubmissionRecord record;
        std::memcpy(&record, &slot, sizeof record);
        asm volatile("" ::: "memory");  // judge the copy, not the slot
        if (record.kind != SubmitKind::kRelease) continue;
        if (!on_release(endpoint, record)) return false;
        const std::uint32_t at = n & (slots - 1);
        endpoint.taken_ahead[at / 64] |= 1ULL << (at % 64);
        core.counters.add(Counter::submissions);
        moved = true;
    }
    return true;
}

}  // namespace

bool drain(Core& core, Endpoint& endpoint, Nanos now) {
    bool moved = false;
    bool correct = true;
    SubmissionRecord skipped;
    std::uint32_t n = 0;
    for (; correct && endpoint.taking && n < core.config.records_per_round; ++n) {
        if (!endpoint.submissions.ready()) break;
        if (was_taken_ahead(endpoint)) {
            (void)endpoint.submissions.take(skipped);
            continue;
        }
        const bool gone = endpoint.state == EndpointState::kLingering;
        if (!gone && endpoint.completions.room() == 0) {  // some records are answered at once
            correct = look_ahead(core, endpoint, moved);
            break;
        }
        SubmissionRecord* slot = endpoint.sends.slot();
        if (slot == nullptr) {
            correct = look_ahead(core, endpoint, moved);
            break;
        }
        if (!endpoint.submissions.take(*slot)) break;  // the client took its mark back
        core.counters.add(Counter::submissions);
        correct = on_record(core, endpoint, *slot, now);
    }
    if (!correct) {
        core.counters.add(Counter::client_bad_record);
        close_corrupt(core, endpoint, now);
        return true;
    }
    if (n == 0) return moved;
    endpoint.work |= kWorkSend;
    return true;
}

}  // namespace ulc::engine
