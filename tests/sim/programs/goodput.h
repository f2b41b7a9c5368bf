// SPDX-License-Identifier: BSD-3-Clause
// Measures a profile's use of a wire: streams of bulk on a simulated switch, and the share of the
// wire that arrives as payload.
//
//   unicast:    ranks 1 … n send to rank 0, all at once (n = 1: one stream; n > 1: incast)
//   multicast:  rank 0 sends to all
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/units.h"
#include "tests/sim/host/shared_processor.h"

namespace ulc::sim {

struct GoodputCase {
    std::string profile = "urtp";
    std::uint16_t senders = 1;    ///< unicast
    std::uint16_t receivers = 0;  ///< not 0: multicast by rank 0 instead
    bool all_multicast =
        false;  ///< rank 0 listens; the senders multicast to all, including each other
    std::uint16_t links = 1;  ///< each node's; results are shares of one link
    std::uint64_t bits_per_second = 1'000'000'000;
    std::vector<std::uint64_t> link_rates;              ///< by link; empty: all as above
    std::uint64_t stated_bits_per_second = UINT64_MAX;  ///< as in ClusterConfig
    bool learns = false;                                ///< the switch, as in NetConfig
    Nanos gather = 0;                                   ///< as in HostCosts
    Sharing sharing;                                    ///< processors of the nodes and the switch
    std::uint64_t host_bits_per_second = 0;             ///< as in NetConfig
    Nanos latency = 2 * kMicrosecond;                   ///< latency of the switch
    std::uint64_t buffer_octets = 0;  ///< buffer of each of its outputs; 0: unlimited
    double loss = 0;                  ///< random loss of each frame at each receiver
    std::size_t message_octets = 8192;
    Nanos warm_up = 20 * kMillisecond;
    Nanos span = 60 * kMillisecond;
    std::uint64_t seed = 1;
};

struct GoodputResult {
    bool formed = false;
    double share = 0;           ///< payload that the slowest receiver took ÷ capacity of the wire
    double jain = 1;            ///< (Σx)² ÷ n·Σx² over the senders' payloads
    double control = 0;         ///< ACK, REQ and PROBE frames of all, for each packet first sent
    double repeated = 0;        ///< retransmissions for each packet first sent
    std::uint64_t dropped = 0;  ///< by full buffers
    std::uint64_t flooded = 0;  ///< frames to one address that went to all, by a switch that learns
    std::uint32_t leaked = 0;
};

/// Payload share of a full frame at MTU 1500: 1486 of 1538 bytes of wire time.
inline constexpr double kPayloadShare = 1486.0 / 1538.0;

/// Deterministic: the same case gives the same result.
[[nodiscard]] GoodputResult measure_goodput(const GoodputCase& c);

/// Returns the mean transmissions of a multicast until each of n receivers has it, if each loses it
/// with probability p: the sum over k ≥ 0 of 1 − (1 − pᵏ)ⁿ.
[[nodiscard]] double multicast_transmissions(double p, unsigned n);

}  // namespace ulc::sim
