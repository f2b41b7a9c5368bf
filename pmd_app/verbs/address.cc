// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/address.h"

#include <algorithm>
#include <cstring>

#include "base/fnv.h"

namespace ulc::verbs {
namespace {

// Offsets in the header in front of a frame. IPv6 and GRH have the same layout; an IPv4 header
// fills the last 20 octets.
constexpr std::size_t kSourceGid = 8;
constexpr std::size_t kV4Header = 20;
constexpr std::size_t kV4Source = kV4Header + 12;
constexpr std::uint8_t kV4NoOptions = 0x45;

constexpr Gid kV4Prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::uint8_t octet(std::uint64_t value, unsigned shift) noexcept {
    return static_cast<std::uint8_t>(value >> shift);
}

}  // namespace

Mac mac_of(const Address& address) noexcept {
    std::uint64_t hash = kFnvBasis;
    for (const std::uint8_t each : address.gid)
        hash = fnv1a(hash, each);
    hash ^= hash >> 32;
    hash ^= hash >> 22;
    const auto first = static_cast<std::uint8_t>(0x02 | (octet(hash, 16) & 0x3f) << 2);
    return {{first, octet(hash, 8), octet(hash, 0), octet(address.qpn, 16), octet(address.qpn, 8),
             octet(address.qpn, 0)}};
}

bool is_v4(const Gid& gid) noexcept {
    return std::equal(kV4Prefix.begin(), kV4Prefix.begin() + 12, gid.begin());
}

bool is_link_local(const Gid& gid) noexcept {
    constexpr Gid kPrefix{0xfe, 0x80};
    return std::equal(kPrefix.begin(), kPrefix.begin() + 8, gid.begin());
}

bool is_zero(const Gid& gid) noexcept { return gid == Gid{}; }

std::uint16_t group_of(const Mac& destination) noexcept {
    if (destination == kBroadcastMac) return kBroadcastGroup;
    return static_cast<std::uint16_t>(1 + destination.octets[5]);
}

Gid mgid_of(std::uint16_t group, std::uint16_t ether_type, bool v4) noexcept {
    Gid mgid{};
    if (v4) {
        mgid = kV4Prefix;
        mgid[12] = 239;
        mgid[13] = octet(ether_type, 0);
    } else {
        mgid = {0xff, 0x12, 0x55, 0x4c, octet(ether_type, 8), octet(ether_type, 0)};
        mgid[12] = 0x55;
        mgid[13] = 0x4c;
    }
    mgid[14] = octet(group, 8);
    mgid[15] = octet(group, 0);
    return mgid;
}

bool read_source(const std::byte* grh, bool v4, Gid& out) noexcept {
    if (!v4) {
        std::memcpy(out.data(), grh + kSourceGid, out.size());
        return true;
    }
    if (static_cast<std::uint8_t>(grh[kV4Header]) != kV4NoOptions) return false;
    out = kV4Prefix;
    std::memcpy(out.data() + 12, grh + kV4Source, 4);
    return true;
}

}  // namespace ulc::verbs
