// SPDX-License-Identifier: BSD-3-Clause
// A table as people and programs read it: the file of coll/table_text.h, and what --explain prints.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coll/table_text.h"

namespace ulc::coll {

/// Rounds to the digits of a table, so that rules follow from the figures that can be read there.
void round_as_written(std::vector<Cell>& cells);

/// comment: lines for the head of the file, without #.
[[nodiscard]] std::string write_table(const TableText& table, std::string_view comment);

/// Prints one rule a line, with the measurement in its range: the choice, then the others from the
/// fastest on, each with its additional time. Among several cells it shows the one in which the
/// choice gains least, and in short the one in which it gains most.
[[nodiscard]] std::string explain(const TableText& table);

}  // namespace ulc::coll
