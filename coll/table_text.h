// SPDX-License-Identifier: BSD-3-Clause
// A selection table as text: a part of TOML, so that any TOML reader reads it; this one needs no
// library and says of a mistake file, line and key. `ulc tune` and `ulc-sim tune` write such files;
// coll/tables/ has those that ship.
//
//     version = 1                     first of all
//     source = "how it was made"
//     rule = [
//       {operation = "barrier", medium = "hub", ranks_to = 32, choice = "chain:2"},
//     ]
//     cell = [
//       {operation = "barrier", medium = "hub", per_node = 1, ranks = 16, octets = 0, noise = 0.0,
//         us = {"chain:2" = 178.0, "chain" = 275.5}},
//     ]
//
// A rule has `operation` and `choice`, and may have `medium` ("switch" if not), per_node_from,
// per_node_to, ranks_from, ranks_to, octets_from and octets_to (both within; unbounded if not).
// Rules must not overlap. A cell is a measurement: microseconds by choice, and the spread of
// repetitions as a share; the library skips cells, --explain prints them. Comments begin with #; a
// rule and a cell are one line each.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "coll/table.h"

namespace ulc::coll {

inline constexpr unsigned kTableVersion = 1;
/// ":k" and "@segment" of a rule: beyond them nothing changes any more, or a segment is all header.
inline constexpr std::uint32_t kConcurrentMax = 1024;
inline constexpr std::uint64_t kSegmentMin = 64;
inline constexpr std::uint64_t kSegmentMax = 1ULL << 30;
inline constexpr std::size_t kTableOctetsMax = 4U << 20;
inline constexpr std::size_t kTableRowsMax = 8192;  ///< rules, and cells

/// Measurement in one situation.
struct Cell {
    Situation at;
    double noise = 0;                                ///< spread of repetitions, as a share; 0: none
    std::vector<std::pair<std::string, double>> us;  ///< microseconds by choice, as tried
};

struct TableText {
    std::string source;
    std::vector<Rule> rules;
    std::vector<Cell> cells;
};

/// file: how messages begin. Errors: kInvalid, and `mistake` says "file:line: key: what to do".
[[nodiscard]] Err parse_table(std::string_view file, std::string_view text, TableText& out,
                              std::string& mistake);

}  // namespace ulc::coll
