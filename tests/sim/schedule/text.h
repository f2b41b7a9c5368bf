// A global program as text, for `ulc-sim check-schedule`: what a schedule's author writes, and what --print gives.
//
//   op broadcast          # an operation of coll.h, without a v: what it must achieve; none: only that it fits together
//   ranks 3
//   octets 64             # the whole, or one rank's block where there are blocks
//   root 0                # of rooted operations (0)
//   input 8               # op none: octets of each rank's input and output, all defined before (0)
//   output 8
//   rank 0                # its steps follow, numbered from 0
//     mcast output 0 64               # to all others; "to 1 2": to these alone (ranks ≤ 64)
//     recv 2 output 0 0
//   rank 1 scratch 64
//     recv 0 output 0 64              # from rank 0 into 64 octets at 0
//     copy scratch 0 64 output 0 after 0      # reduce: (scratch) = (scratch) ∘ (output); front: (output) ∘ (scratch)
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
        std::vector<std::size_t> lines;  ///< of each step
        std::uint64_t scratch = 0;
        std::size_t line = 0;  ///< of its heading; 0: there is none
    };
    std::vector<Rank> ranks;
    std::vector<RankGoal> goals;
    Demands demands;

    [[nodiscard]] std::vector<abi::Schedule> schedules() const;  ///< views
    [[nodiscard]] Verdict check(std::uint32_t buffers_max = UINT32_MAX) const;
};

/// The empty string: read. Else "line N: what is wrong and what is expected". Bounded: ranks ≤ 1024, octets ≤ 2^20, goals of
/// all ranks ≤ 2^26 octets, steps ≤ 2^20.
[[nodiscard]] std::string parse_schedule(std::string_view text, ScheduleText& out);

/// "recv 0 output 0 64 after 3", as parse_schedule() reads it.
[[nodiscard]] std::string describe_step(const abi::Schedule& schedule, std::uint32_t step);

}  // namespace ulc::sim
