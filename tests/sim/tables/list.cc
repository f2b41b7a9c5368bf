// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tables/list.h"

namespace ulc::sim {
namespace {

constexpr TableEntry kTables[] = {
    {"gamma-latency", "GAMMA §4.5.6–8, §3.2.1, table 3.1", gamma_latency},
    {"mpi-hosts", "GAMMA §7.3.3; U-Net MPI §6", mpi_hosts},
    {"gamma-barriers", "GAMMA §5.4", gamma_barriers},
    {"urtp-cluster", "URTP §3.3, §4", urtp_cluster},
    {"pcode-broadcast", "PCODE §6.3–6.5", pcode_broadcast},
    {"express-flow", "Express §5.1", express_flow},
    {"express-applications", "Express §5.2", express_applications},
    {"policies", "ours", policies_compared},
    {"addresses", "URTP §3.2.1", group_addresses},
    {"applications", "GAMMA §6.2, §6.3; URTP §5", applications},
    {"molecular-dynamics", "GAMMA §6.4", molecular_dynamics},
    {"collectives", "ours", collectives},
    {"engine-threads", "ours", engine_threads},
};

}  // namespace

std::span<const TableEntry> tables() noexcept { return kTables; }

}  // namespace ulc::sim
