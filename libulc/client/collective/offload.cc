// SPDX-License-Identifier: BSD-3-Clause
#include "client/collective/offload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/endpoint.h"

namespace ulc::client {
namespace {

using abi::BufferId;
using abi::Step;
using abi::StepKind;

/// Bytes that a step sends from or receives into.
struct Extent {
    BufferId buffer;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t step;
    bool receives;
};

/// Maximum length of a schedule to offload; engines take 512 steps by default.
constexpr std::uint32_t kStepsMax = 4096;

[[nodiscard]] std::span<const std::uint32_t> depends_of(const abi::Schedule& schedule,
                                                        const Step& step) noexcept {
    return {schedule.depends + step.depends_first, step.depends_count};
}

/// Returns true if there are no reductions, and every copy comes before all messages or after all
/// those on which it depends.
[[nodiscard]] bool leaves_copies(const abi::Schedule& schedule) {
    const std::span steps(schedule.steps, schedule.step_count);
    std::vector<bool> early(steps.size());  // local, and comes after only such steps
    for (std::size_t i = 0; i < steps.size(); ++i)
        early[i] = abi::is_local(steps[i].kind) &&
                   std::ranges::all_of(depends_of(schedule, steps[i]),
                                       [&](std::uint32_t before) -> bool { return early[before]; });
    std::vector<bool> awaited(steps.size());  // by a message
    for (std::size_t i = steps.size(); i-- > 0;) {
        const bool local = abi::is_local(steps[i].kind);
        if (local && steps[i].length != 0 &&
            (steps[i].kind != StepKind::kCopy || (awaited[i] && !early[i])))
            return false;
        if (local && !awaited[i]) continue;
        for (const std::uint32_t before : depends_of(schedule, steps[i]))
            awaited[before] = true;
    }
    return true;
}

}  // namespace

// Steps that touch the same bytes, one of them writing, depend on each other: the later one on the
// earlier one (tests/sim/schedule/checker.h). So a step that touches the memory into which an
// earlier one receives finds the data there, whenever they came; the message of a later one must
// not come early.
OffloadRun::Judgement OffloadRun::judge(const abi::Schedule& schedule) {
    if (schedule.step_count == 0 || schedule.step_count > kStepsMax || !leaves_copies(schedule))
        return {};
    std::vector<Extent> extents;
    Judgement judgement;
    for (std::uint32_t i = 0; i < schedule.step_count; ++i) {
        const Step& step = schedule.steps[i];
        if (abi::is_local(step.kind)) continue;
        judgement.suits = true;
        if (step.length == 0) continue;
        extents.push_back(
            {step.buffer, step.offset, step.offset + step.length, i, step.kind == StepKind::kRecv});
    }
    std::ranges::sort(extents, {}, [](const Extent& e) { return std::pair(e.buffer, e.begin); });
    for (auto one = extents.begin(); one != extents.end(); ++one) {
        for (auto other = one + 1;
             other != extents.end() && other->buffer == one->buffer && other->begin < one->end;
             ++other) {
            if (!one->receives && !other->receives) continue;
            if (one->step < other->step ? other->receives : one->receives) return {};
            judgement.passes_on = true;
        }
    }
    return judgement;
}

OffloadRun::~OffloadRun() {
    give_back();
    if (scratch_ != nullptr && !running_) ep_->offloads().give_back(scratch_, scratch_octets_);
}

bool OffloadRun::prepare(ulc_endpoint* ep, const abi::Schedule& schedule) {
    const Judgement judgement = judge(schedule);
    if (!judgement.suits) return false;
    ep_ = ep;
    passes_on_ = judgement.passes_on;
    if (schedule.scratch_octets == 0) return true;
    scratch_octets_ = schedule.scratch_octets;
    scratch_ = static_cast<unsigned char*>(ep->offloads().set_aside(scratch_octets_));
    return scratch_ != nullptr;
}

bool OffloadRun::start(std::uint32_t group, const abi::Schedule& schedule, const exec::Setup& setup,
                       OffloadTags tags, std::span<const std::uint8_t> own) {
    output_memory_ = setup.output;
    passed_.reserve(abi::kOffloadPassedMax);
    if (!place(buffer(BufferId::kInput), setup.input, setup.octets[0]) ||
        !place(buffer(BufferId::kOutput), setup.output, setup.octets[1]) ||
        !place(buffer(BufferId::kScratch), setup.scratch, setup.octets[2]) ||
        !write_request(schedule, tags, own) || ep_->membership().may_communicate() != ULC_OK ||
        !ep_->offloads().submit(*this, group, tags.tag, {request_, request_octets_})) {
        give_back();
        return false;
    }
    return true;
}

bool OffloadRun::place(Buffer& buffer, const unsigned char* memory, std::uint64_t octets) {
    if (octets == 0) return true;
    if (octets > UINT32_MAX) return false;
    buffer.memory = memory;
    buffer.octets = static_cast<std::uint32_t>(octets);
    if (ep_->messages().outbox().arena().contains(memory, octets, &buffer.offset)) return true;
    buffer.staged = static_cast<unsigned char*>(ep_->offloads().set_aside(octets));
    return buffer.staged != nullptr &&
           ep_->messages().outbox().arena().contains(buffer.staged, octets, &buffer.offset);
}

// Copies the data to send, once it is certain that the engine will be notified.
void OffloadRun::copy_in(const abi::Schedule& schedule) noexcept {
    for (const Step& step : std::span(schedule.steps, schedule.step_count)) {
        if (step.kind != StepKind::kSend && step.kind != StepKind::kMcast) continue;
        const Buffer& from = buffer(step.buffer);
        if (from.staged == nullptr || step.length == 0) continue;
        std::memcpy(from.staged + step.offset, from.memory + step.offset, step.length);
    }
}

bool OffloadRun::write_request(const abi::Schedule& schedule, OffloadTags tags,
                               std::span<const std::uint8_t> own) {
    const std::size_t steps = schedule.step_count * sizeof(Step);
    const std::size_t depends = schedule.depends_count * sizeof(std::uint32_t);
    abi::OffloadRequest request{};
    request.step_count = schedule.step_count;
    request.depends_count = schedule.depends_count;
    request.input_offset = buffer(BufferId::kInput).offset;
    request.input_octets = buffer(BufferId::kInput).octets;
    request.output_offset = buffer(BufferId::kOutput).offset;
    request.output_octets = buffer(BufferId::kOutput).octets;
    request.scratch_offset = buffer(BufferId::kScratch).offset;
    request.scratch_octets = buffer(BufferId::kScratch).octets;
    request.seen = ep_->completions_taken();
    request.flags = passes_on_ ? std::uint32_t{abi::kOffloadPassesOn} : 0;
    request.tag_mask = tags.mask;
    request_octets_ = static_cast<std::uint32_t>(sizeof request + steps + depends);
    request_ = static_cast<unsigned char*>(
        ep_->messages().outbox().arena().allocate_memory(request_octets_));
    if (request_ == nullptr) return false;
    std::memcpy(request_, &request, sizeof request);
    for (std::uint32_t i = 0; i < schedule.step_count; ++i) {
        Step step = schedule.steps[i];
        if (own[i] != 0 || abi::is_local(step.kind)) {
            // The step has no work; it only keeps the order of its dependencies.
            step.kind = StepKind::kCopy;
            step.buffer = BufferId::kOutput;
            step.from_buffer = BufferId::kInput;
            step.offset = step.from_offset = step.length = 0;
            step.peer = 0;
        }
        std::memcpy(request_ + sizeof request + i * sizeof step, &step, sizeof step);
    }
    if (depends > 0) std::memcpy(request_ + sizeof request + steps, schedule.depends, depends);
    copy_in(schedule);
    return true;
}

bool OffloadRun::cancel() noexcept {
    if (running_ && !cancelled_) cancelled_ = ep_->offloads().cancel(cookie_);
    return !running_ || cancelled_;
}

void OffloadRun::copy_out(const abi::Schedule& schedule,
                          std::span<const std::uint8_t> own) noexcept {
    const Buffer& output = buffer(BufferId::kOutput);
    if (output.staged == nullptr) return;
    for (std::uint32_t i = 0; i < schedule.step_count; ++i) {
        const Step& step = schedule.steps[i];
        if (step.kind != StepKind::kRecv || own[i] != 0 || step.length == 0 ||
            step.buffer != BufferId::kOutput)
            continue;
        std::memcpy(output_memory_ + step.offset, output.staged + step.offset, step.length);
    }
}

void OffloadRun::on_started(std::uint32_t cookie) noexcept {
    cookie_ = cookie;
    running_ = true;
}

void OffloadRun::on_done(const abi::CompletionRecord& record) noexcept {
    running_ = false;
    refused_ = (record.flags & abi::kCompleteInline) == 0;
    status_ = record.status;
    source_ = record.source;
    found_tag_ = record.tag;
    passed_.resize(std::min<std::size_t>(record.inline_length / sizeof(std::uint16_t),
                                         abi::kOffloadPassedMax));
    if (!passed_.empty())
        std::memcpy(passed_.data(), record.body.inline_octets,
                    passed_.size() * sizeof(std::uint16_t));
}

void OffloadRun::on_ended(int error) noexcept {
    running_ = false;
    status_ = error;
}

void OffloadRun::give_back() noexcept {
    if (ep_ == nullptr || running_) return;
    for (Buffer& each : buffers_) {
        if (each.staged != nullptr) ep_->offloads().give_back(each.staged, each.octets);
        each = {};
    }
    if (request_ != nullptr) ep_->messages().outbox().arena().free_memory(request_);
    request_ = nullptr;
}

}  // namespace ulc::client
