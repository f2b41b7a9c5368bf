// SPDX-License-Identifier: BSD-3-Clause
// A schedule under construction: what an algorithm appends steps to. Owns the arrays that
// abi::Schedule views.
//
//   plan.after(received).after(previous).send(peer, range);   // starts when both are done
//
// after() names earlier steps and applies to the next step appended; kNoStep is ignored, so that
// the first round of a loop needs no special case.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "abi/schedule.h"

namespace ulc::coll {

inline constexpr std::uint32_t kNoStep = UINT32_MAX;
/// Segments of one source that may be pending at a member.
inline constexpr std::uint32_t kSegmentWindow = 8;

/// `length` bytes at `offset` of a buffer.
struct Range {
    abi::BufferId buffer = abi::BufferId::kOutput;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;

    /// `octets` of it, from its byte `at`.
    [[nodiscard]] Range part(std::uint64_t at, std::uint64_t octets) const noexcept {
        return {buffer, offset + at, octets};
    }
    /// Begins where the other one does.
    [[nodiscard]] bool at(const Range& other) const noexcept {
        return buffer == other.buffer && offset == other.offset;
    }
};

class Plan {
public:
    Plan& after(std::uint32_t step);
    Plan& after_all(const std::vector<std::uint32_t>& steps);

    /// Each returns the index of the step.
    std::uint32_t send(std::uint16_t peer, Range from);
    /// subset: bit i = member i, of at most 64; 0: all others.
    std::uint32_t multicast(Range from, std::uint64_t subset = 0);
    std::uint32_t receive(std::uint16_t peer, Range into);
    std::uint32_t copy(Range into, Range from);
    /// (into) = (from) ∘ (with). `into` may be either of them, and overlaps neither in part.
    std::uint32_t reduce(Range into, Range from, Range with);
    /// Adds a step without work, which is done when the steps before it are.
    std::uint32_t join();

    /// Memory for this plan alone.
    [[nodiscard]] Range scratch(std::uint64_t octets);

    /// A view, valid until the plan changes.
    [[nodiscard]] abi::Schedule schedule() const noexcept;
    void clear() noexcept;

    [[nodiscard]] std::vector<abi::Step>& steps() noexcept { return steps_; }

private:
    std::uint32_t append(abi::StepKind kind, std::uint16_t peer, Range range);
    std::uint32_t append_local(abi::StepKind kind, Range into, Range from);

    std::vector<abi::Step> steps_;
    std::vector<std::uint32_t> depends_;
    std::uint64_t scratch_octets_ = 0;
    std::uint32_t pending_ = 0;  ///< entries at the end of depends_ that belong to the next step
};

/// `octets` cut into messages of at most `segment` bytes, so that members that forward overlap
/// with those that send, and a receiver need lend only a window of segments. The segment grows
/// where there would be more than `count_max`, which bounds the steps of any length, and to a
/// multiple of `grain`, which no cut divides. Zero bytes are one empty segment, so that members
/// which disagree about that find out.
class Segments {
public:
    Segments(std::uint64_t octets, std::uint64_t segment, std::uint64_t count_max,
             std::uint64_t grain = 1) noexcept;
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t longest() const noexcept { return length(0); }
    [[nodiscard]] std::uint64_t length(std::uint32_t i) const noexcept;
    /// Segment i of what begins where `whole` does.
    [[nodiscard]] Range of(const Range& whole, std::uint32_t i) const noexcept {
        return whole.part(i * segment_, length(i));
    }

private:
    std::uint64_t octets_;
    std::uint64_t segment_;
    std::uint32_t count_;
};

/// Steps that follow each other, kSegmentWindow of them pending at a time:
///   window.push(plan.after(window.leaving()).send(…));
class Window {
public:
    Window() noexcept { steps_.fill(kNoStep); }
    /// The step that the next one waits for.
    [[nodiscard]] std::uint32_t leaving() const noexcept { return steps_[at_]; }
    std::uint32_t push(std::uint32_t step) noexcept {
        steps_[at_] = step;
        at_ = (at_ + 1) % kSegmentWindow;
        return step;
    }
    /// The plan's next step waits for all of them.
    Plan& all(Plan& plan) const {
        for (const std::uint32_t step : steps_)
            plan.after(step);
        return plan;
    }

private:
    std::array<std::uint32_t, kSegmentWindow> steps_{};
    std::uint32_t at_ = 0;
};

}  // namespace ulc::coll
