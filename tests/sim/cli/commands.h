// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of ulc-sim. Each returns the exit status: 0 success, 1 a fault was found, 2 bad
// usage or input.
#pragma once

#include <cstdint>
#include <string>

namespace ulc::sim {

struct CheckOptions {
    std::uint64_t first = 1;
    std::uint64_t seeds = 200;
    unsigned jobs = 1;
    bool verbose = false;  ///< a line for each seed
    bool liveness =
        false;          ///< stopped nodes and wires that are never healed (check/liveness_run.h)
    bool busy = false;  ///< nodes that lose their processor (check/busy_run.h)
};
int check_command(const CheckOptions& options);

struct RunOptions {
    std::string scenario;    ///< a TOML file
    std::uint64_t seed = 0;  ///< 0: the scenario's
    std::string trace;       ///< a pcapng file; empty: none
};
int run_command(const RunOptions& options);

}  // namespace ulc::sim
