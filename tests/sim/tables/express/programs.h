// SPDX-License-Identifier: BSD-3-Clause
// Both applications of Express (§5.2) on simulated processes: red/black over-relaxation and the
// router, on the shared memory of express/shared_memory.h. They compute for real; each step charges
// virtual time. Each run is checked against one process.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/express/express_run.h"
#include "tests/sim/express/shared_memory.h"

namespace ulc::sim {

/// The machine and the message system of a run.
struct ExpressSystem {
    ClusterConfig cluster;
    ExpressRules rules;
    MemoryCosts memory;
    Nanos point = 0;  ///< computing a point of the grid, or looking at a point of a route
};

struct ProgramFigures {
    std::string error;  ///< not empty: the run failed, or its result is wrong
    double seconds = 0;
    double computing = 0;   ///< seconds of it in which the mean process computes
    double polled = 0;      ///< share of the messages
    double optimistic = 0;  ///< share of the messages that were sent without a reservation
    double refused = 0;     ///< share of the messages that found no space
    std::uint64_t messages = 0;
    dsm::Counts counts;
};

struct SorProgram {
    std::size_t rows = 512;
    std::size_t columns = 256;
    unsigned iterations = 10;
    /// A half step fetches its pages, then meets in a barrier, then computes.
    bool pages_first = false;
};
[[nodiscard]] ProgramFigures run_sor(const ExpressSystem& system, const SorProgram& program);

struct RouterProgram {
    unsigned wires = 1266;
    unsigned rounds = 1;
    std::uint64_t seed = 1;  ///< makes the circuit
    /// Copies the costs around a wire, and looks for its route in the copy.
    bool copies = true;
};
[[nodiscard]] ProgramFigures run_router(const ExpressSystem& system, const RouterProgram& program);

}  // namespace ulc::sim
