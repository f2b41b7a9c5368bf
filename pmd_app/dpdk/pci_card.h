// What sysfs says of a PCI card, before DPDK touches it: who drives it, whether it is free, and what to type if not.
#pragma once

#include <string>

#include "base/error.h"

namespace ulc::dpdk {

/// Holds the card for this process until it ends: two that drive one card would break both, and uio lets them. `address` as
/// is_pci_address() takes it; again for a card that is held already does nothing.
/// Errors (why: what to do): kInvalid (no such card; another process has it). Not for the hot path.
Err claim_card(const std::string& address, std::string& why);

/// Whether an IOMMU stands between the card and memory: it is bound to vfio-pci.
[[nodiscard]] bool behind_iommu(const std::string& address);

/// Why DPDK has no port for it, with the command that mends it.
[[nodiscard]] std::string why_no_port(const std::string& address);

}  // namespace ulc::dpdk
