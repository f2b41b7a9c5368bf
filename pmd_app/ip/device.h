// SPDX-License-Identifier: BSD-3-Clause
// The words by which a user gives a device an IP address: "10.0.0.5/24,peer=10.0.0.1:30791,open",
// a gateway and a VLAN. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "ip/packet.h"
#include "udp/device.h"

namespace ulc::ip {

inline constexpr std::uint16_t kPortDefault = 30791;

struct DeviceSpec {
    Ipv4 address = 0;
    std::uint8_t prefix = 0;
    Ipv4 gateway = 0;        ///< 0: none
    std::uint16_t vlan = 0;  ///< 0: none
    udp::DeviceSpec socket;  ///< own address, peers and key
};

/// address: ADDRESS/BITS, and arguments of udp, port=, peer=, key= and open, after commas. gateway:
/// empty: none. Errors: kInvalid; `why` names the option and says what is understood.
Err parse_device(const std::string& address, const std::string& gateway, std::uint32_t vlan,
                 DeviceSpec& out, std::string& why);

}  // namespace ulc::ip
