// SPDX-License-Identifier: BSD-3-Clause
// The way of messages to a group whose job an endpoint of this process is in: the own group, or
// that of a guest session (sessions.h).
#pragma once

#include <ulc.h>

#include <array>
#include <bitset>
#include <cstdint>

#include "ports/sent_ports.h"

namespace ulc::ports {

struct Way {
    ulc_endpoint* ep = nullptr;
    std::uint16_t first_rank = 0;                   ///< rank of instance 0
    ulc_group all = 0;                              ///< group of a broadcast; 0: the whole job
    std::bitset<GAMMA_PORTS>* failed = nullptr;     ///< ports whose sends have failed
    std::array<std::uint64_t, GAMMA_PORTS> sent{};  ///< messages by node, or BROADCAST
    SentTo sent_to;                                 ///< unicasts, by node
    PortNumber through = 0;                         ///< port of the last
    unsigned senders = 0;                           ///< sends under way; it stays until they end

    /// An error handler of the endpoint, whose context is the Way.
    static void on_fault(void* context, int error, std::uint16_t source, std::uint64_t count) {
        auto& self = *static_cast<Way*>(context);
        if (error == ULC_ERR_PORT_DOWN) self.failed->set(self.through);
        const bool is_gone = error == ULC_ERR_PEER_DIED || error == ULC_ERR_PEER_LEFT;
        if (!is_gone || source < self.first_rank) return;
        const auto node = static_cast<std::uint8_t>(source - self.first_rank);
        self.sent_to.take_last(node, count, *self.failed);
    }
};

/// Numbers of the next messages of a sender. Order is kept, so another number shows a gap.
struct Expected {
    std::uint64_t to_me = 0;
    std::uint64_t to_all = 0;

    /// True if messages of the sender before this one are missing.
    [[nodiscard]] bool shows_gap(const ulc_status& status) noexcept {
        std::uint64_t& next = status.group != 0 ? to_all : to_me;
        const std::uint64_t number = status.tag >> kPortBits;
        const bool gap = number != next;
        next = number + 1;
        return gap;
    }
};

}  // namespace ulc::ports
