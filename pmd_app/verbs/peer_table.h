// SPDX-License-Identifier: BSD-3-Clause
// Nodes that were heard, by MAC: their GID, queue pair and address handle. Bounded: sets of eight,
// in which the one that was heard longest ago gives way. A node that is forgotten is reached by
// the broadcast group until it is heard again. Engine thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "verbs/address.h"

struct ibv_ah;

namespace ulc::verbs {

struct Peer {
    Mac mac;
    std::uint8_t service_level = 0;
    bool known = false;
    std::uint16_t lid = 0;  ///< InfiniBand only
    std::uint32_t heard = 0;
    Address address;
    ibv_ah* handle = nullptr;      ///< nullptr: not made yet
    std::uint64_t last_frame = 0;  ///< the number of the last frame that was posted with it
    std::uint32_t retry_at = 0;    ///< no handle is made before this look at the port
};

class PeerTable {
public:
    static constexpr std::uint32_t kSets = 512;
    static constexpr std::uint32_t kWays = 8;
    static constexpr std::uint32_t kPeersMax = kSets * kWays;

    PeerTable() : peers_(kPeersMax) {}

    /// nullptr: not heard of.
    [[nodiscard]] Peer* find(const Mac& mac) noexcept;
    /// Returns the place for a node that find() does not know: a free one, or that of the node of
    /// its set that was heard longest ago. `completed`: frames below this number have left, so
    /// their handles are free. nullptr: every handle of the set is in use.
    [[nodiscard]] Peer* place(const Mac& mac, std::uint64_t completed) noexcept;
    void note(Peer& peer) noexcept { peer.heard = ++turn_; }

    template <typename Action>
    void for_each(Action action) {
        for (Peer& peer : peers_)
            if (peer.known) action(peer);
    }

private:
    [[nodiscard]] Peer* set_of(const Mac& mac) noexcept;

    std::vector<Peer> peers_;
    std::uint32_t turn_ = 0;
};

}  // namespace ulc::verbs
