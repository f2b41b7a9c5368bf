// SPDX-License-Identifier: BSD-3-Clause
// NICs whose driver is this project's (pmd_app/drivers/), not DPDK's: the EAL arguments that they
// need.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace ulc::dpdk {

/// A driver of this project, and the cards that it drives.
struct OwnDriver {
    const char* name;    ///< in DPDK
    const char* chip;    ///< for messages
    const char* plugin;  ///< file
    const char* folder;  ///< holds the file in the build, next to the engine's folder
    const char* vendor;  ///< as /sys writes it
    std::array<const char*, 2> devices;
};

/// Returns the driver of the card at `address` ("0000:03:00.0" or "03:00.0"); nullptr if it is not
/// one of ours (a DEC 21143 or 21140A, an Intel 82557, 82558, 82559, 82550 or 82551).
[[nodiscard]] const OwnDriver* own_driver_of(const std::string& address);

/// Returns the path of the plug-in; empty if it was not built or installed.
[[nodiscard]] std::string plugin_of(const OwnDriver& driver);

/// Returns EAL arguments for those of the PCI `addresses` that are ours: the plug-ins (-d), and
/// addresses of 32 bits, the limit of these chips. An IOMMU gives any memory such addresses
/// (--iova-mode=va, memory mapped low); without one they are the memory's own (--iova-mode=pa).
/// None for other NICs.
[[nodiscard]] std::vector<std::string> own_driver_arguments(
    const std::vector<std::string>& addresses);

}  // namespace ulc::dpdk
