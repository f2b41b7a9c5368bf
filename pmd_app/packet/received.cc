// SPDX-License-Identifier: BSD-3-Clause
#include "packet/received.h"

#include <cstring>

namespace ulc::packet {
namespace {

constexpr std::uint32_t kEthernetOctets = 14;

}  // namespace

bool is_ours(const Received& got, const Mac& own, bool has_own, std::uint32_t frame_max,
             PortDrops& drops) noexcept {
    if (got.length < kEthernetOctets) {
        ++drops.damaged;
        return false;
    }
    Mac to;
    std::memcpy(&to, got.frame, sizeof to);
    const bool to_group = (to.octets[0] & 1U) != 0;
    if (!to_group && to != own) {
        ++drops.other_station;
        return false;
    }
    if (got.for_other_host && (to_group || has_own)) {
        ++drops.vlan;
        return false;
    }
    if (got.truncated || got.length > frame_max) {
        ++drops.too_long;
        return false;
    }
    return true;
}

}  // namespace ulc::packet
