// SPDX-License-Identifier: BSD-3-Clause
#include "exec/validate.h"

namespace ulc::exec {
namespace {

using abi::BufferId;
using abi::Schedule;
using abi::Step;
using abi::StepKind;

/// Subsets name members by the bits of a 64-bit word.
constexpr std::uint16_t kSubsetMembersMax = 64;

[[nodiscard]] bool inside(const Shape& shape, BufferId buffer, std::uint64_t offset,
                          std::uint64_t length) noexcept {
    const auto index = static_cast<std::size_t>(buffer);
    if (index >= kBuffers) return false;
    const std::uint64_t octets = shape.octets[index];
    return offset <= octets && length <= octets - offset;
}

[[nodiscard]] const char* wrong_peer(const Step& step, const Shape& shape) noexcept {
    if (step.peer >= shape.members) return "peer is not in the group";
    if (step.peer == shape.self) return "peer is the member itself";
    return nullptr;
}

/// Judges from_offset of a multicast: 0 = all other members, else a bitmap of their indices.
[[nodiscard]] const char* wrong_subset(const Step& step, const Shape& shape) noexcept {
    if (shape.members < 2) return "multicast without another member";
    const std::uint64_t subset = step.from_offset;
    if (subset == 0) return nullptr;
    if (shape.members > kSubsetMembersMax) return "subset in a group of more than 64 members";
    if (shape.members < kSubsetMembersMax && (subset >> shape.members) != 0) {
        return "subset names an index outside the group";
    }
    if (((subset >> shape.self) & 1U) != 0) return "subset names the member itself";
    return nullptr;
}

/// Judges the range that a local step reads: a reduction may put its result where an operand is.
[[nodiscard]] const char* wrong_operand(const Step& step, const Shape& shape, BufferId buffer,
                                        std::uint64_t offset) noexcept {
    if (!inside(shape, buffer, offset, step.length)) return "source range is outside its buffer";
    if (step.buffer != buffer || step.length == 0) return nullptr;
    if (step.kind == StepKind::kReduce && step.offset == offset) return nullptr;
    const std::uint64_t apart = step.offset > offset ? step.offset - offset : offset - step.offset;
    return apart < step.length ? "source and destination overlap" : nullptr;
}

[[nodiscard]] const char* wrong_local(const Step& step, const Shape& shape) noexcept {
    if (step.buffer == BufferId::kInput) return "input is read only";
    const char* reason = wrong_operand(step, shape, step.from_buffer, step.from_offset);
    if (reason != nullptr || step.kind == StepKind::kCopy) return reason;
    return wrong_operand(step, shape, step.with_buffer, step.with_offset);
}

[[nodiscard]] const char* wrong_step(const Step& step, const Shape& shape) noexcept {
    if (step.reserved != 0) return "reserved field is not zero";
    if (!inside(shape, step.buffer, step.offset, step.length)) {
        return "range is outside its buffer";
    }
    switch (step.kind) {
        case StepKind::kSend:
            return wrong_peer(step, shape);
        case StepKind::kMcast:
            return wrong_subset(step, shape);
        case StepKind::kRecv:
            if (step.buffer == BufferId::kInput) return "input is read only";
            return wrong_peer(step, shape);
        case StepKind::kCopy:
            if (!shape.may_copy && step.length != 0) return "copying is not allowed here";
            return wrong_local(step, shape);
        case StepKind::kReduce:
            if (!shape.may_reduce) return "reduction is not allowed here";
            return wrong_local(step, shape);
    }
    return "unknown kind";
}

[[nodiscard]] const char* wrong_depends(const Schedule& schedule, std::uint32_t index) noexcept {
    const Step& step = schedule.steps[index];
    if (step.depends_count == 0) return nullptr;
    if (step.depends_first > schedule.depends_count ||
        step.depends_count > schedule.depends_count - step.depends_first) {
        return "dependencies are outside the table";
    }
    for (std::uint32_t i = 0; i < step.depends_count; ++i) {
        if (schedule.depends[step.depends_first + i] >= index) {
            return "dependency is not an earlier step";
        }
    }
    return nullptr;
}

}  // namespace

Fault validate(const Schedule& schedule, const Shape& shape) noexcept {
    if (shape.members == 0 || shape.self >= shape.members) {
        return {Err::kInvalid, 0, "own index is not in the group"};
    }
    // Steps may share entries of the table, so the work is bounded apart from the table's size.
    const std::uint64_t depends_max = std::uint64_t{kDependsPerStepMax} * shape.steps_max;
    if (schedule.step_count > shape.steps_max || schedule.depends_count > depends_max) {
        return {Err::kLimit, shape.steps_max, "too many steps"};
    }
    if (schedule.scratch_octets > shape.octets[static_cast<std::size_t>(BufferId::kScratch)]) {
        return {Err::kInvalid, 0, "scratch is smaller than the schedule needs"};
    }
    std::uint64_t depends_used = 0;
    for (std::uint32_t i = 0; i < schedule.step_count; ++i) {
        const char* reason = wrong_step(schedule.steps[i], shape);
        depends_used += schedule.steps[i].depends_count;
        if (depends_used > depends_max) return {Err::kLimit, i, "too many dependencies"};
        if (reason == nullptr) reason = wrong_depends(schedule, i);
        if (reason != nullptr) return {Err::kInvalid, i, reason};
    }
    return {};
}

}  // namespace ulc::exec
