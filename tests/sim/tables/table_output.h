// SPDX-License-Identifier: BSD-3-Clause
// Writes a table as text for a terminal, as JSON and as pictures.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/sim/tables/table.h"

namespace ulc::sim {

/// Paper's figure | ours | deviation, then the shapes. Ends with a newline. An input says so in
/// place of a deviation, and a bound whether it is kept.
[[nodiscard]] std::string text_of(const Table& table);
/// All tables with their figures, shapes and curves; one document.
[[nodiscard]] std::string json_of(const std::vector<Table>& tables, const TableOptions& options);
/// Returns a gnuplot program with its data in it, which draws NAME.svg in its folder.
[[nodiscard]] std::string gnuplot_of(const Picture& picture);
/// Writes tables.json, tables.txt and NAME.gnuplot of each picture into a folder, which it creates,
/// and draws them if gnuplot is installed. Returns the error; empty if there is none. *drawn:
/// number of pictures.
[[nodiscard]] std::string write_tables(const std::vector<Table>& tables,
                                       const TableOptions& options,
                                       const std::filesystem::path& folder, int* drawn);

}  // namespace ulc::sim
