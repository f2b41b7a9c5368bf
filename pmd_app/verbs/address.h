// SPDX-License-Identifier: BSD-3-Clause
// Addresses of a node on an RDMA wire: the MAC that stands in its frames, and the GID and queue
// pair behind it. Pure. The rules are those of docs/PROTOCOL.md, "ULC over UD".
//
//   MAC of a node      02 or 6 bits of the GID's hash << 2 | 16 bits more | QPN 24
//   MGID over IPv6     ff12 : 554c : EtherType : 0 : 0 : 0 : 554c : group
//   MGID over IPv4     ::ffff:239.(EtherType's low octet).(group)
//   group              0: broadcast, and frames for nodes not heard of yet; else 1 + the last
//                      octet of the group's MAC
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "port/port.h"

namespace ulc::verbs {

using Gid = std::array<std::uint8_t, 16>;

/// Octets in front of each received frame, of which the device tells the length.
inline constexpr std::uint32_t kGrhOctets = 40;
/// Groups of the wire: a port joins those of its multicast addresses, so 257 always suffice.
inline constexpr std::uint16_t kGroups = 257;
inline constexpr std::uint16_t kBroadcastGroup = 0;
inline constexpr std::uint32_t kMulticastQpn = 0xffffff;

struct Address {
    Gid gid{};
    std::uint32_t qpn = 0;  ///< 24 bits
    friend bool operator==(const Address&, const Address&) = default;
};

/// Returns the MAC of a node; unicast and locally administered.
[[nodiscard]] Mac mac_of(const Address& address) noexcept;

/// True if the GID holds an IPv4 address (RoCE v2 over IPv4).
[[nodiscard]] bool is_v4(const Gid& gid) noexcept;
/// True for fe80::/64, which every RoCE port has.
[[nodiscard]] bool is_link_local(const Gid& gid) noexcept;
[[nodiscard]] bool is_zero(const Gid& gid) noexcept;

/// Returns the group that carries frames to this multicast or broadcast MAC.
[[nodiscard]] std::uint16_t group_of(const Mac& destination) noexcept;
/// Returns the MGID of a group, of the address family of the node's GID.
[[nodiscard]] Gid mgid_of(std::uint16_t group, std::uint16_t ether_type, bool v4) noexcept;

/// Reads the sender's GID from the kGrhOctets in front of a received frame. v4: that of the
/// receiver's GID, since the header says its family unreliably (IBTA annex A17.4.5). False: the
/// header is not of that family.
[[nodiscard]] bool read_source(const std::byte* grh, bool v4, Gid& out) noexcept;

}  // namespace ulc::verbs
