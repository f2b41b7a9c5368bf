// SPDX-License-Identifier: BSD-3-Clause
// Ethernet frames with ARP, or with UDP or ICMP echoes over IPv4, byte by byte (RFC 826, 791, 768,
// 792, IEEE 802.1Q).
// A frame that came is a claim: a reader returns the reason why it is dropped, and asserts nothing.
// Sans-IO. Used by ip_socket.h.
//
//   | Ethernet 12 | tag 4, if the net is a VLAN | type 2 | IPv4 20 | UDP 8 | datagram |
//   | Ethernet 12 | tag 4, if the net is a VLAN | type 2 | ARP 28 |
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/endian.h"
#include "wire/ids.h"

namespace ulc::ip {

/// An IPv4 address, whose first octet is the highest.
using Ipv4 = std::uint32_t;

inline constexpr std::uint16_t kTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kTypeArp = 0x0806;
inline constexpr std::uint16_t kTypeVlan = 0x8100;
inline constexpr std::uint16_t kVlanMask = 0x0fff;
inline constexpr std::size_t kLinkOctets = 14;  ///< Ethernet header without a tag
inline constexpr std::size_t kTagOctets = 4;

struct ArpBody {
    Be16 hardware;
    Be16 protocol;
    std::uint8_t hardware_octets;
    std::uint8_t protocol_octets;
    Be16 operation;
    Mac sender;
    Be32 sender_ip;
    Mac target;
    Be32 target_ip;
};
static_assert(sizeof(ArpBody) == 28 && alignof(ArpBody) == 1);
inline constexpr std::uint16_t kArpRequest = 1;
inline constexpr std::uint16_t kArpReply = 2;

struct Ipv4Header {
    std::uint8_t version_words;  ///< 4, and the length of this header in words of 4 octets
    std::uint8_t service;
    Be16 octets;  ///< with this header
    Be16 id;
    Be16 fragment;  ///< flags, and the place of a fragment
    std::uint8_t hops;
    std::uint8_t protocol;
    std::uint16_t checksum;  ///< as checksum_of() gives it
    Be32 source;
    Be32 destination;
};
static_assert(sizeof(Ipv4Header) == 20);
inline constexpr std::uint16_t kDontFragment = 0x4000;
inline constexpr std::uint16_t kIsFragment = 0x3fff;  ///< more follow, or it is not the first

struct UdpHeader {
    Be16 source;
    Be16 destination;
    Be16 octets;             ///< with this header
    std::uint16_t checksum;  ///< 0: none
};
static_assert(sizeof(UdpHeader) == 8);
inline constexpr std::uint8_t kUdp = 17;

struct EchoHeader {
    std::uint8_t type;
    std::uint8_t code;
    std::uint16_t checksum;  ///< sums all octets behind the IPv4 header
    Be16 id;
    Be16 number;
};
static_assert(sizeof(EchoHeader) == 8);
inline constexpr std::uint8_t kIcmp = 1;
inline constexpr std::uint8_t kEchoReply = 0;
inline constexpr std::uint8_t kEchoRequest = 8;

inline constexpr std::size_t kAroundOctets = sizeof(Ipv4Header) + sizeof(UdpHeader);

/// Reason for which a frame is dropped. text_of() has a word for each.
enum class Reason : std::uint8_t {
    kNone,
    kShort,           ///< it ends inside its headers, or before the length that they say
    kOtherVlan,       ///< it has the tag of another VLAN
    kOtherProtocol,   ///< neither ARP nor, over IPv4, UDP or an echo request
    kBadHeader,       ///< an IPv4 header of another version, or with an impossible length
    kBadChecksum,     ///< the IPv4 header, UDP or ICMP has a wrong one
    kFragment,        ///< a router cut the packet
    kOtherStation,    ///< for another IP address or port
    kBadSource,       ///< from an address that no single node has, or from the own one
    kBadArp,          ///< ARP of another form, or from an address that no single node has
    kUnaskedArp,      ///< an ARP reply without a question
    kTooManyEchoes,   ///< an echo request above those that are answered
    kAddressInUse,    ///< ARP by which another node has the own IP address
    kTooLong,         ///< to send: longer than the MTU
    kNoRoute,         ///< to send: outside of the subnet without a gateway, or to no single node
    kNoNeighbour,     ///< to send: the question for the MAC address had no reply
    kTooManyWait,     ///< to send: as many frames as may wait for ARP do
    kTooManyEntries,  ///< to send: the table of ARP is full
    kNoFrame,         ///< to send: no frame was free, or the device took none for ARP
    kGivenUp,         ///< to send: the device gave it up
    kCount,
};
[[nodiscard]] const char* text_of(Reason reason) noexcept;
inline constexpr std::size_t kReasons = static_cast<std::size_t>(Reason::kCount);

/// The station that reads frames.
struct Station {
    Mac mac;
    Ipv4 address = 0;
    std::uint8_t prefix = 0;  ///< bits of the subnet
    std::uint16_t port = 0;
    std::uint16_t vlan = 0;  ///< 0: frames have no tag

    [[nodiscard]] Ipv4 mask() const noexcept {
        return prefix == 0 ? 0 : ~Ipv4{0} << (32U - prefix);
    }
    [[nodiscard]] bool is_on_link(Ipv4 other) const noexcept {
        return ((other ^ address) & mask()) == 0;
    }
    /// Returns whether one node may have that address: it is no multicast, broadcast or loopback
    /// address, and not that of the subnet.
    [[nodiscard]] bool may_be_node(Ipv4 other) const noexcept;
    [[nodiscard]] std::size_t link_octets() const noexcept {
        return kLinkOctets + (vlan == 0 ? 0 : kTagOctets);
    }
};

/// Returns the sum of RFC 1071 of these octets, in the order of the processor's memory, folded to
/// 16 bits. more: a sum of others before, of an even number of octets.
[[nodiscard]] std::uint16_t sum_of(std::span<const std::byte> octets,
                                   std::uint16_t more = 0) noexcept;
/// Returns the checksum that belongs in a header whose own field is 0.
[[nodiscard]] inline std::uint16_t checksum_of(std::span<const std::byte> octets) noexcept {
    return static_cast<std::uint16_t>(~sum_of(octets));
}
/// Returns the sum of the pseudo header of a datagram with its UDP header.
[[nodiscard]] std::uint16_t pseudo_sum(Ipv4 source, Ipv4 destination,
                                       std::uint16_t octets) noexcept;

/// A frame behind its Ethernet header.
struct LinkBody {
    std::uint16_t type = 0;
    std::span<const std::byte> octets;  ///< to the frame's end, with what fills it up
};
[[nodiscard]] Reason read_link(std::span<const std::byte> frame, const Station& station,
                               LinkBody& out) noexcept;

/// A packet for the station, behind its IPv4 header.
struct Packet {
    Ipv4 from = 0;
    std::uint8_t protocol = 0;
    std::span<const std::byte> octets;
};
[[nodiscard]] Reason read_packet(std::span<const std::byte> octets, const Station& station,
                                 Packet& out) noexcept;

struct Datagram {
    Ipv4 from = 0;
    std::uint16_t from_port = 0;
    std::span<const std::byte> octets;
};
/// A UDP checksum that is the sum of the pseudo header alone is taken: the kernel of this machine
/// left the rest to its device, so the datagram crossed no wire.
[[nodiscard]] Reason read_datagram(const Packet& packet, const Station& station,
                                   Datagram& out) noexcept;
/// Returns kNone for a whole ICMP echo request.
[[nodiscard]] Reason check_echo(const Packet& packet) noexcept;
[[nodiscard]] Reason read_arp(std::span<const std::byte> body, const Station& station,
                              ArpBody& out) noexcept;

/// Writes an Ethernet header with that destination. Returns its octets, station.link_octets().
std::size_t put_link(std::byte* frame, const Station& station, const Mac& to,
                     std::uint16_t type) noexcept;
/// Writes the headers of IPv4 and UDP in front of a datagram of that length.
void put_datagram(std::byte* packet, const Station& station, Ipv4 to, std::uint16_t to_port,
                  std::size_t octets) noexcept;
/// Writes the reply to an echo request, with its IPv4 header, in sizeof(Ipv4Header) octets more
/// than request.octets has.
void put_echo_reply(std::byte* packet, const Station& station, const Packet& request) noexcept;
/// Writes the body of ARP. target: Mac{} in a request.
void put_arp(std::byte* body, const Station& station, std::uint16_t operation, const Mac& target,
             Ipv4 target_ip) noexcept;

}  // namespace ulc::ip
