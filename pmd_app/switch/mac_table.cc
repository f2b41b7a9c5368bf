// SPDX-License-Identifier: BSD-3-Clause
#include "switch/mac_table.h"

#include <algorithm>
#include <bit>

#include "base/fnv.h"

namespace ulc::ether_switch {

MacTable::MacTable(std::size_t capacity, Nanos age)
    : entries_(std::bit_ceil(std::max(capacity, kProbeWindow))),
      mask_(entries_.size() - 1),
      age_(age) {}

std::size_t MacTable::slot_of(const Mac& station) const noexcept {
    std::uint64_t hash = kFnvBasis;
    for (const std::uint8_t octet : station.octets)
        hash = fnv1a(hash, octet);
    return static_cast<std::size_t>(hash ^ (hash >> 32)) & mask_;
}

void MacTable::learn(const Mac& station, std::uint16_t port, Nanos now) noexcept {
    if (is_group_address(station)) return;
    const std::size_t slot = slot_of(station);
    // The whole window is searched before a free place is taken, otherwise a station could be there
    // twice.
    Entry* place = nullptr;
    for (std::size_t i = 0; i < kProbeWindow; ++i) {
        Entry& entry = entries_[(slot + i) & mask_];
        if (entry.port != kNoPort && entry.station == station) {
            place = &entry;
            break;
        }
        const bool better =
            place == nullptr ||
            (alive(*place, now) && (!alive(entry, now) || entry.heard < place->heard));
        if (better) place = &entry;
    }
    *place = {.station = station, .port = port, .heard = now};
}

std::uint16_t MacTable::find(const Mac& station, Nanos now) const noexcept {
    const std::size_t slot = slot_of(station);
    for (std::size_t i = 0; i < kProbeWindow; ++i) {
        const Entry& entry = entries_[(slot + i) & mask_];
        if (entry.station == station && alive(entry, now)) return entry.port;
    }
    return kNoPort;
}

void MacTable::forget_port(std::uint16_t port) noexcept {
    for (Entry& entry : entries_) {
        if (entry.port == port) entry.port = kNoPort;
    }
}

std::size_t MacTable::size(Nanos now) const noexcept {
    return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(),
                                                  [&](const Entry& e) { return alive(e, now); }));
}

}  // namespace ulc::ether_switch
