// A schedule under construction: what an algorithm appends steps to. Owns the arrays that abi::Schedule views.
//
//   plan.after(received).after(previous).send(peer, range);   // starts when both are done
//
// after() names earlier steps and applies to the next step appended; kNoStep is ignored, so that the first
// round of a loop needs no special case.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/schedule.h"

namespace ulc::coll {

inline constexpr std::uint32_t kNoStep = UINT32_MAX;

/// `length` octets at `offset` of a buffer.
struct Range {
    abi::BufferId buffer = abi::BufferId::kOutput;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

class Plan {
public:
    Plan& after(std::uint32_t step);

    /// Each returns the index of the step.
    std::uint32_t send(std::uint16_t peer, Range from);
    std::uint32_t multicast(Range from);
    std::uint32_t receive(std::uint16_t peer, Range into);
    std::uint32_t copy(Range into, abi::BufferId from_buffer, std::uint64_t from_offset);

    /// A view, valid until the plan changes.
    [[nodiscard]] abi::Schedule schedule() const noexcept;
    void clear() noexcept;

    [[nodiscard]] std::vector<abi::Step>& steps() noexcept { return steps_; }

private:
    std::uint32_t append(abi::StepKind kind, std::uint16_t peer, Range range);

    std::vector<abi::Step> steps_;
    std::vector<std::uint32_t> depends_;
    std::uint32_t pending_ = 0;  ///< entries at the end of depends_ that belong to the next step
};

/// `octets` cut into messages of at most `segment` octets, so that members that forward overlap with those that
/// send, and a receiver need lend only a window of segments. The segment grows where there would be more than
/// `count_max`, which bounds the steps of any length. Zero octets are zero segments.
class Segments {
public:
    Segments(std::uint64_t octets, std::uint64_t segment, std::uint64_t count_max) noexcept;
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    /// Of segment i, when the whole begins at `offset` of `buffer`.
    [[nodiscard]] Range range(std::uint32_t i, abi::BufferId buffer,
                              std::uint64_t offset) const noexcept;

private:
    std::uint64_t octets_;
    std::uint64_t segment_;
    std::uint32_t count_;
};

}  // namespace ulc::coll
