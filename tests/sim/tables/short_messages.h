// SPDX-License-Identifier: BSD-3-Clause
// Rows of the table `policies` for short messages. Used by policies.cc.
#pragma once

#include "tests/sim/tables/table.h"

namespace ulc::sim {

/// Adds a stream of 20 bytes by profile, with and without packing.
void add_short_messages(Table& table, const TableOptions& options);

}  // namespace ulc::sim
