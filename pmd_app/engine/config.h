// What an engine is told at its start: limits, parameters, and how to wake a sleeping client.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/counters.h"
#include "base/units.h"
#include "engine/accounts.h"
#include "jobs/jobs.h"
#include "urtp/params.h"
#include "wire/header.h"

namespace ulc::engine {

/// Names an endpoint of one engine life; the handle under which it receives.
using EndpointId = Handle;

inline constexpr std::size_t kNetsMax = 16;  ///< ports of one engine

/// Wakes the sleeper on this futex word, which was incremented before the call. Must not block.
using WakeFn = void (*)(void* context, EndpointId endpoint, std::atomic<std::uint32_t>* word);

/// Makes an upcall: interrupts a client that computes. Must not block.
struct Interrupt {
    void (*call)(void* context) = nullptr;  ///< nullptr: none can be made
    void* context = nullptr;
};

struct EngineConfig {
    urtp::Params params;
    std::string profile{urtp::kDefaultProfile};  ///< of jobs that name none
    /// mac, mtu, ether_type, crc, incarnation, seed and group_in_use are the engine's to fill.
    JobsConfig jobs;
    std::uint16_t ether_type = wire::kEtherTypeDefault;
    /// CRC32C in every frame, and frames without are dropped: for wires without a frame check sequence. All engines of a wire alike.
    bool crc = false;
    std::uint64_t seed =
        1;  ///< of handles, incarnation, handshakes; the daemon gives true randomness

    std::uint16_t endpoints_max = 64;  ///< ≤ 4096
    std::uint32_t groups_max = 1024;   ///< of each net, over all endpoints
    std::uint32_t pending_sends =
        128;  ///< records of one endpoint that wait for the transport; power of two
    std::uint32_t offloads_max =
        8;  ///< schedules of one endpoint that the engine carries out at once
    std::uint32_t offload_steps_max = 512;  ///< of one schedule
    std::uint32_t records_per_round = 64;   ///< taken from one endpoint
    std::uint32_t packets_per_round = 64;   ///< delivered to one endpoint
    std::uint32_t frames_per_round = 128;   ///< sent by all endpoints, on all nets
    /// Endpoints whose submissions a round looks at when nothing else is due (round.cc). With more
    /// endpoints, a record waits some rounds to be seen.
    std::uint32_t looks_per_round = 8;
    /// Rounds without movement, in a row, before rounds only look: an answer may be on its way.
    std::uint32_t quiet_after = 4;
    AccountLimits accounts;
    Nanos linger_max =
        10 * kSecond;  ///< an endpoint whose client left waits at most so long for its data
    Nanos join_timeout = 60 * kSecond;  ///< when the client names none
    std::uint16_t links_max = 1024;     ///< greatest number for one endpoint
    Nanos link_timeout = 5 * kSecond;   ///< limit of a call, when the client names none

    WakeFn wake = nullptr;
    void* wake_context = nullptr;
    Counters* counters = nullptr;  ///< the shared page; nullptr: the engine's own
};

}  // namespace ulc::engine
