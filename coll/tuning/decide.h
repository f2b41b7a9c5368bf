// From measurements to rules: which choice wins a cell, and for which calls the cells of a grid speak.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "coll/table.h"
#include "coll/table_text.h"

namespace ulc::coll {

/// Times that differ by less are taken for equal, and by less than a cell's noise.
inline constexpr double kEqualShare = 0.02;

enum class Reach : std::uint8_t {
    kEverything,  ///< rules cover every number of ranks: what ships
    kMeasured,    ///< nothing beyond the ranks and ranks a node that were measured: a cluster's own
};

/// The choice of a cell: the incumbent if no other one is faster by more than the noise ("": none), else the first of those that are as
/// fast as the fastest.
[[nodiscard]] std::string_view winner(const Cell& cell, std::string_view incumbent);

/// Microseconds of a choice in a cell; 0: not measured.
[[nodiscard]] double time_of(const Cell& cell, std::string_view choice);

/// Rules without overlap. shipped: the incumbents of a cluster's own table; nullptr: none. Where the numbers of a grid meet, the border
/// is their geometric mean.
[[nodiscard]] std::vector<Rule> decide(std::span<const Cell> cells, Reach reach,
                                       const Table* shipped);

}  // namespace ulc::coll
