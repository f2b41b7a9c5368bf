// What a profile makes of a wire: streams of bulk on a simulated switch, and the share of the wire that arrives as payload.
//
//   unicast:    ranks 1 … n send to rank 0, all at once (n = 1: one stream; n > 1: incast, GAMMA's and TCP's old enemy)
//   multicast:  rank 0 sends to all
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/units.h"

namespace ulc::sim {

struct GoodputCase {
    std::string profile = "urtp";
    std::uint16_t senders = 1;    ///< unicast
    std::uint16_t receivers = 0;  ///< not 0: multicast by rank 0 instead
    bool all_multicast =
        false;  ///< rank 0 listens; the senders multicast to all, each to the others too
    std::uint64_t bits_per_second = 1'000'000'000;
    Nanos latency = 2 * kMicrosecond;  ///< of the switch
    std::uint64_t buffer_octets = 0;   ///< of each of its outputs; 0: as many as it takes
    double loss = 0;                   ///< of each frame at each receiver, at random
    std::size_t message_octets = 8192;
    Nanos warm_up = 20 * kMillisecond;
    Nanos span = 60 * kMillisecond;
    std::uint64_t seed = 1;
};

struct GoodputResult {
    bool formed = false;
    double share =
        0;  ///< payload that the slowest receiver took ÷ what the wire could have carried
    double jain = 1;            ///< (Σx)² ÷ n·Σx² over the senders' payloads
    double control = 0;         ///< ACK, REQ and PROBE frames of all, for each packet first sent
    double repeated = 0;        ///< repairs for each packet first sent
    std::uint64_t dropped = 0;  ///< by full buffers
    std::uint32_t leaked = 0;
};

/// Payload share of a full frame at MTU 1500: 1486 of 1538 octets of wire time.
inline constexpr double kPayloadShare = 1486.0 / 1538.0;

/// Same case, same result.
[[nodiscard]] GoodputResult measure_goodput(const GoodputCase& c);

/// Mean transmissions of a multicast until each of n receivers has it, each losing it with probability p: the sum over k ≥ 0 of
/// 1 − (1 − pᵏ)ⁿ.
[[nodiscard]] double multicast_transmissions(double p, unsigned n);

}  // namespace ulc::sim
