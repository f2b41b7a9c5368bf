// SPDX-License-Identifier: BSD-3-Clause
#include "udp/device.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "port/device_arguments.h"
#include "udp/datagram.h"

namespace ulc::udp {
namespace {

constexpr std::string_view kName = "udp";
constexpr std::size_t kConfiguredMax = 64;
constexpr std::size_t kEthernetMtu = 1500;
/// Packets that a sender has on the way before it waits for an answer.
constexpr std::size_t kPacketsUnanswered = 256;

/// Tells whether the text may be "node1:4001".
bool is_host_and_port(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    const std::string_view port = text.substr(colon + 1);
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    return error == std::errc() && end == port.data() + port.size() && number != 0 &&
           std::ranges::all_of(text.substr(0, colon), [](char c) {
               return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ||
                      c == '_';
           });
}

/// Sets one argument. Returns why not; empty: it is set.
std::string set_argument(std::string_view key, std::string_view value, DeviceSpec& spec) {
    if (key == "addr") {
        if (read_ip(value, spec.own)) return "";
        return "addr=" + std::string(value) + " is no IP address of this machine, as 10.0.0.5";
    }
    if (key == "port") {
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), spec.own.port);
        if (error == std::errc() && end == value.data() + value.size() && !value.empty()) return "";
        return "port=" + std::string(value) + " is not a number from 0 to 65535";
    }
    if (key == "peer") {
        Address peer;
        const bool by_name = !read_address(value, peer);
        if (by_name && !is_host_and_port(value))
            return "peer=" + std::string(value) +
                   " is not the address and port of a node, as 10.0.0.1:4001, [fd00::1]:4001 or "
                   "node1:4001";
        if (spec.peers.size() + spec.named_peers.size() == kConfiguredMax)
            return "takes at most " + std::to_string(kConfiguredMax) +
                   " peers; one that all nodes know is enough";
        if (by_name) {
            spec.named_peers.emplace_back(value);
        } else {
            spec.peers.push_back(peer);
        }
        return "";
    }
    if (key == "key") {
        spec.key_file = value;
        return value.empty() ? "key= names no file" : "";
    }
    if (key == "open" && value.empty()) {
        spec.open = true;
        return "";
    }
    return "has no argument '" + std::string(key) +
           "'; write udp[,addr=IP][,port=NUMBER][,peer=IP:PORT]…[,key=FILE|,open]";
}

}  // namespace

std::uint16_t packet_octets(const Address& own, std::size_t space) noexcept {
    const std::size_t most = own.is_loopback() ? kQuestionMax + kIpv4Octets : kEthernetMtu;
    return static_cast<std::uint16_t>(std::clamp(space / kPacketsUnanswered, kEthernetMtu, most));
}

bool is_udp(std::string_view device) noexcept {
    return device.substr(0, device.find(',')) == kName;
}

Err parse_device(std::string_view device, DeviceSpec& out, std::string& why) {
    DeviceSpec spec;
    const auto set = [&](auto key, auto value) { return set_argument(key, value, spec); };
    std::string wrong = port::set_arguments(device, set);
    const bool all_v4 = spec.peers.empty() || spec.peers[0].is_v4();
    if (spec.own.ip == Address{}.ip)
        static_cast<void>(read_ip(all_v4 ? "0.0.0.0" : "::", spec.own));
    for (const Address& peer : spec.peers)
        if (wrong.empty() && peer.is_v4() != spec.own.is_v4())
            wrong = "peer=" + text_of(peer) + " is not of the same IP version as its own address";
    if (wrong.empty() && spec.open && !spec.key_file.empty())
        wrong = "is sealed by key= or open; leave one out";
    if (!wrong.empty()) {
        why = std::string(kName).append(" ").append(wrong);
        return Err::kInvalid;
    }
    out = std::move(spec);
    return Err::kOk;
}

bool read_addresses(std::string_view text, std::vector<Address>& out) {
    std::vector<Address> read;
    while (!text.empty() && read.size() < kMeetingMax) {
        const std::size_t comma = std::min(text.find(','), text.size());
        Address address;
        if (!read_address(text.substr(0, comma), address)) return false;
        read.push_back(address);
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    if (!text.empty() || read.empty()) return false;
    out = std::move(read);
    return true;
}

}  // namespace ulc::udp
