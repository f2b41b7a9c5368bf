// SPDX-License-Identifier: BSD-3-Clause
// Device strings of a UDP socket: "udp", "udp,addr=10.0.0.5,port=4001,peer=10.0.0.1:4001,key=FILE",
// "udp,open". Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "udp/address.h"

namespace ulc::udp {

struct DeviceSpec {
    Address own;                 ///< addr= and port=; all addresses of this machine; port 0: any
    std::vector<Address> peers;  ///< peer=, any number of times
    std::vector<std::string> named_peers;  ///< those by name: "node1:4001"
    std::string key_file;                  ///< key=; holds the secret of all nodes
    bool open = false;                     ///< the word "open": nothing is sealed
};

inline constexpr std::uint16_t kIpv4Octets = 20 + 8;  ///< IP and UDP headers
inline constexpr std::uint16_t kIpv6Octets = 40 + 8;

/// Returns the octets of the longest packets of a socket at that address, with their IP headers:
/// those that Ethernet takes, or on the loopback interface as many as do not crowd out each other.
/// space: octets that the socket holds for a receiver that is late.
[[nodiscard]] std::uint16_t packet_octets(const Address& own, std::size_t space) noexcept;

/// Returns whether the device string means a UDP socket.
[[nodiscard]] bool is_udp(std::string_view device) noexcept;

/// Reads such a string. Errors: kInvalid; `why` says what is understood.
Err parse_device(std::string_view device, DeviceSpec& out, std::string& why);

/// Reads "10.0.0.1:4001,[fd00::1]:4001", as UdpPort::addresses() gives it. False: it is not that,
/// or has more than kMeetingMax addresses.
[[nodiscard]] bool read_addresses(std::string_view text, std::vector<Address>& out);
inline constexpr std::size_t kMeetingMax = 4;

}  // namespace ulc::udp
