// SPDX-License-Identifier: BSD-3-Clause
// Validation of a schedule before anything of it runs. A schedule may come from shared memory, so
// nothing in it is believed: every index, range and combination is checked, with arithmetic that
// cannot wrap. The caller must own the arrays (copied out of shared memory first), since what is
// checked here is relied upon later.
#pragma once

#include <cstdint>

#include "abi/schedule.h"
#include "base/error.h"

namespace ulc::exec {

inline constexpr std::size_t kBuffers = 3;  ///< abi::BufferId: input, output, scratch

/// Limits of a schedule.
struct Shape {
    std::uint16_t members;           ///< size of the group, ≥ 1
    std::uint16_t self;              ///< own index, < members
    std::uint64_t octets[kBuffers];  ///< sizes of input (read only), output, scratch
    bool may_reduce;                 ///< false in the engine: it carries no operators
    bool may_copy = true;            ///< false in the engine: nothing local but empty steps
    std::uint32_t steps_max = abi::kStepsMax;  ///< dependencies: kDependsPerStepMax times as many
};

inline constexpr std::uint32_t kDependsPerStepMax = 4;

/// The first step that is wrong, and why; error kOk: none is.
struct Fault {
    Err error = Err::kOk;
    std::uint32_t step = 0;
    const char* reason = "";  ///< static storage
};

/// Errors: kInvalid; kLimit (more than abi::kStepsMax steps or dependencies). O(steps +
/// dependencies).
[[nodiscard]] Fault validate(const abi::Schedule& schedule, const Shape& shape) noexcept;

}  // namespace ulc::exec
