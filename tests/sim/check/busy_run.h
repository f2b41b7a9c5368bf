// SPDX-License-Identifier: BSD-3-Clause
// Random scenarios of busy machines: nodes lose their processor again and again, as where many
// processes want it, and no job may end for it. Used by `ulc-sim check --busy`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/check/check_run.h"

namespace ulc::sim {

/// One loss of the processor.
struct Absence {
    std::uint16_t node = 0;
    Nanos at = 0;
    Nanos lasts = 0;
};

/// A job of one rank a node, whose patience is that of an MPI, is on all nodes. Node n is busy from
/// `prompt` on. The power of node 0 is cut if there are prompt nodes. These have a second job,
/// without patience.
struct BusyScenario {
    std::uint64_t seed = 0;
    std::uint16_t nodes = 2;
    std::uint16_t prompt = 0;  ///< nodes that never lose their processor; 0 or at least 2
    Nanos cut_at = 0;          ///< time at which node 0 loses its power, if prompt > 0
    double loss = 0;
    Nanos think = 0;  ///< mean time between two messages of a rank
    double talkative = 0.5;
    std::vector<Absence> absences;

    /// For people, several lines.
    [[nodiscard]] std::string describe() const;
};

[[nodiscard]] BusyScenario busy_scenario(std::uint64_t seed);

/// Each busy node is away for 0.1 to 8 s at a time, for half a minute. No rank of a living node may
/// be held for dead by any other, and each message between them must arrive once. The neighbours of
/// the node without power must be notified within 2.5 s in the job without patience, and within the
/// limit of N-50 in the other one.
[[nodiscard]] CheckResult run_busy(const BusyScenario& scenario, Recorder* recorder = nullptr);

}  // namespace ulc::sim
