// SPDX-License-Identifier: BSD-3-Clause
// The tables that there are, one file each; list.cc orders them.
#pragma once

#include "tests/sim/tables/table.h"

namespace ulc::sim {

[[nodiscard]] Table gamma_latency(const TableOptions& options);         ///< gamma_latency.cc
[[nodiscard]] Table mpi_hosts(const TableOptions& options);             ///< mpi_hosts.cc
[[nodiscard]] Table gamma_barriers(const TableOptions& options);        ///< gamma_barriers.cc
[[nodiscard]] Table urtp_cluster(const TableOptions& options);          ///< urtp_cluster.cc
[[nodiscard]] Table pcode_broadcast(const TableOptions& options);       ///< pcode_broadcast.cc
[[nodiscard]] Table policies_compared(const TableOptions& options);     ///< policies.cc
[[nodiscard]] Table express_flow(const TableOptions& options);          ///< express_flow.cc
[[nodiscard]] Table express_applications(const TableOptions& options);  ///< express/applications.cc
[[nodiscard]] Table group_addresses(const TableOptions& options);       ///< group_addresses.cc
[[nodiscard]] Table applications(const TableOptions& options);  ///< applications/applications.cc
[[nodiscard]] Table molecular_dynamics(const TableOptions& options);  ///< molecular_dynamics.cc
[[nodiscard]] Table collectives(const TableOptions& options);         ///< collectives.cc
[[nodiscard]] Table engine_threads(const TableOptions& options);      ///< engine_threads.cc

}  // namespace ulc::sim
