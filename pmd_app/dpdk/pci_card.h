// SPDX-License-Identifier: BSD-3-Clause
// Information of sysfs about a PCI card, before DPDK touches it: its driver, whether it is free,
// and the command to type if not.
#pragma once

#include <string>

#include "base/error.h"

namespace ulc::dpdk {

/// Holds the card for this process until it ends: two processes that drive one card would break
/// both, and uio permits them. `address`: as is_pci_address() takes it; a second call for the same
/// card does nothing. Errors (`why`: the advice): kInvalid (no such card; another process has it).
/// Not for the hot path.
Err claim_card(const std::string& address, std::string& why);

/// Returns true if an IOMMU is between the card and memory: it is bound to vfio-pci.
[[nodiscard]] bool behind_iommu(const std::string& address);

/// Returns why DPDK has no port for it, with the command that fixes it.
[[nodiscard]] std::string why_no_port(const std::string& address);

}  // namespace ulc::dpdk
