// SPDX-License-Identifier: BSD-3-Clause
// Functions that the applications share: agreeing on the input, and the times of all ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/common/job.h"

namespace ulc::tools {
class Command;
}

namespace ulc::bench {

/// Options of every application.
struct RunOptions {
    unsigned repeat = 5;
    bool unicast = false;

    /// For the report.
    [[nodiscard]] const char* broadcast() const {
        return unicast ? "broadcast emulated by unicast" : "direct broadcast";
    }
};
void add_options(tools::Command& app, RunOptions& options);

/// Times of one run, in seconds.
struct Times {
    double communicate = 0;
    double whole = 0;
};

/// Measures one run of this rank; starts when it is made.
class Stopwatch {
public:
    using Clock = std::chrono::steady_clock;

    /// Runs `exchange` and counts its time as communication.
    template <typename Exchange>
    void communicate(Exchange&& exchange) {
        const Clock::time_point start = Clock::now();
        exchange();
        communicate_ += seconds(start);
    }
    [[nodiscard]] Times stop() const { return {communicate_, seconds(start_)}; }

private:
    static double seconds(Clock::time_point since) {
        return std::chrono::duration<double>(Clock::now() - since).count();
    }
    Clock::time_point start_ = Clock::now();
    double communicate_ = 0;
};

/// Returns those of the rank that took longest: a result is there when the last one has its part.
/// Collective.
[[nodiscard]] Times slowest(Job& job, const Times& own);
/// Returns the run whose whole time is the median. `runs` must not be empty.
[[nodiscard]] Times median(std::vector<Times> runs);

/// "time: 1.234 ms a product (median of 5), of which communication 0.123 ms = 10.0 %".
void print_times(const char* unit, const Times& times, unsigned repeat);

/// Changes with each value and their order.
[[nodiscard]] std::uint64_t hash_of(std::span<const double> values, std::uint64_t hash = 1);

/// Returns true at all ranks if all could read their input (error empty; the rank with an error
/// prints it) and all read the same. Collective.
[[nodiscard]] bool agree(Job& job, const std::string& error, std::uint64_t hash);

/// Collective: rank 0 prints and checks with `report`, given the median of the runs; its exit
/// status for all.
[[nodiscard]] int conclude(Job& job, std::vector<Times> runs,
                           const std::function<int(const Times&)>& report);

/// main() of an application: joins the job that `ulc run` names, runs `body` in it, leaves. The
/// exit status.
int run_in_job(const char* program, const std::function<int(Job&)>& body);

}  // namespace ulc::bench
