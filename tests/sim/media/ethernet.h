// SPDX-License-Identifier: BSD-3-Clause
// The parts of IEEE 802.3 that both media share: the bytes that a frame costs on the wire, and the
// ports to which a destination address refers.
//
//   |preamble 8|destination … payload, padded to 60|FCS 4|gap 12|
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "medium.h"
#include "wire/header.h"
#include "wire/ids.h"

namespace ulc::sim {

inline constexpr std::uint64_t kPreambleOctets = 8;  ///< with the start frame delimiter
inline constexpr std::uint64_t kFcsOctets = 4;
inline constexpr std::uint64_t kGapOctets = 12;
inline constexpr std::size_t kMacHeaderOctets = 14;

/// Returns the bytes of a frame as a switch stores it: padded, with FCS.
[[nodiscard]] constexpr std::uint64_t stored_octets(std::uint64_t frame_octets) noexcept {
    return std::max<std::uint64_t>(frame_octets, wire::kFrameOctetsMin) + kFcsOctets;
}
/// Returns the bytes from the first of the preamble to the last of the FCS.
[[nodiscard]] constexpr std::uint64_t wire_octets(std::uint64_t frame_octets) noexcept {
    return kPreambleOctets + stored_octets(frame_octets);
}

/// The ports behind the addresses. Fixed at construction: a simulated switch need not learn.
class PortAddresses {
public:
    /// `each`: addresses of a port, consecutive in `macs`.
    explicit PortAddresses(const std::vector<Mac>& macs, std::uint16_t each = 1)
        : macs_(macs), each_(each) {
        for (std::size_t n = 0; n < macs.size(); ++n)
            ports_.emplace(key_of(macs[n]), static_cast<std::uint16_t>(n / each));
        ULC_CHECK(ports_.size() == macs.size() && macs.size() % each == 0);
    }
    [[nodiscard]] std::uint16_t count() const noexcept {
        return static_cast<std::uint16_t>(macs_.size() / each_);
    }
    [[nodiscard]] static bool is_group(const FramePtr& frame) noexcept {
        return (std::to_integer<unsigned>(frame->front()) & 1U) != 0;
    }
    [[nodiscard]] bool is_for(std::uint16_t port, const FramePtr& frame) const noexcept {
        return is_group(frame) || port_of(frame) == port;
    }
    /// Returns the port of a frame that is not to a group; nothing if no port has the address.
    [[nodiscard]] std::optional<std::uint16_t> port_of(const FramePtr& frame) const {
        const auto found = ports_.find(destination_key(frame));
        return found == ports_.end() ? std::nullopt : std::optional(found->second);
    }

    /// Return the addresses of a frame as numbers, for a switch that learns.
    [[nodiscard]] static std::uint64_t destination_key(const FramePtr& frame) noexcept {
        return key_of(address_at(frame, 0));
    }
    [[nodiscard]] static std::uint64_t source_key(const FramePtr& frame) noexcept {
        return key_of(address_at(frame, sizeof(Mac)));
    }

private:
    static Mac address_at(const FramePtr& frame, std::size_t offset) noexcept {
        Mac mac;
        std::memcpy(&mac, frame->data() + offset, sizeof mac);
        return mac;
    }
    static std::uint64_t key_of(const Mac& mac) noexcept {
        std::uint64_t key = 0;
        std::memcpy(&key, &mac, sizeof mac);
        return key;
    }
    std::vector<Mac> macs_;
    std::uint16_t each_;
    std::unordered_map<std::uint64_t, std::uint16_t> ports_;
};

}  // namespace ulc::sim
