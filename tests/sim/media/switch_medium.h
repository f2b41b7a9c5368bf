// SPDX-License-Identifier: BSD-3-Clause
// A switch with a full-duplex cable to each port, as IEEE 802.1D forwards and 802.3 times it.
//
//   host ▶ transmitter at the port's rate ▶ cable ▶ switch: latency
//       ─┬▶ output buffer ▶ output at its rate ▶ cable ▶ host
//        └▶ (to a group: every port except the source)
//
// Store-and-forward begins to send when it has the last bit; cut-through when it has the header and
// the output is no faster than the input (else it would run dry). A frame occupies its output's
// buffer from the time at which it may be sent until its last bit has left. A frame that finds no
// space there, or in the memory that all outputs share, is dropped and counted (tail drop). Two
// ports, cut-through after 0 bytes and no latency are a cable between two hosts.
//
// Transmission times are kept in picoseconds, so that a port's rate is exact at 100 Gb/s too;
// events happen at the next whole nanosecond.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ethernet.h"
#include "event_queue.h"
#include "faults.h"
#include "medium.h"
#include "tests/sim/host/shared_processor.h"
#include "wire/ids.h"

namespace ulc::sim {

enum class Forwarding : std::uint8_t { kStoreAndForward, kCutThrough };

struct SwitchConfig {
    static constexpr std::uint64_t kNoLimit = UINT64_MAX;

    std::vector<Mac> macs;        ///< addresses of the hosts by port, all different
    std::uint16_t macs_each = 1;  ///< addresses of each host, consecutive in `macs`
    std::uint64_t bits_per_second = 10'000'000'000;
    std::vector<std::uint64_t> port_bits_per_second;  ///< rate of each port; empty: all the same
    Forwarding forwarding = Forwarding::kStoreAndForward;
    /// Cut-through decides after this number of bytes of a frame and its preamble: the preamble and
    /// the MAC header.
    std::uint64_t cut_through_octets = kPreambleOctets + kMacHeaderOctets;
    /// Latency of the switch, in addition to the wait for the bytes that forwarding needs
    Nanos latency = 2 * kMicrosecond;
    Nanos cable = 25;                        ///< delay of each cable, one way; 5 m
    std::uint64_t buffer_octets = kNoLimit;  ///< limit of each output; stored_octets() each frame
    /// Limit of all outputs; a frame for several counts once
    std::uint64_t shared_octets = kNoLimit;
    /// Knows the port of an address from the last frame that came from it; a frame to an address
    /// that it does not know goes to every port. False: it knows all from the start.
    bool learns = false;
    /// VLAN of each port: no frame goes to a port of another one. Empty: one VLAN.
    std::vector<std::uint16_t> vlans;
    /// A switch that is a process: its ports of odd numbers stop kTurnOver earlier than the others,
    /// as where the process loses its processor in the midst of a round.
    Sharing sharing;
    static constexpr Nanos kTurnOver = 50 * kMicrosecond;
    /// Rate at which hosts give it frames, and it takes them; 0: that of the port.
    std::uint64_t host_bits_per_second = 0;
    std::uint64_t seed = 1;
};

struct SwitchPortCounts {
    std::uint64_t in_frames = 0;  ///< from the host
    std::uint64_t in_octets = 0;
    std::uint64_t out_frames = 0;  ///< to the host
    std::uint64_t out_octets = 0;
    std::uint64_t overflows = 0;  ///< dropped for lack of space at this output
    std::uint64_t buffer_octets_max = 0;
};

/// Returns why the configuration is impossible; empty if it is possible. For configurations that a
/// user wrote.
[[nodiscard]] std::string problem_of(const SwitchConfig& config);

class SwitchMedium final : public Medium {
public:
    /// Precondition: problem_of() finds no problem.
    explicit SwitchMedium(const SwitchConfig& config);

    void transmit(std::uint16_t from, FramePtr frame, Nanos now) override;
    [[nodiscard]] Nanos next_event() const override { return events_.next(); }
    void advance(Nanos to, MediumSink& sink) override;

    [[nodiscard]] Faults& faults() noexcept { return faults_; }
    [[nodiscard]] const SwitchPortCounts& counts(std::uint16_t port) const {
        return ports_[port].counts;
    }
    [[nodiscard]] std::uint64_t unknown_destinations() const noexcept { return unknown_; }
    /// Returns how many frames to one address went to every port.
    [[nodiscard]] std::uint64_t flooded() const noexcept { return flooded_; }
    [[nodiscard]] std::uint64_t buffered_octets(std::uint16_t port) const {
        return ports_[port].buffered;
    }

private:
    using Picos = std::int64_t;
    /// A frame in the switch, once for all of its outputs.
    struct Held {
        FramePtr frame;
        std::uint16_t from = 0;
        std::uint64_t octets = 0;
        std::uint32_t copies = 0;
    };
    using HeldPtr = std::shared_ptr<Held>;
    struct Port {
        std::uint64_t bits_per_second = 0;
        Picos host_free_at = 0;  ///< the host's transmitter, its gap over
        Picos out_free_at = 0;   ///< the switch's
        std::uint64_t buffered = 0;
        SwitchPortCounts counts;
    };
    enum class Kind : std::uint8_t { kSent, kForward, kOutput, kLeft, kArrived, kLate };
    struct Event {
        Kind kind = Kind::kSent;
        std::uint16_t port = 0;
        std::uint16_t last = 0;  ///< kLeft, kArrived: the ports from `port` on except the source's
        HeldPtr held;            ///< kForward to kArrived
        FramePtr frame;          ///< kLate
    };
    /// Consecutive outputs that a frame leaves at one time: usually most of them, if it goes to
    /// all.
    struct Run {
        Nanos end = kNever;
        std::uint16_t first = 0;
        std::uint16_t last = 0;
    };

    [[nodiscard]] static Picos duration(std::uint64_t bits_per_second,
                                        std::uint64_t octets) noexcept;
    [[nodiscard]] static Picos duration(const Port& port, std::uint64_t octets) noexcept {
        return duration(port.bits_per_second, octets);
    }
    [[nodiscard]] bool put_off(const Event& event);
    [[nodiscard]] bool cuts_through(const Port& in, const Port& out) const noexcept;
    void forward(const HeldPtr& held, Nanos now);
    [[nodiscard]] std::optional<std::uint16_t> port_to(const Held& held);
    [[nodiscard]] bool is_joined(std::uint16_t a, std::uint16_t b) const noexcept {
        return config_.vlans.empty() || config_.vlans[a] == config_.vlans[b];
    }
    void output(std::uint16_t to, const HeldPtr& held, Nanos now);
    [[nodiscard]] Nanos enqueue(std::uint16_t to, Held& held, Nanos now) noexcept;
    void leave(const Run& run, const HeldPtr& held);
    void release(std::uint16_t port, Held& held) noexcept;
    void arrive(std::uint16_t to, const Held& held, Nanos now, MediumSink& sink);

    SwitchConfig config_;
    PortAddresses addresses_;
    Faults faults_;
    std::vector<Port> ports_;
    EventQueue<Event> events_;
    SharedProcessor processor_;
    Nanos now_ = 0;
    std::uint64_t shared_ = 0;
    std::uint64_t unknown_ = 0;
    std::uint64_t flooded_ = 0;
    std::unordered_map<std::uint64_t, std::uint16_t> learned_;  ///< by address
};

}  // namespace ulc::sim
