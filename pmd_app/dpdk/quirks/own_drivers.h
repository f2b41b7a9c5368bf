// SPDX-License-Identifier: BSD-3-Clause
// NICs whose driver is this project's (pmd_app/drivers/), not DPDK's: the EAL arguments that they
// need.
#pragma once

#include <string>
#include <vector>

namespace ulc::dpdk {

/// Returns true if `address` ("0000:03:00.0" or "03:00.0") is a DEC 21143 or 21140A.
[[nodiscard]] bool is_tulip(const std::string& address);

/// Returns the plug-in for these; empty if it was not built or installed.
[[nodiscard]] std::string tulip_plugin();

/// Returns EAL arguments for those of the PCI `addresses` that are ours: the plug-in (-d), and
/// addresses of 32 bits, the limit of the chip. An IOMMU gives any memory such addresses
/// (--iova-mode=va, memory mapped low); without one they are the memory's own (--iova-mode=pa).
/// None for other NICs.
[[nodiscard]] std::vector<std::string> own_driver_arguments(
    const std::vector<std::string>& addresses);

}  // namespace ulc::dpdk
