// SPDX-License-Identifier: BSD-3-Clause
// Claims about figures: a prediction within a share of the paper's, a bound that is kept, a value
// in a range. Used by the tables. Invariant: no claim is about an input, each bound has a claim.
#pragma once

#include <limits>
#include <string>

#include "tests/sim/tables/table.h"

namespace ulc::sim {

/// Values that a claim allows; all are positive.
struct Allowed {
    double least = 0;
    double most = std::numeric_limits<double>::infinity();
};

/// Returns the factor by which a value is beyond what is allowed; 1: it is allowed. Infinite for
/// what is not a number, and for a value of 0 or less below the least one.
[[nodiscard]] double beyond(double value, const Allowed& allowed);

/// Returns a claim that holds if the value is allowed.
[[nodiscard]] Shape claim_of(std::string claim, std::string ours, double value,
                             const Allowed& allowed);

/// Adds a prediction, and the claim that ours is within a share of the paper's. Needs both figures.
void add_near(Table& table, Figure figure, double share = 0.1);

/// Adds a bound, and the claim that ours keeps it. Needs both figures.
void add_bound(Table& table, Figure figure, std::string claim);

/// Returns the first fault of a table; empty: none. Faults: a claim about an input, or about a
/// figure that is not there; an input without a paper's figure; a bound without a claim, or with
/// one that contradicts it; a claim whose `beyond` contradicts its verdict.
[[nodiscard]] std::string fault_of(const Table& table);

}  // namespace ulc::sim
