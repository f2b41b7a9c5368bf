// SPDX-License-Identifier: BSD-3-Clause
// Checks a device before DPDK tries it: a kernel interface that is missing, down or too small, a
// memif socket that is in use or left over from a crash. So errors can say what to do.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "dpdk/device.h"

namespace ulc::dpdk {

/// For af_packet: mtu 0 becomes the interface's, another is compared with it. For a memif server:
/// removes a socket on which no process listens. Errors: kInvalid, kPortDown, kPermission; why.
Err check_device(const DeviceSpec& spec, std::uint16_t& mtu, std::string& why);

}  // namespace ulc::dpdk
