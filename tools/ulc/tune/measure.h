// SPDX-License-Identifier: BSD-3-Clause
// This file times every candidate of every collective on a real job. Rank 0 chooses what is next
// and broadcasts it. All ranks time a batch of operations between barriers; the time of the last
// rank counts.
#pragma once

#include <coll.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "coll/table_text.h"
#include "coll/tuning/candidates.h"

namespace ulc::tools {

struct TuneLimits {
    double seconds = 60;                   ///< for all; what is not reached is left out, and said
    std::vector<coll::Op> ops;             ///< empty: all
    std::uint64_t octets_max = 64 * 1024;  ///< largest vector or block
    std::FILE* progress = nullptr;         ///< terminal for a line of progress; nullptr: none
};

/// One rank's part. Every member function returns an error of ulc.h unless it says otherwise.
class TuneMeasure {
public:
    TuneMeasure(ulc_endpoint* ep, const TuneLimits& limits) : ep_(ep), limits_(limits) {}

    /// Groups of all ranks, of the first half of them, …, of the first two.
    [[nodiscard]] int make_groups();
    /// Rank 0: measures, shows its progress, and ends the others. Without a terminal it prints a
    /// line on stderr for each column.
    [[nodiscard]] int lead(std::vector<coll::Cell>& out);
    /// The others: do what rank 0 says until it is over.
    [[nodiscard]] int follow();
    /// Rank 0: columns that time was too short for.
    [[nodiscard]] unsigned left_out() const noexcept { return left_out_; }

private:
    using Clock = std::chrono::steady_clock;
    struct Group {
        ulc_group handle;
        std::uint16_t ranks;
    };
    /// Names the next work of all ranks. Rank 0 broadcasts it.
    struct Command {
        std::uint32_t over;
        std::uint32_t candidates;  ///< index in coll::candidates()
        std::uint32_t choice;      ///< index in its choices
        std::uint32_t group;
        std::uint64_t octets;
        std::uint64_t rounds;
    };
    struct Tried {
        std::uint32_t choice;
        std::uint64_t rounds;
        std::vector<double> us;
    };

    [[nodiscard]] int tell(const Command& command);
    /// us: of one operation, by rank 0's group.
    [[nodiscard]] int batch(const Command& command, double& us);
    [[nodiscard]] int operate(const Command& command, std::uint64_t round);
    [[nodiscard]] int finish(ulc_coll* operation, int started);
    [[nodiscard]] int cell(Command command, double batch_us, std::vector<bool>& hopeless,
                           coll::Cell& out);
    [[nodiscard]] bool time_is_over() const { return Clock::now() >= end_; }

    ulc_endpoint* ep_;
    TuneLimits limits_;
    std::vector<Group> groups_;
    std::vector<unsigned char> in_;
    std::vector<unsigned char> out_;
    Clock::time_point end_;
    unsigned left_out_ = 0;
};

}  // namespace ulc::tools
