// SPDX-License-Identifier: BSD-3-Clause
// Device strings of a NIC that stays with the kernel: "net_af_packet,iface=eth0". Pure. The
// spelling is that of DPDK's driver, so that command lines go on working; "eth_af_packet" still
// means DPDK's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ulc::packet {

/// "net_af_packet0,iface=eth0,framecnt=1024,qdisc_bypass=1"
struct DeviceSpec {
    std::string interface;
    std::uint32_t receive_frames = 1024;  ///< framecnt=: slots of the kernel's receive ring
    bool qdisc_bypass = false;            ///< frames skip the interface's queueing discipline
};

/// True if the device string means a NIC shared with the kernel.
[[nodiscard]] bool is_packet(std::string_view device) noexcept;

/// Reads such a string. Errors: kInvalid; `why` says what is understood.
Err parse_device(std::string_view device, DeviceSpec& out, std::string& why);

}  // namespace ulc::packet
