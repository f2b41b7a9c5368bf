// SPDX-License-Identifier: BSD-3-Clause
// The ranks of this node with which an endpoint exchanges announced messages (pull_wire.h).
#pragma once

#include <sys/random.h>
#include <sys/types.h>

#include <cstdint>
#include <unordered_map>

#include "ofi/pull/pull_wire.h"

namespace ulc::ofi {

struct PullPeer {
    // As the receiver of our announcements:
    bool never = false;   ///< it cannot read this process
    bool proven = false;  ///< `theirs` is the token that it made for us
    PullToken theirs{};
    // As the sender of announcements:
    bool refused = false;  ///< this process cannot read it
    bool issued = false;   ///< `ours` is the token that we made for it
    PullToken ours{};
    pid_t pid = 0;
};

class PullPeers {
public:
    /// Returns the record of a rank. May throw std::bad_alloc.
    [[nodiscard]] PullPeer& of(std::uint16_t rank) { return peers_[rank]; }
    /// Returns the record of a rank; nullptr: there is none yet.
    [[nodiscard]] const PullPeer* find(std::uint16_t rank) const noexcept {
        const auto known = peers_.find(rank);
        return known == peers_.end() ? nullptr : &known->second;
    }
    /// Makes a token for a sender whose process has this number. Without randomness or with an
    /// impossible number there is none.
    static void issue(PullPeer& peer, std::uint32_t pid) noexcept {
        constexpr std::uint32_t kPidMax = 1U << 22;
        if (pid == 0 || pid > kPidMax) return;
        const ssize_t got = ::getrandom(peer.ours.data(), peer.ours.size(), GRND_NONBLOCK);
        peer.issued = got == static_cast<ssize_t>(peer.ours.size());
        peer.pid = static_cast<pid_t>(pid);
    }

private:
    std::unordered_map<std::uint16_t, PullPeer> peers_;
};

}  // namespace ulc::ofi
