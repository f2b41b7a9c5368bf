// SPDX-License-Identifier: BSD-3-Clause
#include "ip/device.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

namespace ulc::ip {
namespace {

constexpr std::uint8_t kPrefixMax = 31;
constexpr std::uint32_t kVlanMax = 4094;

/// Reads "10.0.0.5". Returns 0 if it is none.
Ipv4 read_ipv4(std::string_view text) {
    udp::Address address;
    if (!udp::read_ip(text, address) || !address.is_v4()) return 0;
    Be32 ip;
    std::memcpy(&ip, address.ip.data() + address.ip.size() - sizeof ip, sizeof ip);
    return ip;
}

/// Reads "10.0.0.5/24".
bool read_subnet(std::string_view text, Station& out) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return false;
    const std::string_view bits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), out.prefix);
    if (error != std::errc() || end != bits.data() + bits.size()) return false;
    out.address = read_ipv4(text.substr(0, slash));
    return out.prefix > 0 && out.prefix <= kPrefixMax && out.may_be_node(out.address);
}

}  // namespace

Err parse_device(const std::string& address, const std::string& gateway, std::uint32_t vlan,
                 DeviceSpec& out, std::string& why) {
    const std::size_t comma = std::min(address.find(','), address.size());
    const std::string subnet = address.substr(0, comma);
    Station station;
    if (!read_subnet(subnet, station)) {
        why = "--ip " + subnet +
              " is not the IPv4 address of a node and the bits of its subnet, as 10.0.0.5/24";
        return Err::kInvalid;
    }
    DeviceSpec spec;
    spec.address = station.address;
    spec.prefix = station.prefix;
    const std::string ip = subnet.substr(0, subnet.find('/'));
    const std::string words = address.substr(comma);
    if (words.find(",addr=") != std::string::npos) {
        why = "--ip " + address + ": the address is the first word; leave addr= out";
        return Err::kInvalid;
    }
    if (const Err e = udp::parse_device("udp,addr=" + ip + words, spec.socket, why);
        e != Err::kOk) {
        why = "--ip " + address + ": as a device, " + why;
        return e;
    }
    if (spec.socket.own.port == 0) spec.socket.own.port = kPortDefault;
    if (!gateway.empty()) {
        spec.gateway = read_ipv4(gateway);
        if (!station.is_on_link(spec.gateway) || !station.may_be_node(spec.gateway) ||
            spec.gateway == spec.address) {
            why = "--gateway " + gateway + " is not another IPv4 address of the subnet of --ip " +
                  subnet;
            return Err::kInvalid;
        }
    }
    if (vlan > kVlanMax) {
        why = "--vlan " + std::to_string(vlan) + " is no VLAN; they are 1 to 4094, and 0 is none";
        return Err::kInvalid;
    }
    spec.vlan = static_cast<std::uint16_t>(vlan);
    out = std::move(spec);
    return Err::kOk;
}

}  // namespace ulc::ip
