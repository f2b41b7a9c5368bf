// SPDX-License-Identifier: BSD-3-Clause
// A global program as text, for `ulc-sim check-schedule`: the author of a schedule writes it, and
// --print prints it.
//
//   op broadcast      # an operation of coll.h, without a v, to perform; none: it must only fit
//   ranks 3
//   bytes 64         # the whole, or one rank's block if there are blocks
//   root 0            # of rooted operations (0)
//   input 8           # op none: bytes of each rank's input and output, all defined before (0)
//   output 8
//   rank 0            # its steps follow, numbered from 0
//     mcast output 0 64               # to all others; "to 1 2": only to these (ranks ≤ 64)
//     recv 2 output 0 0
//   rank 1 scratch 64
//     recv 0 output 0 64              # from rank 0 into 64 bytes at 0
//     copy scratch 0 64 output 0 after 0      # reduce: (scratch) = (scratch) ∘ (output)
//                                             # front: (output) ∘ (scratch)
//   rank 2
//     recv 0 output 0 64
//     send 0 output 0 0 after 0       # starts when step 0 is done
//
// '#' begins a comment. Headers come before the first rank; each rank at most once, in any order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/schedule/checker.h"

namespace ulc::sim {

struct ScheduleText {
    struct Rank {
        std::vector<abi::Step> steps;
        std::vector<std::uint32_t> depends;
        std::vector<std::size_t> lines;  ///< line of each step
        std::uint64_t scratch = 0;
        std::size_t line = 0;  ///< line of its heading; 0: there is none
    };
    std::vector<Rank> ranks;
    std::vector<RankGoal> goals;
    Demands demands;

    [[nodiscard]] std::vector<abi::Schedule> schedules() const;  ///< views
    [[nodiscard]] Verdict check(std::uint32_t buffers_max = UINT32_MAX) const;
};

/// Returns an empty string if the text was read, else "line N: the fault and what is expected".
/// Bounded: ranks ≤ 1024, bytes ≤ 2^20, goals of all ranks ≤ 2^26 bytes, steps ≤ 2^20.
[[nodiscard]] std::string parse_schedule(std::string_view text, ScheduleText& out);

/// Returns "recv 0 output 0 64 after 3", as parse_schedule() reads it.
[[nodiscard]] std::string describe_step(const abi::Schedule& schedule, std::uint32_t step);

}  // namespace ulc::sim
