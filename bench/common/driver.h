// SPDX-License-Identifier: BSD-3-Clause
// Google Benchmark on several ranks: rank 0 runs the framework, the others execute its commands.
//
//   rank 0     for every iteration: broadcast Command ─▶ all: barrier, execute
//              ─▶ allgather (seconds, right?)
//   others     serve commands until kEnd
// The time of an iteration is that of the slowest rank, so it ends when the last rank is done. Any
// option of Google Benchmark works (filters, repetitions, JSON), since the others only follow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/common/transport.h"

namespace ulc::bench {

struct Command {
    std::uint32_t what = 0;    ///< number that the program gave it; kEnd: no more
    std::uint32_t rounds = 0;  ///< operations in one iteration
    std::uint32_t mode = 0;    ///< chosen by the program
    std::uint64_t octets = 0;
    char algorithm[40] = {};  ///< empty: the transport's choice

    [[nodiscard]] const char* algorithm_or_null() const {
        return algorithm[0] == '\0' ? nullptr : algorithm;
    }
};
inline constexpr std::uint32_t kEnd = UINT32_MAX;

/// Further figures of a case.
inline constexpr std::size_t kValuesMax = 5;

/// Result of a rank: how long its part took, and whether all bytes were right.
struct Outcome {
    double seconds = 0;
    bool right = true;
    /// Rank 0's count: the values named by the case's value_names
    std::array<double, kValuesMax> values{};
};

/// One line of the report.
struct Case {
    std::string name;  ///< behind the transport's
    Command command;
    unsigned iterations = 10;
    /// Rounds may become so few that an iteration takes kIterationSeconds; 0: they stay as they
    /// are.
    std::uint32_t rounds_min = 0;
    double operations_per_round = 1;     ///< the reported time is that of one operation
    std::uint64_t octets_processed = 0;  ///< an iteration; 0: no rate is reported
    /// Names of Outcome::values, of which the mean over the iterations is reported.
    std::vector<std::string> value_names;
};
inline constexpr double kIterationSeconds = 0.01;

using Execute = std::function<Outcome(Transport&, const Command&)>;

/// The whole of main(). ranks: least number of ranks. Exit status: 1 if the transport is missing or
/// bytes were wrong, 2 for wrong options.
int run_benchmarks(int argc, char** argv, std::uint16_t ranks,
                   const std::function<std::vector<Case>(const Transport&)>& cases,
                   const Execute& execute);

/// Sets a command's algorithm; too long a name is cut.
void set_algorithm(Command& command, const std::string& name);

/// Byte i of a payload, different for every `stamp`.
[[nodiscard]] constexpr unsigned char octet_of(std::uint64_t stamp, std::size_t i) {
    return static_cast<unsigned char>(i * 131 + (i >> 8) * 7 + stamp * 17 + 3);
}
[[nodiscard]] std::vector<unsigned char> payload_of(std::uint64_t stamp, std::size_t octets);

}  // namespace ulc::bench
