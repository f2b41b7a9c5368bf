// SPDX-License-Identifier: BSD-3-Clause
// The configuration of an engine: limits, parameters, and how to wake a sleeping client.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/counters.h"
#include "base/units.h"
#include "engine/accounts.h"
#include "jobs/jobs.h"
#include "seal/tokens.h"
#include "urtp/params.h"
#include "wire/header.h"

namespace ulc::engine {

/// Names an endpoint of one incarnation of an engine; the handle under which it receives.
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
    std::string profile{urtp::kDefaultProfile};  ///< profile of jobs that name none
    /// The engine fills mac, mtu, ether_type, crc, incarnation, seed and group_in_use.
    jobs::JobsConfig jobs;
    std::uint16_t ether_type = wire::kEtherTypeDefault;
    /// Puts a CRC32C in every frame, and drops frames without: for wires without a frame check
    /// sequence. The same for all engines of a wire.
    bool crc = false;
    seal::Seed seed = 1;  ///< for handles, incarnation, tokens; a daemon has one of the kernel

    std::uint16_t endpoints_max = 64;  ///< ≤ 4096
    std::uint32_t groups_max = 1024;   ///< groups of each net, over all endpoints
    std::uint32_t pending_sends =
        128;  ///< records of one endpoint that wait for the transport; power of two
    std::uint32_t offloads_max = 8;  ///< schedules of one endpoint that the engine runs at once
    std::uint32_t offload_steps_max = 512;  ///< steps of one schedule
    std::uint32_t records_per_round = 64;   ///< taken from one endpoint
    std::uint32_t packets_per_round = 64;   ///< delivered to one endpoint
    std::uint32_t frames_per_round = 128;   ///< sent by all endpoints, on all nets
    /// Endpoints whose submissions a round checks when nothing else is due (round.cc). With more
    /// endpoints, a record waits some rounds to be seen.
    std::uint32_t looks_per_round = 8;
    /// Consecutive rounds without movement before rounds only poll: an answer may be in flight.
    std::uint32_t quiet_after = 4;
    AccountLimits accounts;
    Nanos linger_max =
        10 * kSecond;  ///< maximum time that an endpoint whose client left waits for its data
    Nanos linger_died = kSecond / 2;    ///< the same, if it died: its peers wait for the news
    Nanos join_timeout = 60 * kSecond;  ///< if the client names none
    std::uint16_t links_max = 1024;     ///< maximum for one endpoint
    Nanos link_timeout = 5 * kSecond;   ///< limit of a call, if the client names none

    WakeFn wake = nullptr;
    void* wake_context = nullptr;
    /// Tells the operator, in one sentence, of a change that needs attention. Must not block.
    void (*report)(void* context, const char* sentence) = nullptr;
    void* report_context = nullptr;
    Counters* counters = nullptr;  ///< the shared page; nullptr: the engine's own
};

}  // namespace ulc::engine
