// SPDX-License-Identifier: BSD-3-Clause
// The port on which each station was last heard. Learning, ageing, bounded: a fixed table with
// linear probing over a short window; a full window drops its oldest entry. Pure: time is an
// argument.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "wire/ids.h"

namespace ulc::ether_switch {

inline constexpr std::uint16_t kNoPort = 0xffff;

class MacTable {
public:
    /// `capacity`: rounded up to a power of two, at least the probe window. `age`: an entry that is
    /// not refreshed for this time is forgotten.
    MacTable(std::size_t capacity, Nanos age);

    /// Notes that `station` was heard on `port`. Group addresses are never learnt.
    void learn(const Mac& station, std::uint16_t port, Nanos now) noexcept;
    /// Returns the port, or kNoPort if it is unknown or aged out.
    [[nodiscard]] std::uint16_t find(const Mac& station, Nanos now) const noexcept;
    /// Forgets all stations of a port (its link went down).
    void forget_port(std::uint16_t port) noexcept;
    /// Returns the number of entries that have not aged out.
    [[nodiscard]] std::size_t size(Nanos now) const noexcept;

private:
    struct Entry {
        Mac station;
        std::uint16_t port = kNoPort;
        Nanos heard = 0;
    };
    static constexpr std::size_t kProbeWindow = 8;
    [[nodiscard]] std::size_t slot_of(const Mac& station) const noexcept;
    [[nodiscard]] bool alive(const Entry& entry, Nanos now) const noexcept {
        return entry.port != kNoPort && now - entry.heard < age_;
    }

    std::vector<Entry> entries_;
    std::size_t mask_;
    Nanos age_;
};

/// Returns true for multicast or broadcast.
[[nodiscard]] constexpr bool is_group_address(const Mac& mac) noexcept {
    return (mac.octets[0] & 1) != 0;
}

/// Returns true for 01:80:C2:00:00:0x, which a bridge never forwards (IEEE 802.1D, 7.12.6).
[[nodiscard]] constexpr bool is_link_local(const Mac& mac) noexcept {
    const auto& o = mac.octets;
    return o[0] == 0x01 && o[1] == 0x80 && o[2] == 0xc2 && o[3] == 0 && o[4] == 0 &&
           (o[5] & 0xf0) == 0;
}

}  // namespace ulc::ether_switch
