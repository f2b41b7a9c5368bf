// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/peer_table.h"

#include "base/fnv.h"

namespace ulc::verbs {

Peer* PeerTable::set_of(const Mac& mac) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, mac.octets.data(), mac.octets.size());
    const std::uint64_t hash = fnv1a(kFnvBasis, word);
    return &peers_[(hash >> 40) % kSets * kWays];
}

Peer* PeerTable::find(const Mac& mac) noexcept {
    Peer* set = set_of(mac);
    for (std::uint32_t n = 0; n < kWays; ++n)
        if (set[n].known && set[n].mac == mac) return &set[n];
    return nullptr;
}

Peer* PeerTable::place(const Mac& mac, std::uint64_t completed) noexcept {
    Peer* set = set_of(mac);
    Peer* oldest = nullptr;
    for (std::uint32_t n = 0; n < kWays; ++n) {
        Peer& each = set[n];
        if (!each.known) return &each;
        if (each.handle != nullptr && each.last_frame >= completed) continue;
        if (oldest == nullptr || turn_ - each.heard > turn_ - oldest->heard) oldest = &each;
    }
    return oldest;
}

}  // namespace ulc::verbs
