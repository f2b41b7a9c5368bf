// SPDX-License-Identifier: BSD-3-Clause
// `ulc-sim check-schedule`: the global-program checker (URTP §2.2, PCODE §2.1) for users.
#pragma once

#include <cstdint>
#include <string>

namespace ulc::tools {
class Command;
}

namespace ulc::sim {

struct CheckScheduleOptions {
    std::string file;          ///< a schedule as text; empty: every shipped algorithm
    std::string algorithm;     ///< "allgather/ring": only this one
    std::uint16_t ranks = 17;  ///< 1 … this
    std::uint64_t octets = 5000;
    std::uint64_t segment = 600;
    std::uint32_t concurrent = 3;
    std::uint16_t root = 0;
    std::uint32_t buffers = UINT32_MAX;  ///< k
    bool print = false;                  ///< write the schedule of `algorithm` instead
};

/// Checks and reports. Returns the exit status: 0 all are correct, 1 one is not, 2 the input is not
/// understood.
[[nodiscard]] int check_schedule(const CheckScheduleOptions& options, std::string& out,
                                 std::string& errors);

/// Adds the sub-command; when it is called, it sets *exit_code.
void add_check_schedule_command(tools::Command& app, int* exit_code);

}  // namespace ulc::sim
