// SPDX-License-Identifier: BSD-3-Clause
// What transport_fuzz.cc keeps of each transport, of frames on the wire, and of open messages.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heap_pool.h"
#include "input.h"
#include "urtp/policy.h"
#include "urtp/transport.h"

namespace ulc::fuzz {

using namespace ulc::urtp;

inline constexpr std::uint16_t kMtu = wire::kMtuMin;
inline constexpr std::uint32_t kFrameOctets = 14 + kMtu;
inline constexpr std::size_t kFlightsMax = 64;
inline constexpr std::size_t kOldMax = 32;
inline constexpr unsigned kNodesMax = 4;
inline constexpr std::uint32_t kPayloadMax = 200;
inline constexpr std::uint32_t kForControl = 4;  ///< segments that data leave, as the engine's do

inline Mac mac_of(Rank rank) { return Mac{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(rank)}}; }
inline Handle handle_of(Rank rank) { return 0x1000U + rank; }

using Octets = std::vector<std::byte>;

struct Flight {
    Rank to;
    Octets frame;
};

/// A message of several packets whose last one is not committed yet.
struct Open {
    unsigned packets_left = 0;
    PacketMeta meta;
    std::uint32_t payload = 0;
};

struct Node {
    explicit Node(std::uint32_t limit) : sending(kFrameOctets, limit) {}

    HeapPool sending;
    HeapPool receiving{kFrameOctets, UINT32_MAX};
    Counters counters;
    std::unique_ptr<Transport> transport;
    std::optional<RxPrediction> next;  ///< holds while nothing but the fast path is called
    std::map<StreamId, Open> open;
    std::array<std::deque<std::uint32_t>, kNodesMax> expected;  ///< by source
};

/// "gbn", or "gbn+eager" if both words go together.
inline std::string profile_of(Input& in) {
    const auto words = policies();
    std::string profile(words[in.below(static_cast<unsigned>(words.size()))]->word);
    const unsigned second = in.octet();
    if (second % 2 == 0) return profile;
    std::string both = profile + "+" + std::string(words[second / 2 % words.size()]->word);
    Policy policy;
    Params params;
    return resolve(both, policy, params) == Err::kOk ? both : profile;
}

}  // namespace ulc::fuzz
