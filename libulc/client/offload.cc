#include "client/offload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/endpoint.h"

namespace ulc::client {
namespace {

using abi::BufferId;
using abi::Step;
using abi::StepKind;

struct Extent {
    std::uint64_t begin;
    std::uint64_t end;
    BufferId buffer;
    bool receives;
};

/// The longest schedule worth looking at; engines take 512 steps unless told otherwise.
constexpr std::uint32_t kStepsMax = 4096;

/// Nothing comes before it and no step writes what it reads.
bool is_early_copy(const Step& step) noexcept {
    return step.kind == StepKind::kCopy && step.depends_count == 0 &&
           step.from_buffer == BufferId::kInput && step.buffer == BufferId::kOutput;
}

}  // namespace

bool OffloadRun::suits(const abi::Schedule& schedule) {
    if (schedule.step_count == 0 || schedule.step_count > kStepsMax || schedule.scratch_octets != 0)
        return false;
    std::vector<Extent> extents;
    bool sends = false;
    for (const Step& step : std::span(schedule.steps, schedule.step_count)) {
        const bool local = abi::is_local(step.kind);
        if (local && step.length != 0 && !is_early_copy(step)) return false;
        sends |= !local;
        if (step.length == 0) continue;
        extents.push_back(
            {step.offset, step.offset + step.length, step.buffer, step.kind == StepKind::kRecv});
    }
    std::ranges::sort(extents, {}, [](const Extent& e) { return std::pair(e.buffer, e.begin); });
    // Of those before the next one, the one that reaches farthest, and the receiving one that does.
    std::uint64_t reach = 0;
    std::uint64_t received = 0;
    BufferId buffer = BufferId::kInput;
    for (const Extent& extent : extents) {
        if (extent.buffer != buffer) reach = received = 0;
        buffer = extent.buffer;
        if (extent.begin < received || (extent.receives && extent.begin < reach)) return false;
        reach = std::max(reach, extent.end);
        if (extent.receives) received = std::max(received, extent.end);
    }
    return sends;
}

OffloadRun::~OffloadRun() { give_back(); }

bool OffloadRun::start(ulc_endpoint* ep, std::uint32_t group, const abi::Schedule& schedule,
                       const exec::Setup& setup, OffloadTags tags,
                       std::span<const std::uint8_t> own) {
    ep_ = ep;
    output_memory_ = setup.output;
    passed_.reserve(abi::kOffloadPassedMax);
    if (!place(input_, setup.input, setup.octets[0]) ||
        !place(output_, setup.output, setup.octets[1]) || !write_request(schedule, tags, own) ||
        !ep->offload(*this, group, tags.tag, {request_, request_octets_})) {
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
    if (ep_->in_arena(memory, octets, &buffer.offset)) return true;
    buffer.staged = static_cast<unsigned char*>(ep_->allocate(octets));
    return buffer.staged != nullptr && ep_->in_arena(buffer.staged, octets, &buffer.offset);
}

// What is sent, once the engine is sure to be told.
void OffloadRun::copy_in(const abi::Schedule& schedule) noexcept {
    for (const Step& step : std::span(schedule.steps, schedule.step_count)) {
        if (step.kind != StepKind::kSend && step.kind != StepKind::kMcast) continue;
        const Buffer& buffer = step.buffer == BufferId::kInput ? input_ : output_;
        if (buffer.staged == nullptr || step.length == 0) continue;
        std::memcpy(buffer.staged + step.offset, buffer.memory + step.offset, step.length);
    }
}

bool OffloadRun::write_request(const abi::Schedule& schedule, OffloadTags tags,
                               std::span<const std::uint8_t> own) {
    const std::size_t steps = schedule.step_count * sizeof(Step);
    const std::size_t depends = schedule.depends_count * sizeof(std::uint32_t);
    abi::OffloadRequest request{};
    request.step_count = schedule.step_count;
    request.depends_count = schedule.depends_count;
    request.input_offset = input_.offset;
    request.input_octets = input_.octets;
    request.output_offset = output_.offset;
    request.output_octets = output_.octets;
    request.seen = ep_->completions_taken();
    request.tag_mask = tags.mask;
    request_octets_ = static_cast<std::uint32_t>(sizeof request + steps + depends);
    request_ = static_cast<unsigned char*>(ep_->allocate(request_octets_));
    if (request_ == nullptr) return false;
    std::memcpy(request_, &request, sizeof request);
    for (std::uint32_t i = 0; i < schedule.step_count; ++i) {
        Step step = schedule.steps[i];
        if (own[i] != 0) {  // nothing to do but to come after what it came after
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
    if (running_ && !cancelled_) cancelled_ = ep_->cancel_offload(cookie_);
    return !running_ || cancelled_;
}

void OffloadRun::copy_out(const abi::Schedule& schedule,
                          std::span<const std::uint8_t> own) noexcept {
    if (output_.staged == nullptr) return;
    for (std::uint32_t i = 0; i < schedule.step_count; ++i) {
        const Step& step = schedule.steps[i];
        if (step.kind != StepKind::kRecv || own[i] != 0 || step.length == 0) continue;
        std::memcpy(output_memory_ + step.offset, output_.staged + step.offset, step.length);
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
    for (unsigned char* memory : {input_.staged, output_.staged, request_})
        if (memory != nullptr) ep_->free(memory);
    input_ = output_ = {};
    request_ = nullptr;
}

}  // namespace ulc::client
