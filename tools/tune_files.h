// Selection tables on disk and within this program: read, judged, and those that ship.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "coll/table_text.h"

namespace ulc::tools {

/// The files of coll/tables/, as text; made by tools/embed_tables.py.
[[nodiscard]] std::span<const std::string_view> shipped_texts() noexcept;

/// All that ships as one table, with its measurements.
[[nodiscard]] coll::TableText shipped_table();

/// A table of a file. What is wrong with it, as a sentence; empty: nothing.
[[nodiscard]] std::string read_table(const std::string& path, coll::TableText& out);

/// What is wrong with the file that ULC_COLL_TABLE names; empty: nothing, or it names none.
[[nodiscard]] std::string mistake_in_environment();

}  // namespace ulc::tools
