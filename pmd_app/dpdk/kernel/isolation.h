// SPDX-License-Identifier: BSD-3-Clause
// Shares a NIC with the kernel, if its driver is bifurcated: the kernel keeps the interface, and
// the engine receives the frames of its EtherType alone, chosen by a rule of rte_flow.
//
//   NIC ─┬─ frames of our EtherType ─▶ queue 0 ─▶ engine
//        └─ all others ─▶ the kernel's interface
//
// DPDK's net_tap with the argument remote= does the same with the kernel's traffic control, on any
// interface.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "dpdk/device.h"

namespace ulc::dpdk {

/// Returns true if the kernel's interface stays in use while DPDK's `driver` has queues of the
/// device. `driver`: as rte_eth_dev_info names it.
[[nodiscard]] bool is_bifurcated(const DeviceSpec& spec, const std::string& driver);

/// Leaves all received frames with the kernel except those that a rule names. Called before the
/// device is configured, because drivers add rules for all frames then. Errors (`why`: the cause
/// and the advice): kInvalid, the driver refuses.
Err leave_frames_with_kernel(std::uint16_t ethdev, const DeviceSpec& spec, std::string& why);

/// Adds the rule for the frames of `ether_type`, to groups too. Called once the device runs; the
/// rule ends with rte_eth_dev_close(). Errors: as above.
Err receive_ether_type(std::uint16_t ethdev, const DeviceSpec& spec, std::uint16_t ether_type,
                       std::string& why);

}  // namespace ulc::dpdk
