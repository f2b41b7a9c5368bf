// SPDX-License-Identifier: BSD-3-Clause
// From measurements to rules: which choice a call takes, and for which calls the cells of a grid
// speak.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "coll/table.h"
#include "coll/table_text.h"

namespace ulc::coll {

/// Times that differ by less are taken for equal, and by less than a cell's noise.
inline constexpr double kEqualShare = 0.02;
/// Loss that a rule may have against the best of a cell, unless noise is more: for less the table
/// is not cut into more rules.
inline constexpr double kLossMax = 0.08;

enum class Reach : std::uint8_t {
    kEverything,  ///< rules cover every number of ranks: the shipped tables
    kMeasured,    ///< nothing beyond the ranks and ranks a node that were measured: a cluster's own
};

/// Microseconds of a choice in a cell; 0: not measured.
[[nodiscard]] double time_of(const Cell& cell, std::string_view choice);

/// The share by which a choice is slower than the best of a cell; infinity: not measured, which
/// means far behind.
[[nodiscard]] double loss_of(const Cell& cell, std::string_view choice);

/// One cell of each situation, in the order of their first: of each choice that all its cells have
/// the geometric mean of its times, and the greatest noise; none where they have no choice in
/// common. So a way of running that is faster for all choices counts no more than another one.
[[nodiscard]] std::vector<Cell> one_of_each(std::span<const Cell> cells);

/// Returns the fewest rules without overlap whose choices lose no more than kLossMax in any cell
/// (of operations that take one choice for all sizes: against the best such choice, in the mean
/// over sizes). Among equally few, those that lose least; of equals, the incumbents, then the first
/// candidates. `shipped`: the incumbents of a cluster's own table; nullptr: none. If the numbers of
/// a grid meet, the border is their geometric mean.
[[nodiscard]] std::vector<Rule> decide(std::span<const Cell> cells, Reach reach,
                                       const Table* shipped);

}  // namespace ulc::coll
