#include "coll/plan.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::coll {

using abi::BufferId;
using abi::Step;
using abi::StepKind;

Plan& Plan::after(std::uint32_t step) {
    if (step == kNoStep) return *this;
    ULC_CHECK(step < steps_.size() && pending_ < UINT16_MAX);
    depends_.push_back(step);
    ++pending_;
    return *this;
}

std::uint32_t Plan::append(StepKind kind, std::uint16_t peer, Range range) {
    ULC_CHECK(steps_.size() < abi::kStepsMax);
    Step step{};
    step.kind = kind;
    step.buffer = range.buffer;
    step.peer = peer;
    step.depends_count = static_cast<std::uint16_t>(pending_);
    step.depends_first = static_cast<std::uint32_t>(depends_.size()) - pending_;
    step.offset = range.offset;
    step.length = range.length;
    pending_ = 0;
    steps_.push_back(step);
    return static_cast<std::uint32_t>(steps_.size()) - 1;
}

std::uint32_t Plan::send(std::uint16_t peer, Range from) {
    return append(StepKind::kSend, peer, from);
}

std::uint32_t Plan::multicast(Range from) { return append(StepKind::kMcast, 0, from); }

std::uint32_t Plan::receive(std::uint16_t peer, Range into) {
    return append(StepKind::kRecv, peer, into);
}

std::uint32_t Plan::copy(Range into, BufferId from_buffer, std::uint64_t from_offset) {
    const std::uint32_t index = append(StepKind::kCopy, 0, into);
    steps_[index].from_buffer = from_buffer;
    steps_[index].from_offset = from_offset;
    return index;
}

abi::Schedule Plan::schedule() const noexcept {
    return {.steps = steps_.data(),
            .depends = depends_.data(),
            .step_count = static_cast<std::uint32_t>(steps_.size()),
            .depends_count = static_cast<std::uint32_t>(depends_.size()),
            .scratch_octets = 0};
}

void Plan::clear() noexcept {
    steps_.clear();
    depends_.clear();
    pending_ = 0;
}

Segments::Segments(std::uint64_t octets, std::uint64_t segment, std::uint64_t count_max) noexcept
    : octets_(octets), segment_(segment) {
    ULC_CHECK(segment > 0 && count_max > 0 && count_max <= abi::kStepsMax);
    const std::uint64_t least = octets / count_max + (octets % count_max != 0 ? 1 : 0);
    segment_ = std::max(segment, least);
    count_ = static_cast<std::uint32_t>(octets / segment_ + (octets % segment_ != 0 ? 1 : 0));
}

Range Segments::range(std::uint32_t i, BufferId buffer, std::uint64_t offset) const noexcept {
    const std::uint64_t begin = i * segment_;
    return {buffer, offset + begin, std::min(segment_, octets_ - begin)};
}

}  // namespace ulc::coll
