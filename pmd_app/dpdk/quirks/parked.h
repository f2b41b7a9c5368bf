// SPDX-License-Identifier: BSD-3-Clause
// Closed memif server devices. A full close leaves EAL's interrupt thread with a freed handle for
// the listening socket (DPDK 22.11: memif_socket_remove_device), and the next event there may crash
// the process. So such a device is stopped, kept, and taken again when the same device is opened
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dpdk/device.h"

namespace ulc::dpdk {

/// Keeps a stopped device. Its socket file is removed when the process ends.
void park_device(const DeviceSpec& spec, std::uint16_t ethdev_id);

/// Returns the parked device with these arguments, which is then no longer parked.
[[nodiscard]] std::optional<std::uint16_t> take_parked_device(const DeviceSpec& spec);

/// Removes the socket files of parked devices; also runs at exit.
void remove_parked_sockets();

}  // namespace ulc::dpdk
