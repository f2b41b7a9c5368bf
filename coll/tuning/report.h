// A table as people and programs read it: the file of coll/table_text.h, and what --explain prints.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coll/table_text.h"

namespace ulc::coll {

/// comment: lines for the head of the file, without #.
[[nodiscard]] std::string write_table(const TableText& table, std::string_view comment);

/// One rule a line, with what was measured where it holds: the choice, then the others from the fastest on, each with what it takes more.
/// Of several cells the one is shown in which the choice gains least.
[[nodiscard]] std::string explain(const TableText& table);

}  // namespace ulc::coll
