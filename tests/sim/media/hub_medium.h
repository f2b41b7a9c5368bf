// SPDX-License-Identifier: BSD-3-Clause
// A repeater with its stations, half duplex, as IEEE 802.3 clause 4 (CSMA/CD): carrier sense,
// inter-frame gap in two parts, propagation from each station to each other, collision detection,
// jam, truncated binary exponential back-off.
//
//            ┌──────── deferring: another sends, or the gap after it ────────┐
//   frame ─▶ wait ─clear─▶ send ──────────────────────── last bit ─▶ on_sent(true)
//              ▲   └ a foreign signal arrives ─▶ preamble done, 32 bits of jam
//              │                                  ─▶ 16th time? ─yes─▶ on_sent(false)
//              └─ after r · 512 bit times, r random in 0 … 2^min(n,10) − 1 ◀──no─┘
//
// The deference process runs by itself (clause 4.2.8). When all is silent it counts 64 bit times,
// in which a new carrier starts it again (unless this station was sending), then 32 in which it
// does not; a frame that waits at the end is sent. So two stations that waited for the same frame
// collide with certainty, and the winner of a collision, whose next frame begins at n = 0, is ahead
// of the loser (the capture effect). These rules alone produce the effect.
//
// All stations see an attempt's collisions within the slot time, to which problem_of() limits the
// delays. So a frame that was sent to its end is whole at each receiver.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/prng.h"
#include "ethernet.h"
#include "event_queue.h"
#include "faults.h"
#include "medium.h"
#include "wire/ids.h"

namespace ulc::sim {

inline constexpr unsigned kHubAttemptsMax = 16;
inline constexpr unsigned kHubBackoffExponentMax = 10;
inline constexpr std::uint64_t kHubSlotBits = 512;

struct HubConfig {
    std::vector<Mac> macs;  ///< address of the station at each port, all different
    std::uint64_t bits_per_second = 100'000'000;  ///< 10 or 100 Mb/s
    Nanos repeater = 460;                         ///< its delay; 46 bit times: class II at 100 Mb/s
    Nanos cable = 25;                             ///< delay of each cable, one way; 5 m
    std::vector<Nanos> port_cable;  ///< delay of each port's cable; empty: all the same
    std::uint64_t seed = 1;
};

/// The management counters of clause 30, of one station.
struct HubCounts {
    std::uint64_t sent = 0;
    std::uint64_t octets = 0;      ///< bytes of sent frames, from destination MAC on, unpadded
    std::uint64_t collisions = 0;  ///< attempts that collided
    /// Frames that found another station sending at their first attempt
    std::uint64_t deferred = 0;
    std::uint64_t given_up = 0;  ///< dropped after 16 attempts
    /// Frames sent, by number of collisions before.
    std::array<std::uint64_t, kHubAttemptsMax> after_collisions{};
    Nanos carried = 0;  ///< time that sent frames took, preamble to FCS
};

/// Returns why the configuration is impossible; empty if it is possible. For configurations that a
/// user wrote.
[[nodiscard]] std::string problem_of(const HubConfig& config);

class HubMedium final : public Medium {
public:
    /// Precondition: problem_of() finds no problem.
    explicit HubMedium(const HubConfig& config);

    void transmit(std::uint16_t from, FramePtr frame, Nanos now) override;
    [[nodiscard]] Nanos next_event() const override { return events_.next(); }
    void advance(Nanos to, MediumSink& sink) override;

    /// Simulates a broken transceiver: this station sees a collision in each of its next n
    /// attempts.
    void force_collisions(std::uint16_t port, std::uint32_t n);
    [[nodiscard]] Faults& faults() noexcept { return faults_; }
    [[nodiscard]] const HubCounts& counts(std::uint16_t port) const {
        return stations_[port].counts;
    }
    /// Returns sums over all stations.
    [[nodiscard]] HubCounts total() const;
    /// Returns the share of the time up to the last advance() in which frames that were sent were
    /// on the medium.
    [[nodiscard]] double utilisation() const;

private:
    enum class Defer : std::uint8_t { kClear, kBusy, kGapPart1, kGapPart2 };
    enum class Sender : std::uint8_t { kIdle, kWaiting, kSending, kJamming, kBackingOff };
    struct Station {
        std::deque<FramePtr> queue;
        Sender sender = Sender::kIdle;
        Defer defer = Defer::kClear;
        bool was_sending = false;  ///< since the medium was last clear
        bool is_heard = true;      ///< this transmission is heard: the cable is plugged in
        unsigned carriers = 0;     ///< signals of others that are present
        unsigned attempts = 0;     ///< collisions of the front frame
        std::uint32_t forced = 0;
        std::uint32_t gap_serial = 0;   ///< older gap events are void
        std::uint32_t send_serial = 0;  ///< older ends of sending are void
        Nanos cable = 0;
        Nanos send_start = 0;
        HubCounts counts;
    };
    enum class Kind : std::uint8_t {
        kCarrierOn,
        kCarrierOff,
        kSendEnd,
        kJamEnd,
        kGapPart,
        kBackoffEnd,
        kLate
    };
    struct Event {
        Kind kind = Kind::kCarrierOn;
        std::uint16_t port = 0;    ///< at which it happens
        std::uint16_t from = 0;    ///< kCarrierOff: the sender of the signal that ends
        std::uint32_t serial = 0;  ///< kSendEnd, kGapPart
        FramePtr frame;            ///< kCarrierOff: the frame that is complete; kLate
    };

    [[nodiscard]] Nanos bits(std::uint64_t n) const noexcept {
        return static_cast<Nanos>(n) * bit_time_;
    }
    [[nodiscard]] Nanos delay(std::uint16_t from, std::uint16_t to) const noexcept {
        return stations_[from].cable + config_.repeater + stations_[to].cable;
    }
    [[nodiscard]] static bool senses(const Station& station) noexcept;
    void handle(Event& event, MediumSink& sink);
    void want_to_send(std::uint16_t port);
    void start_sending(std::uint16_t port);
    void collide(std::uint16_t port);
    void end_sending(std::uint16_t port, MediumSink& sink);
    void end_jam(std::uint16_t port, MediumSink& sink);
    void finish_front(std::uint16_t port, bool sent, MediumSink& sink);
    void signal(std::uint16_t from, Kind kind, const FramePtr& frame);
    void carrier_on(std::uint16_t port);
    void carrier_off(const Event& event, MediumSink& sink);
    void look_for_silence(std::uint16_t port);
    void end_gap_part(std::uint16_t port);

    HubConfig config_;
    PortAddresses addresses_;
    Faults faults_;
    Prng prng_;
    Nanos bit_time_;
    std::vector<Station> stations_;
    EventQueue<Event> events_;
    Nanos now_ = 0;
};

}  // namespace ulc::sim
