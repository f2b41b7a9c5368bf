// SPDX-License-Identifier: BSD-3-Clause
#include "ip/packet.h"

#include <bit>
#include <cstring>

namespace ulc::ip {
namespace {

constexpr std::uint8_t kVersion = 4;
constexpr std::uint8_t kHops = 64;
constexpr std::uint16_t kHardwareEthernet = 1;
constexpr Ipv4 kLoopbackNet = 127;

bool is_group(const Mac& mac) noexcept { return (mac.octets[0] & 1U) != 0; }

struct Pseudo {
    Be32 source;
    Be32 destination;
    std::uint8_t zero;
    std::uint8_t protocol;
    Be16 octets;
};
static_assert(sizeof(Pseudo) == 12);

/// Writes an IPv4 header in front of that many octets. A packet that must not be cut needs no
/// number (RFC 6864).
void put_ipv4(std::byte* packet, const Station& station, Ipv4 to, std::uint8_t protocol,
              std::size_t octets) noexcept {
    Ipv4Header header{.version_words = kVersion << 4U | sizeof(Ipv4Header) / sizeof(std::uint32_t),
                      .service = 0,
                      .octets = static_cast<std::uint16_t>(sizeof header + octets),
                      .id = 0,
                      .fragment = kDontFragment,
                      .hops = kHops,
                      .protocol = protocol,
                      .checksum = 0,
                      .source = station.address,
                      .destination = to};
    header.checksum = checksum_of(std::as_bytes(std::span(&header, 1)));
    std::memcpy(packet, &header, sizeof header);
}

}  // namespace

const char* text_of(Reason reason) noexcept {
    constexpr std::array<const char*, kReasons> kTexts{
        "none",
        "too short",
        "of another VLAN",
        "of another protocol",
        "with a wrong IPv4 header",
        "with a wrong checksum",
        "fragments",
        "for other nodes",
        "with a wrong source address",
        "of wrong ARP",
        "of ARP that was not asked for",
        "of pings above those that are answered",
        "of another node with this IP address",
        "longer than the MTU",
        "without a route",
        "to a node that does not answer ARP",
        "above those that wait for ARP",
        "above the table of ARP",
        "without a buffer",
        "given up by the device",
    };
    return kTexts[static_cast<std::size_t>(reason)];
}

bool Station::may_be_node(Ipv4 other) const noexcept {
    const Ipv4 first = other >> 24U;
    if (first == 0 || first == kLoopbackNet || first >= 224) return false;
    if (!is_on_link(other) || prefix >= 31) return true;  // RFC 3021
    const Ipv4 host = other & ~mask();
    return host != 0 && host != static_cast<Ipv4>(~mask());
}

std::uint16_t sum_of(std::span<const std::byte> octets, std::uint16_t more) noexcept {
    // Words of four octets: folding gives what words of two give (RFC 1071 §2).
    std::uint64_t sum = more;
    const std::byte* at = octets.data();
    std::size_t left = octets.size();
    for (; left >= sizeof(std::uint32_t); left -= sizeof(std::uint32_t)) {
        std::uint32_t word;
        std::memcpy(&word, at, sizeof word);
        sum += word;
        at += sizeof word;
    }
    std::uint32_t rest = 0;
    if (left > 0) std::memcpy(&rest, at, left);
    sum += rest;
    while (sum > UINT16_MAX)
        sum = (sum & UINT16_MAX) + (sum >> 16U);
    return static_cast<std::uint16_t>(sum);
}

std::uint16_t pseudo_sum(Ipv4 source, Ipv4 destination, std::uint16_t octets) noexcept {
    const Pseudo pseudo{source, destination, 0, kUdp, octets};
    return sum_of(std::as_bytes(std::span(&pseudo, 1)));
}

Reason read_link(std::span<const std::byte> frame, const Station& station, LinkBody& out) noexcept {
    if (frame.size() < kLinkOctets) return Reason::kShort;
    Be16 type;
    std::memcpy(&type, &frame[kLinkOctets - sizeof type], sizeof type);
    std::uint16_t vlan = 0;
    std::size_t octets = kLinkOctets;
    if (type == kTypeVlan) {
        octets += kTagOctets;
        if (frame.size() < octets) return Reason::kShort;
        Be16 control;
        std::memcpy(&control, &frame[kLinkOctets], sizeof control);
        std::memcpy(&type, &frame[kLinkOctets + sizeof control], sizeof type);
        vlan = control & kVlanMask;  // 0: the tag has a priority alone
    }
    if (vlan != station.vlan) return Reason::kOtherVlan;
    Mac from;
    std::memcpy(&from, &frame[sizeof from], sizeof from);
    if (from == station.mac || is_group(from)) return Reason::kBadSource;
    out = {type, frame.subspan(octets)};
    return Reason::kNone;
}

Reason read_packet(std::span<const std::byte> octets, const Station& station,
                   Packet& out) noexcept {
    Ipv4Header header;
    if (octets.size() < sizeof header) return Reason::kShort;
    std::memcpy(&header, octets.data(), sizeof header);
    const std::size_t header_octets = (header.version_words & 0x0fU) * sizeof(std::uint32_t);
    if (header.version_words >> 4U != kVersion || header_octets < sizeof header ||
        header.octets < header_octets)
        return Reason::kBadHeader;
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
    if (header.octets > octets.size()) return Reason::kShort;
#endif
    if (sum_of(octets.first(header_octets)) != UINT16_MAX) return Reason::kBadChecksum;
    if (header.destination != station.address) return Reason::kOtherStation;
    if ((header.fragment & kIsFragment) != 0) return Reason::kFragment;
    if (!station.may_be_node(header.source) || header.source == station.address)
        return Reason::kBadSource;
    out = {header.source, header.protocol,
           octets.subspan(header_octets, header.octets - header_octets)};
    return Reason::kNone;
}

Reason read_datagram(const Packet& packet, const Station& station, Datagram& out) noexcept {
    if (packet.protocol != kUdp) return Reason::kOtherProtocol;
    UdpHeader udp;
    if (packet.octets.size() < sizeof udp) return Reason::kShort;
    std::memcpy(&udp, packet.octets.data(), sizeof udp);
    if (udp.octets < sizeof udp || udp.octets > packet.octets.size()) return Reason::kBadHeader;
    const std::span<const std::byte> body = packet.octets.first(udp.octets);
    if (udp.destination != station.port) return Reason::kOtherStation;
    if (udp.source == 0) return Reason::kBadSource;
    if (udp.checksum != 0) {
        const std::uint16_t pseudo = pseudo_sum(packet.from, station.address, udp.octets);
        if (udp.checksum != pseudo && sum_of(body, pseudo) != UINT16_MAX)
            return Reason::kBadChecksum;
    }
    out = {packet.from, udp.source, body.subspan(sizeof udp)};
    return Reason::kNone;
}

Reason check_echo(const Packet& packet) noexcept {
    EchoHeader echo;
    if (packet.octets.size() < sizeof echo) return Reason::kShort;
    std::memcpy(&echo, packet.octets.data(), sizeof echo);
    if (echo.type != kEchoRequest || echo.code != 0) return Reason::kOtherProtocol;
    return sum_of(packet.octets) == UINT16_MAX ? Reason::kNone : Reason::kBadChecksum;
}

Reason read_arp(std::span<const std::byte> body, const Station& station, ArpBody& out) noexcept {
    if (body.size() < sizeof out) return Reason::kShort;
    std::memcpy(&out, body.data(), sizeof out);
    if (out.hardware != kHardwareEthernet || out.protocol != kTypeIpv4 ||
        out.hardware_octets != sizeof(Mac) || out.protocol_octets != sizeof(Ipv4) ||
        (out.operation != kArpRequest && out.operation != kArpReply))
        return Reason::kBadArp;
    if (is_group(out.sender) || out.sender == Mac{} || out.sender == station.mac)
        return Reason::kBadArp;
    if (out.sender_ip == station.address) return Reason::kAddressInUse;
    // A node that asks whether an address is free has none (RFC 5227).
    if (out.sender_ip == 0 && out.operation == kArpRequest) return Reason::kNone;
    if (!station.is_on_link(out.sender_ip) || !station.may_be_node(out.sender_ip))
        return Reason::kBadArp;
    return Reason::kNone;
}

std::size_t put_link(std::byte* frame, const Station& station, const Mac& to,
                     std::uint16_t type) noexcept {
    std::memcpy(frame, &to, sizeof to);
    std::memcpy(frame + sizeof to, &station.mac, sizeof to);
    std::byte* at = frame + 2 * sizeof to;
    if (station.vlan != 0) {
        const std::array<Be16, 2> tag{kTypeVlan, station.vlan};
        std::memcpy(at, tag.data(), kTagOctets);
        at += kTagOctets;
    }
    const Be16 of_body{type};
    std::memcpy(at, &of_body, sizeof of_body);
    return station.link_octets();
}

void put_datagram(std::byte* packet, const Station& station, Ipv4 to, std::uint16_t to_port,
                  std::size_t octets) noexcept {
    const std::size_t udp_octets = sizeof(UdpHeader) + octets;
    put_ipv4(packet, station, to, kUdp, udp_octets);
    // Without a checksum of UDP (RFC 768): the frame has one of Ethernet, and a seal has a tag.
    const UdpHeader udp{station.port, to_port, static_cast<std::uint16_t>(udp_octets), 0};
    std::memcpy(packet + sizeof(Ipv4Header), &udp, sizeof udp);
}

void put_echo_reply(std::byte* packet, const Station& station, const Packet& request) noexcept {
    put_ipv4(packet, station, request.from, kIcmp, request.octets.size());
    std::byte* const body = packet + sizeof(Ipv4Header);
    std::memcpy(body, request.octets.data(), request.octets.size());
    EchoHeader echo;
    std::memcpy(&echo, body, sizeof echo);
    echo.type = kEchoReply;
    echo.checksum = 0;
    std::memcpy(body, &echo, sizeof echo);
    echo.checksum = checksum_of({body, request.octets.size()});
    std::memcpy(body, &echo, sizeof echo);
}

void put_arp(std::byte* body, const Station& station, std::uint16_t operation, const Mac& target,
             Ipv4 target_ip) noexcept {
    const ArpBody arp{kHardwareEthernet, kTypeIpv4,       sizeof(Mac), sizeof(Ipv4), operation,
                      station.mac,       station.address, target,      target_ip};
    std::memcpy(body, &arp, sizeof arp);
}

}  // namespace ulc::ip
