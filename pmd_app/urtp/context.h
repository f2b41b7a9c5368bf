// SPDX-License-Identifier: BSD-3-Clause
// The parts of a transport share this: the configuration, which is constant after construction, and
// the services that every part calls.
#pragma once

#include <algorithm>

#include "base/counters.h"
#include "base/prng.h"
#include "urtp/arrivals.h"
#include "urtp/departures.h"
#include "urtp/policy.h"
#include "urtp/timers.h"
#include "urtp/types.h"

namespace ulc::urtp {

inline constexpr std::uint8_t kPatienceMax = 6;  ///< the most that Params::ack_delay doubles
/// AckEntry::delay_us that gives no sample of the round trip.
inline constexpr std::uint16_t kDelayUnknown = 0xffff;
inline constexpr std::uint8_t kReplyPatienceMax = 2;  ///< the same of a wait for an answer

struct Context {
    /// Takes the configuration. of.profile: one that resolve() takes. counters: outlive this.
    Context(const TransportConfig& of, const SegmentPool& segments, Counters& counted);
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    void fields(state::Archive& archive);  ///< urtp/state/
    [[nodiscard]] const Params& params() const noexcept { return config.params; }
    void count(Counter id, std::uint64_t n = 1) noexcept { counters.add(id, n); }
    /// Counts a repair or a request with a peer, and with all. peer: that of its session; nullptr:
    /// of no peer alone.
    void count_repair(RepairCounts* peer, std::uint32_t RepairCounts::*what) noexcept {
        if (peer != nullptr) ++(peer->*what);
        ++(counts.*what);
    }
    [[nodiscard]] Nanos random_below(Nanos bound) noexcept {
        return static_cast<Nanos>(prng.below(static_cast<std::uint64_t>(bound)));
    }
    /// Returns a segment for one control frame; nullptr: there is none, which is counted.
    [[nodiscard]] Segment* control_frame() noexcept {
        Segment* segment = pool.get();
        if (segment == nullptr) count(Counter::no_segment);
        return segment;
    }
    /// Returns how long an acknowledgement waits for company after `patience` that found none. A
    /// sender expects its receiver to wait as long.
    [[nodiscard]] Nanos ack_delay(std::uint8_t patience) const noexcept {
        const Params& p = params();
        if (p.ack_delay == kNever) return kNever;
        return std::min(p.ack_delay << patience, std::max(p.ack_delay, p.ack_delay_max));
    }

    TransportConfig config;       ///< params as the profile tunes them
    const std::uint64_t profile;  ///< digest of its words
    Policy policy;
    const Departures* departures;
    const Arrivals* arrivals;  ///< nullptr: frames are taken when they come
    const SegmentPool pool;
    Counters& counters;
    Prng prng;
    Timers timers;
    HoldRules hold;       ///< members that hold up a group
    RepairCounts counts;  ///< with all peers, those that are gone included
};

}  // namespace ulc::urtp
