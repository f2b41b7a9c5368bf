// The tables that there are, one file each; list.cc orders them.
#pragma once

#include "tests/sim/tables/table.h"

namespace ulc::sim {

[[nodiscard]] Table gamma_latency(const TableOptions& options);   ///< gamma_latency.cc
[[nodiscard]] Table gamma_barriers(const TableOptions& options);  ///< gamma_barriers.cc

}  // namespace ulc::sim
