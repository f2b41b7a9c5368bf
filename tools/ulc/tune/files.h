// SPDX-License-Identifier: BSD-3-Clause
// Selection tables on disk and within this program: read, judged, and those that ship.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "coll/table_text.h"

namespace ulc::tools {

/// The files of coll/tables/, as text; made by tools/ulc/tune/embed_tables.py.
[[nodiscard]] std::span<const std::string_view> shipped_texts() noexcept;

/// All that ships as one table, with its measurements.
[[nodiscard]] coll::TableText shipped_table();

/// Reads a table from a file. Returns the first mistake as a sentence; empty: there is none.
[[nodiscard]] std::string read_table(const std::string& path, coll::TableText& out);

/// Returns the first mistake of the file that ULC_COLL_TABLE names; empty: none, or no file.
[[nodiscard]] std::string mistake_in_environment();

}  // namespace ulc::tools
