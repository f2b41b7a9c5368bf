// SPDX-License-Identifier: BSD-3-Clause
// A stream of numbered messages between clients of a simulated cluster, whose receivers judge order
// and count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {

/// Keeps a stream of numbered messages going, and judges their order where they arrive.
class Numbered {
public:
    Numbered(SimCluster& cluster, std::size_t from, std::uint32_t stream,
             std::vector<std::size_t> to, std::size_t octets)
        : cluster_(cluster), from_(from), stream_(stream), to_(std::move(to)), octets_(octets) {
        next_.resize(to_.size());
        longest_gap.resize(to_.size());
        came_.resize(to_.size(), cluster.now());
    }
    void tick() {
        RingClient& sender = cluster_.client(from_);
        sender.poll();
        std::vector<std::byte> payload(octets_, std::byte{0x11});
        for (; sent < wanted; ++sent) {
            std::memcpy(payload.data(), &sent, sizeof sent);
            if (!sender.send(stream_, 1, payload)) break;
        }
        for (std::size_t n = 0; n < to_.size(); ++n) {
            RingClient& receiver = cluster_.client(to_[n]);
            receiver.poll();
            for (const Message& message : receiver.messages) {
                std::uint64_t number = 0;
                std::memcpy(&number, message.payload.data(), sizeof number);
                ++received;
                if (number != next_[n]++) ++out_of_order;
                if (message.payload.size() != octets_) ++out_of_order;
                longest_gap[n] = std::max(longest_gap[n], cluster_.now() - came_[n]);
                came_[n] = cluster_.now();
            }
            receiver.messages.clear();
        }
    }
    [[nodiscard]] bool done() const {
        return std::ranges::all_of(next_, [this](std::uint64_t n) { return n == wanted; });
    }
    bool run(Nanos limit) {
        for (const Nanos end = cluster_.now() + limit; !done();) {
            if (cluster_.now() >= end) return false;
            tick();
            for (std::uint16_t node = 0; node < cluster_.nodes(); ++node)
                cluster_.touch(node);
            (void)cluster_.run(kStep, [] { return false; });
        }
        return true;
    }
    static constexpr Nanos kStep = 50 * kMicrosecond;
    std::uint64_t wanted = 600;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;  ///< by all receivers
    unsigned out_of_order = 0;
    std::vector<Nanos> longest_gap;  ///< between two messages, by receiver

private:
    SimCluster& cluster_;
    std::size_t from_;
    std::uint32_t stream_;
    std::vector<std::size_t> to_;
    std::size_t octets_;
    std::vector<std::uint64_t> next_;
    std::vector<Nanos> came_;
};

}  // namespace ulc::sim
