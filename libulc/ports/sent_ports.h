// SPDX-License-Identifier: BSD-3-Clause
// The ports through which messages were sent lately, so that sends that failed can be raised at
// theirs. Pure. Used by Process.
//
//   messages to one node:  … | 7 | 3 | 3 | 9 |   libulc: "the last 2 were not acknowledged"
//                                    └───┴──── ports 3 and 9
//
// A node acknowledges in order, so those that failed are the last ones. Reports come in parts: what
// one has named is not there for the next.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <new>

#include "ports/port_table.h"

namespace ulc::ports {

/// The ports of the last messages to one node.
class SentPorts {
public:
    /// More than the messages that an engine keeps for one node, and those that wait for it. More
    /// failures than that are raised at the ports of the last ones alone.
    static constexpr std::uint64_t kKept = 4096;

    void add(PortNumber port) noexcept {
        ports_[end_ % kKept] = port;
        kept_ = std::min(kept_ + 1, kKept);
        ++end_;
    }
    /// Returns the number of the last message that was added.
    [[nodiscard]] std::uint64_t last() const noexcept { return end_ - 1; }

    /// Forgets the port of a message whose failure its sender has seen. False: it was taken.
    [[nodiscard]] bool forget(std::uint64_t number) noexcept {
        if (number >= end_) return false;
        if (end_ - number <= kept_) ports_[number % kKept] = kForgotten;
        return true;
    }

    /// Takes the last `messages` out, and adds their ports to `out`.
    void take_last(std::uint64_t messages, std::bitset<GAMMA_PORTS>& out) noexcept {
        const std::uint64_t taken = std::min(messages, kept_);
        for (std::uint64_t n = 0; n < taken; ++n) {
            const std::uint16_t port = ports_[--end_ % kKept];
            if (port != kForgotten) out.set(port);
        }
        kept_ -= taken;
    }

private:
    static constexpr std::uint16_t kForgotten = GAMMA_PORTS;

    std::array<std::uint16_t, kKept> ports_{};
    std::uint64_t end_ = 0;   ///< number of the next message
    std::uint64_t kept_ = 0;  ///< messages before it whose ports are known
};

/// One for each node to which something was sent.
class SentTo {
public:
    /// Returns the log of a node; nullptr: no memory, or BROADCAST, which has none.
    [[nodiscard]] SentPorts* log_of(std::uint8_t node) noexcept {
        if (node == BROADCAST) return nullptr;
        std::unique_ptr<SentPorts>& log = logs_[node];
        if (log == nullptr) log.reset(new (std::nothrow) SentPorts);
        return log.get();
    }
    /// Takes the last messages to a node out, if any were sent there.
    void take_last(std::uint8_t node, std::uint64_t messages,
                   std::bitset<GAMMA_PORTS>& out) noexcept {
        if (logs_[node] != nullptr) logs_[node]->take_last(messages, out);
    }
    void clear() noexcept {
        for (auto& log : logs_)
            log.reset();
    }

private:
    std::array<std::unique_ptr<SentPorts>, GAMMA_PORTS> logs_;
};

}  // namespace ulc::ports
