// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/offload.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "endpoint/passed_log.h"
#include "exec/executor.h"

namespace ulc::endpoint {
namespace {

using abi::Step;
using abi::StepKind;

constexpr std::uint32_t kNone = UINT32_MAX;

/// Returns true if two tags of one operation differ, from one member's view, in the parts that are
/// checked; 0 is unchecked (client/groups/signature.h).
[[nodiscard]] bool unlike(std::uint64_t a, std::uint64_t b, std::uint64_t mask) noexcept {
    return (a & ~mask) != 0 && (b & ~mask) != 0 && ((a ^ b) & ~mask) != 0;
}

/// Returns the send of a step as the client's own record of it would be.
[[nodiscard]] abi::SubmissionRecord record_of(const Step& step, std::uint32_t stream,
                                              std::uint64_t tag, std::uint32_t offset) noexcept {
    abi::SubmissionRecord record{};
    record.kind = abi::SubmitKind::kSend;
    record.flags = abi::kSubmitHasTag | abi::kSubmitFirst | abi::kSubmitLast;
    record.stream = stream;
    record.tag = tag;
    const bool subset = step.kind == StepKind::kMcast && step.from_offset != 0;
    if (step.length == 0 && !subset) {
        record.flags |= abi::kSubmitInline;
        return record;
    }
    if (subset) record.flags |= abi::kSubmitHasSubset;
    record.body.block = {
        offset, static_cast<std::uint32_t>(step.length), step.length, step.from_offset, 0, 0};
    if (!subset) record.body.block.subset = 0;
    return record;
}

}  // namespace

/// One schedule in private memory.
struct Offload {
    std::uint32_t id = 0;
    std::uint32_t cookie = 0;
    std::uint32_t group = 0;
    std::uint64_t tag = 0;
    std::uint64_t mask = 0;
    /// Offsets in the tx arena of input, output and scratch.
    std::uint32_t buffers[exec::kBuffers] = {0, 0, 0};
    std::vector<Rank> ranks;           ///< members of the group
    std::vector<std::uint16_t> index;  ///< by rank: 1 + index in the group, 0: no member
    std::vector<Step> steps;
    std::vector<std::uint32_t> depends;
    std::vector<std::uint32_t> next_receive;  ///< by step: the next from the same peer
    std::vector<std::uint32_t> receive;       ///< by member: the step of its next message
    std::vector<std::uint8_t> here;           ///< by step: its message has come
    std::vector<Rank> passed;                 ///< sources of messages that belong to the client
    std::optional<exec::Executor> executor;
    std::uint32_t queued = 0;  ///< steps in the send queue
    Err error = Err::kOk;
    Rank source = 0;              ///< kMismatch: source of the message that differs
    std::uint64_t found_tag = 0;  ///< the same

    /// Returns the step of the next message from that member, which is arriving; kNone: there is
    /// none.
    std::uint32_t take_receive(Rank rank) noexcept {
        if (rank >= index.size() || index[rank] == 0) return kNone;
        std::uint32_t& first = receive[index[rank] - 1U];
        const std::uint32_t step = first;
        if (step != kNone) first = next_receive[step];
        return step;
    }
    void chain_receives() {
        receive.assign(ranks.size(), kNone);
        next_receive.assign(steps.size(), kNone);
        here.assign(steps.size(), 0);
        for (std::size_t i = steps.size(); i-- > 0;) {
            if (steps[i].kind != StepKind::kRecv) continue;
            next_receive[i] = std::exchange(receive[steps[i].peer], static_cast<std::uint32_t>(i));
        }
    }
    /// Returns the tag of a message that the step sends, or receives from a member that agrees; 0
    /// in the checked parts is unchecked.
    [[nodiscard]] std::uint64_t tag_of(std::uint32_t step) const noexcept {
        return (tag & ~mask) != 0 && executor->is_last(step) ? tag | abi::kTagLast : tag;
    }
    [[nodiscard]] bool over() const noexcept {
        return queued == 0 && (error != Err::kOk || executor->done());
    }
};

Offloads::Offloads(std::uint32_t schedules_max, std::uint32_t steps_max, Counters& counters)
    : schedules_max_(schedules_max), steps_max_(steps_max), counters_(counters) {}

Offloads::~Offloads() = default;

// ---------------------------------------------------------------- taking a schedule

Err Offloads::take(const abi::SubmissionRecord& record, const Context& context) {
    const abi::Block& block = record.body.block;
    const std::byte* shared = context.region.tx(block.offset, block.length);
    abi::OffloadRequest request;
    if (shared == nullptr || block.length < sizeof request || record.flags != 0)
        return Err::kCorrupt;
    std::memcpy(&request, shared, sizeof request);
    asm volatile("" ::: "memory");  // validate the copy, not the arena
    const std::uint64_t octets = sizeof request + std::uint64_t{request.step_count} * sizeof(Step) +
                                 std::uint64_t{request.depends_count} * sizeof(std::uint32_t);
    if (octets != block.length || (request.flags & ~abi::kOffloadPassesOn) != 0 ||
        context.region.tx(request.input_offset, request.input_octets) == nullptr ||
        context.region.tx(request.output_offset, request.output_octets) == nullptr ||
        context.region.tx(request.scratch_offset, request.scratch_octets) == nullptr) {
        return Err::kCorrupt;
    }
    if (const Err error = judge_group(record, request.tag_mask, context.member); error != Err::kOk)
        return error;
    if (running_.size() >= schedules_max_ || request.step_count > steps_max_ ||
        request.depends_count > std::uint64_t{exec::kDependsPerStepMax} * steps_max_) {
        counters_.add(Counter::offload_over_quota);
        return Err::kLimit;
    }
    auto offload = std::make_unique<Offload>();
    offload->cookie = record.cookie;
    offload->group = record.stream;
    offload->tag = record.tag;
    Err error = fill(*offload, request, shared + sizeof request, context);
    if (error == Err::kOk) error = pass_over(*offload, request, context.outlet);
    if (error != Err::kOk) return error;
    if (++last_id_ == 0) ++last_id_;  // 0 is no sink
    offload->id = last_id_;
    counters_.add(Counter::offload_taken);
    running_.push_back(std::move(offload));
    busy_ = true;
    return Err::kOk;
}

Err Offloads::judge_group(const abi::SubmissionRecord& record, std::uint64_t mask,
                          const urtp::Transport* member) {
    Err error = Err::kOk;
    if (member == nullptr) {
        error = Err::kNotFormed;
    } else if (member->members(record.stream).size() < 2 || !is_operation(record.tag) ||
               mask >> 62 != 3) {
        error = Err::kInvalid;
    }
    if (error != Err::kOk) counters_.add(Counter::offload_bad_group);
    return error;
}

// Copies the schedule and makes the executor, which validates it.
Err Offloads::fill(Offload& offload, const abi::OffloadRequest& request, const std::byte* arrays,
                   const Context& context) {
    const std::span<const Rank> members = context.member->members(offload.group);
    offload.mask = request.tag_mask;
    offload.ranks.assign(members.begin(), members.end());
    offload.index.assign(context.member->size(), 0);
    exec::Setup setup;
    for (std::size_t i = 0; i < members.size(); ++i) {
        offload.index[members[i]] = static_cast<std::uint16_t>(i + 1);
        if (members[i] == context.member->rank()) setup.self = static_cast<std::uint16_t>(i);
    }
    offload.steps.resize(request.step_count);
    offload.depends.resize(request.depends_count);
    const std::size_t octets = request.step_count * sizeof(Step);
    if (octets > 0) std::memcpy(offload.steps.data(), arrays, octets);
    if (request.depends_count > 0)
        std::memcpy(offload.depends.data(), arrays + octets,
                    request.depends_count * sizeof(std::uint32_t));
    asm volatile("" ::: "memory");  // as above
    offload.buffers[0] = request.input_offset;
    offload.buffers[1] = request.output_offset;
    offload.buffers[2] = request.scratch_offset;
    setup.members = static_cast<std::uint16_t>(members.size());
    const abi::Region& region = context.region;
    setup.input = reinterpret_cast<const unsigned char*>(
        region.tx(request.input_offset, request.input_octets));
    setup.output =
        reinterpret_cast<unsigned char*>(region.tx(request.output_offset, request.output_octets));
    setup.scratch =
        reinterpret_cast<unsigned char*>(region.tx(request.scratch_offset, request.scratch_octets));
    setup.octets[0] = request.input_octets;
    setup.octets[1] = request.output_octets;
    setup.octets[2] = request.scratch_octets;
    setup.may_copy = false;
    setup.steps_max = steps_max_;
    const abi::Schedule schedule{offload.steps.data(), offload.depends.data(), request.step_count,
                                 request.depends_count, 0};
    Result<exec::Executor> made = exec::Executor::make(schedule, setup);
    if (!made.ok()) {
        const bool limit = made.error() != Err::kInvalid;
        counters_.add(limit ? Counter::offload_over_quota : Counter::offload_bad_schedule);
        return made.error();
    }
    offload.executor.emplace(std::move(made.value()));
    offload.chain_receives();
    return Err::kOk;
}

// Handles messages of the operation that the client gets although it has not seen them yet.
Err Offloads::pass_over(Offload& offload, const abi::OffloadRequest& request,
                        const Outlet& outlet) {
    const auto pass = [&](Rank source) { offload.passed.push_back(source); };
    bool known = outlet.passed().since(request.seen, offload.tag, offload.mask, pass);
    outlet.each_half_passed(offload.tag, offload.mask, pass);
    const bool passes_on = (request.flags & abi::kOffloadPassesOn) != 0;
    known = known && offload.passed.size() <= (passes_on ? 0 : abi::kOffloadPassedMax);
    for (const Rank source : offload.passed) {
        const std::uint32_t step = offload.take_receive(source);
        if (step != kNone) offload.here[step] = 1;
        known = known && step != kNone;  // the client will find the fault
    }
    if (known) return Err::kOk;
    counters_.add(Counter::offload_late);
    return Err::kAgain;
}

// ---------------------------------------------------------------- carrying it out

bool Offloads::run(SendQueue& sends, Outlet& outlet) {
    bool moved = false;
    busy_ = false;
    retry_ = false;
    for (std::size_t i = 0; i < running_.size();) {
        Offload& offload = *running_[i];
        moved |= start(offload, sends);
        if (!offload.over() || !report(offload, outlet)) {
            ++i;
            continue;
        }
        counters_.add(offload.error == Err::kOk ? Counter::offload_done : Counter::offload_failed);
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
        moved = true;
    }
    return moved;
}

bool Offloads::start(Offload& offload, SendQueue& sends) {
    bool moved = false;
    std::uint32_t index = 0;
    exec::Executor& executor = *offload.executor;
    while (offload.error == Err::kOk && executor.next(index)) {
        const Step& step = executor.step(index);
        if (step.kind == StepKind::kRecv) {
            executor.started();
            if (offload.here[index] != 0) ULC_CHECK(executor.complete(index) == Err::kOk);
        } else {
            const std::uint32_t stream =
                step.kind == StepKind::kMcast ? offload.group : offload.ranks[step.peer];
            const auto offset = static_cast<std::uint32_t>(
                offload.buffers[static_cast<std::size_t>(step.buffer)] + step.offset);
            if (!sends.inject(record_of(step, stream, offload.tag_of(index), offset),
                              {offload.id, index})) {
                retry_ = true;
                break;
            }
            executor.started();
            ++offload.queued;
        }
        moved = true;
    }
    busy_ |= offload.error == Err::kOk && executor.local_work_left();
    return moved;
}

bool Offloads::answer(Outlet& outlet, std::uint32_t cookie, Err status) noexcept {
    abi::CompletionRecord* out = outlet.claim_report(abi::CompletionKind::kOffloadDone);
    if (out == nullptr) return false;
    out->source = 0;
    out->status = static_cast<std::int16_t>(status);
    out->stream = cookie;
    outlet.publish_report();
    return true;
}

bool Offloads::report(const Offload& offload, Outlet& outlet) {
    abi::CompletionRecord* out = outlet.claim_report(abi::CompletionKind::kOffloadDone);
    if (out == nullptr) {
        retry_ = true;
        return false;
    }
    out->flags = abi::kCompleteInline;
    out->source = offload.source;
    out->status = static_cast<std::int16_t>(offload.error);
    out->stream = offload.cookie;
    out->tag = offload.found_tag;
    const std::size_t octets = offload.passed.size() * sizeof(Rank);
    out->inline_length = static_cast<std::uint16_t>(octets);
    if (octets > 0) std::memcpy(out->body.inline_octets, offload.passed.data(), octets);
    outlet.publish_report();
    return true;
}
static_assert(abi::kOffloadPassedMax * sizeof(Rank) <= abi::kInlineOctetsMax);

Offload* Offloads::find(std::uint32_t id) const noexcept {
    for (const auto& offload : running_)
        if (offload->id == id) return offload.get();
    return nullptr;
}

void Offloads::on_sent(Sink sink, Err status) noexcept {
    Offload* offload = find(sink.offload);
    if (offload == nullptr) return;
    --offload->queued;
    busy_ = true;
    if (status != Err::kOk) {
        fail(*offload, status);
    } else {
        ULC_CHECK(offload->executor->complete(sink.step) == Err::kOk);
    }
}

// ---------------------------------------------------------------- messages

Sink Offloads::match(Rank source, std::uint64_t tag, std::uint64_t length) noexcept {
    for (const auto& offload : running_) {
        if (((offload->tag ^ tag) & offload->mask) != 0) continue;
        const std::uint32_t step = offload->take_receive(source);
        if (step == kNone) continue;
        if (unlike(offload->tag_of(step), tag, offload->mask) ||
            length != offload->steps[step].length)
            fail(*offload, Err::kMismatch, source, tag);
        return {offload->id, step};
    }
    return {};
}

void Offloads::write(Sink sink, std::uint64_t at, const std::byte* payload,
                     std::uint32_t length) noexcept {
    Offload* offload = find(sink.offload);
    // Once the schedule fails, its memory goes back to the client: later messages are dropped.
    if (offload == nullptr || offload->error != Err::kOk || length == 0) return;
    const Step& step = offload->steps[sink.step];
    ULC_CHECK(at <= step.length && length <= step.length - at);
    std::memcpy(offload->executor->destination(step) + at, payload, length);
}

void Offloads::arrived(Sink sink, bool broken) noexcept {
    Offload* offload = find(sink.offload);
    if (offload == nullptr) return;
    busy_ = true;
    if (broken) {
        fail(*offload, Err::kCorrupt);
        return;
    }
    offload->here[sink.step] = 1;
    // Not running yet: start() finds it here.
    static_cast<void>(offload->executor->complete(sink.step));
}

// ---------------------------------------------------------------- ends

void Offloads::fail(Offload& offload, Err error, Rank source, std::uint64_t tag) noexcept {
    busy_ = true;
    if (offload.error != Err::kOk) return;
    offload.error = error;
    offload.source = source;
    offload.found_tag = tag;
}

void Offloads::cancel(std::uint32_t cookie) noexcept {
    for (const auto& offload : running_)
        if (offload->cookie == cookie) fail(*offload, Err::kClosed);
}

void Offloads::cancel_all() noexcept {
    for (const auto& offload : running_)
        fail(*offload, Err::kClosed);
}

void Offloads::peer_gone(Rank rank, bool died) noexcept {
    for (const auto& offload : running_) {
        if (rank >= offload->index.size() || offload->index[rank] == 0) continue;
        // A rank that left may have done its part; its sends were delivered or will never be.
        const bool waits = offload->receive[offload->index[rank] - 1U] != kNone;
        if (died || waits) fail(*offload, died ? Err::kPeerDied : Err::kPeerLeft, rank);
    }
}

}  // namespace ulc::endpoint
