// SPDX-License-Identifier: BSD-3-Clause
// The ranks of this node with which an endpoint exchanges announced messages (pull_wire.h).
#pragma once

#include <sys/random.h>

#include <cstdint>
#include <unordered_map>

#include "ofi/pull/peer_process.h"
#include "ofi/pull/pull_wire.h"

namespace ulc::ofi {

struct PullPeer {
    // As the receiver of our announcements:
    bool never = false;   ///< it cannot read this process
    bool proven = false;  ///< `theirs` is the token that it made for us
    PullToken theirs{};
    // As the sender of announcements:
    bool refused = false;  ///< this process cannot read it
    bool issued = false;   ///< `ours` has the token that we made for it
    PullSeal ours{};       ///< stands in its descriptors
    PeerProcess process;   ///< if issued
};

/// Returns the seal of a descriptor that `writer` has for `reader`.
[[nodiscard]] inline PullSeal seal_of(const PullToken& token, const ulc_near_process& writer,
                                      const ulc_near_process& reader) noexcept {
    return {token, {writer.start_ticks, writer.pid}, {reader.start_ticks, reader.pid}};
}

class PullPeers {
public:
    /// Returns the record of a rank. May throw std::bad_alloc.
    [[nodiscard]] PullPeer& of(std::uint16_t rank) { return peers_[rank]; }
    /// Returns the record of a rank; nullptr: there is none yet.
    [[nodiscard]] const PullPeer* find(std::uint16_t rank) const noexcept {
        const auto known = peers_.find(rank);
        return known == peers_.end() ? nullptr : &known->second;
    }
    /// Makes a token for a sender, whose process is `other`. Returns false if that process cannot
    /// be read, or if there is no randomness.
    [[nodiscard]] static bool issue(PullPeer& peer, const ulc_near_process& self,
                                    const ulc_near_process& other) noexcept {
        PullToken token{};
        if (::getrandom(token.data(), token.size(), GRND_NONBLOCK) !=
                static_cast<ssize_t>(token.size()) ||
            !peer.process.open(other))
            return false;
        peer.ours = seal_of(token, other, self);
        peer.issued = true;
        return true;
    }

private:
    std::unordered_map<std::uint16_t, PullPeer> peers_;
};

}  // namespace ulc::ofi
