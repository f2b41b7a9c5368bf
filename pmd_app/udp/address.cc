// SPDX-License-Identifier: BSD-3-Clause
#include "udp/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ulc::udp {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool Address::is_v4() const noexcept {
    return std::equal(kMapped.begin(), kMapped.end(), ip.begin());
}

bool Address::is_any() const noexcept {
    const auto first = ip.begin() + (is_v4() ? kMapped.size() : 0);
    return std::all_of(first, ip.end(), [](std::uint8_t octet) { return octet == 0; });
}

bool Address::is_loopback() const noexcept {
    if (is_v4()) return ip[kMapped.size()] == IN_LOOPBACKNET;
    return std::equal(ip.begin(), ip.end(), std::begin(in6addr_loopback.s6_addr));
}

SocketAddress socket_address(const Address& address) noexcept {
    SocketAddress out;
    if (address.is_v4()) {
        out.v4 = sockaddr_in{};
        out.v4.sin_family = AF_INET;
        out.v4.sin_port = htons(address.port);
        std::memcpy(&out.v4.sin_addr, address.ip.data() + kMapped.size(), sizeof out.v4.sin_addr);
        out.octets = sizeof out.v4;
        return out;
    }
    out.v6 = sockaddr_in6{};
    out.v6.sin6_family = AF_INET6;
    out.v6.sin6_port = htons(address.port);
    std::memcpy(&out.v6.sin6_addr, address.ip.data(), sizeof out.v6.sin6_addr);
    out.octets = sizeof out.v6;
    return out;
}

Address address_of(const sockaddr& from) noexcept {
    Address out;
    if (from.sa_family == AF_INET) {
        sockaddr_in v4;
        std::memcpy(&v4, &from, sizeof v4);
        std::ranges::copy(kMapped, out.ip.begin());
        std::memcpy(out.ip.data() + kMapped.size(), &v4.sin_addr, sizeof v4.sin_addr);
        out.port = ntohs(v4.sin_port);
    } else if (from.sa_family == AF_INET6) {
        sockaddr_in6 v6;
        std::memcpy(&v6, &from, sizeof v6);
        std::memcpy(out.ip.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
        out.port = ntohs(v6.sin6_port);
    }
    return out;
}

bool read_ip(std::string_view text, Address& out) {
    const std::string copy(text);  // with a terminator
    in_addr v4{};
    if (inet_pton(AF_INET, copy.c_str(), &v4) == 1) {
        std::ranges::copy(kMapped, out.ip.begin());
        std::memcpy(out.ip.data() + kMapped.size(), &v4, sizeof v4);
        return true;
    }
    return inet_pton(AF_INET6, copy.c_str(), out.ip.data()) == 1;
}

bool read_address(std::string_view text, Address& out) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return false;
    std::string_view ip = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    const bool bracketed = ip.starts_with('[') && ip.ends_with(']');
    if (bracketed) ip = ip.substr(1, ip.size() - 2);
    Address address;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc() || end != port.data() + port.size() || address.port == 0) return false;
    if (!read_ip(ip, address) || address.is_v4() == bracketed) return false;
    out = address;
    return true;
}

std::vector<Address> addresses_here(bool v4, std::uint16_t port, std::size_t most) {
    std::vector<Address> lan;
    std::vector<Address> loopback;
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return {};
    for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
        Address address = address_of(*at->ifa_addr);
        const bool of_link = address.ip[0] == 0xfe && (address.ip[1] & 0xc0U) == 0x80;
        if (address.ip == Address{}.ip || address.is_v4() != v4 || of_link) continue;
        address.port = port;
        ((at->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : lan).push_back(address);
    }
    freeifaddrs(first);
    std::vector<Address>& found = lan.empty() ? loopback : lan;
    found.resize(std::min(found.size(), most));
    return found;
}

Err resolve(const std::string& name, bool v4, std::vector<Address>& out, std::string& why) {
    const std::size_t colon = name.rfind(':');
    addrinfo hints{};
    hints.ai_family = v4 ? AF_INET : AF_INET6;
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* first = nullptr;
    const int error =
        getaddrinfo(name.substr(0, colon).c_str(), name.substr(colon + 1).c_str(), &hints, &first);
    if (error != 0) {
        why = "peer=" + name + ": the name is not known: " + gai_strerror(error) +
              "; write the address of the node";
        return Err::kInvalid;
    }
    for (const addrinfo* at = first; at != nullptr; at = at->ai_next)
        out.push_back(address_of(*at->ai_addr));
    freeaddrinfo(first);
    return Err::kOk;
}

std::string text_of(const Address& address) {
    char text[INET6_ADDRSTRLEN] = "";
    const SocketAddress at = socket_address(address);
    if (address.is_v4()) {
        inet_ntop(AF_INET, &at.v4.sin_addr, text, sizeof text);
        return std::string(text) + ":" + std::to_string(address.port);
    }
    inet_ntop(AF_INET6, &at.v6.sin6_addr, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(address.port);
}

}  // namespace ulc::udp
