// SPDX-License-Identifier: BSD-3-Clause
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

Plan& Plan::after_all(const std::vector<std::uint32_t>& steps) {
    for (const std::uint32_t step : steps)
        after(step);
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

std::uint32_t Plan::append_local(StepKind kind, Range into, Range from) {
    ULC_CHECK(into.length == from.length);
    const std::uint32_t index = append(kind, 0, into);
    steps_[index].from_buffer = from.buffer;
    steps_[index].from_offset = from.offset;
    return index;
}

std::uint32_t Plan::send(std::uint16_t peer, Range from) {
    return append(StepKind::kSend, peer, from);
}

std::uint32_t Plan::multicast(Range from, std::uint64_t subset) {
    const std::uint32_t index = append(StepKind::kMcast, 0, from);
    steps_[index].from_offset = subset;
    return index;
}

std::uint32_t Plan::receive(std::uint16_t peer, Range into) {
    return append(StepKind::kRecv, peer, into);
}

std::uint32_t Plan::copy(Range into, Range from) {
    return append_local(StepKind::kCopy, into, from);
}

std::uint32_t Plan::reduce(Range into, Range from, Range with) {
    ULC_CHECK(with.length == into.length);
    const std::uint32_t index = append_local(StepKind::kReduce, into, from);
    steps_[index].with_buffer = with.buffer;
    steps_[index].with_offset = with.offset;
    return index;
}

std::uint32_t Plan::join() {
    const Range nothing{BufferId::kScratch, 0, 0};
    return copy(nothing, nothing);
}

Range Plan::scratch(std::uint64_t octets) {
    const Range range{BufferId::kScratch, scratch_octets_, octets};
    ULC_CHECK(!__builtin_add_overflow(scratch_octets_, octets, &scratch_octets_));
    return range;
}

abi::Schedule Plan::schedule() const noexcept {
    return {.steps = steps_.data(),
            .depends = depends_.data(),
            .step_count = static_cast<std::uint32_t>(steps_.size()),
            .depends_count = static_cast<std::uint32_t>(depends_.size()),
            .scratch_octets = scratch_octets_};
}

void Plan::clear() noexcept {
    steps_.clear();
    depends_.clear();
    scratch_octets_ = 0;
    pending_ = 0;
}

Segments::Segments(std::uint64_t octets, std::uint64_t segment, std::uint64_t count_max,
                   std::uint64_t grain) noexcept
    : octets_(octets), segment_(segment) {
    ULC_CHECK(segment > 0 && grain > 0 && count_max > 0 && count_max <= abi::kStepsMax);
    const std::uint64_t least = octets / count_max + (octets % count_max != 0 ? 1 : 0);
    segment_ = std::max(segment, least);
    if (const std::uint64_t over = segment_ % grain; over != 0) {
        // Beyond the whole, one segment is all.
        if (__builtin_add_overflow(segment_, grain - over, &segment_)) segment_ = octets;
    }
    segment_ = std::max<std::uint64_t>(std::min(segment_, octets), 1);
    count_ = static_cast<std::uint32_t>(octets / segment_ + (octets % segment_ != 0 ? 1 : 0));
    count_ = std::max(count_, 1U);
}

std::uint64_t Segments::length(std::uint32_t i) const noexcept {
    return std::min(segment_, octets_ - i * segment_);
}

}  // namespace ulc::coll
