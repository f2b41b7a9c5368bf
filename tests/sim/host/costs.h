// SPDX-License-Identifier: BSD-3-Clause
// The costs of a host: the time that its processor and its network interface take for the actions
// of the engine and its clients. The objects that run are the shipped ones and take no virtual time
// by themselves; this table says how much they would take on that host. All zero (except `round`)
// is the ideal host, which only the wire limits.
//
//   client submits ─submit─▶ engine's round ─send_frame + send_octet·n─▶ bus ─▶ NIC
//       ─(send_threshold)─▶ wire
//   wire ─▶ NIC ─(receive_threshold)─▶ bus ─▶ memory ─poll or interrupt─▶ round:
//       receive_frame + receive_octet·n ─complete─▶ client
//
// One processor a node: the engine and the clients of a node never act at the same time. A bus that
// the processor drives (programmed I/O, or DMA that it starts and waits for: GAMMA §3.2.1) takes
// its time as well.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "tests/sim/host/shared_processor.h"

namespace ulc::sim {

/// The way in which an idle host notices a frame in its memory.
enum class Notice : std::uint8_t {
    kPoll,       ///< at its next poll: a multiple of poll_period after it became idle
    kInterrupt,  ///< interrupt_latency later, and the handler costs interrupt_cost
};

struct HostCosts {
    std::string name = "ideal";

    // --- processor
    Nanos round = 50;  ///< a round of the engine that moved something; ≥ 1, so that time advances
    Nanos send_frame = 0;      ///< each frame given to the NIC
    double send_octet = 0;     ///< ns a byte of such a frame: every copy on the way out
    Nanos receive_frame = 0;   ///< each frame taken from the NIC, wanted or not
    double receive_octet = 0;  ///< ns a byte of such a frame: every copy on the way in
    /// Each frame to or from another thread of the machine, instead of the two above: a cache line
    /// that moves between cores. A frame to a group costs this for its ring as well.
    Nanos hand_over_frame = 0;
    /// Each acknowledgement sent or taken: the number put down or the window moved, and the timer.
    /// Profiles without acknowledgements have no such cost.
    Nanos acknowledge = 0;
    Nanos submit = 0;    ///< client: each record it submits
    Nanos complete = 0;  ///< client: each completion it takes
    Nanos wake = 0;  ///< client: all completions that it takes together (a signal, a system call)
    /// Client of libulc: each message that is matched with a receive. Clients on the rings match
    /// nothing.
    Nanos match = 0;
    double speed = 1;  ///< divides all of the processor's costs: 0.5 is half as fast

    // --- how arrivals are noticed
    Notice notice = Notice::kPoll;
    Nanos poll_period = 0;
    Nanos interrupt_latency = 0;
    Nanos interrupt_cost = 0;

    // --- bus and NIC
    double bus_octet = 0;           ///< ns a byte between memory and NIC, one transfer at a time
    Nanos bus_setup = 0;            ///< each transfer
    bool bus_by_processor = false;  ///< the processor waits until a transfer is over
    std::uint32_t send_threshold =
        0;  ///< bytes in the NIC from which it transmits; 0: the whole frame (store and forward)
    std::uint32_t receive_threshold =
        0;          ///< bytes in the NIC from which they are moved on; 0: the whole frame
    Nanos nic = 0;  ///< in the NIC itself, each way
    /// A NIC shows what it received once in this time, every second one half of it later than the
    /// others; 0: at once.
    Nanos gather = 0;
    Sharing sharing;  ///< its processor serves others too
    std::uint16_t tx_ring_frames = 256;
    std::uint32_t rx_ring_frames = 1024;
};

/// A processor's virtual time within one turn of its node.
class Cpu {
public:
    explicit Cpu(double speed = 1) noexcept : speed_(speed) {}
    void begin(Nanos now) noexcept {
        begun_ = now;
        spent_ = 0;
    }
    /// Charges costs of the preset, before `speed`.
    void charge(double nanos) noexcept { spent_ += static_cast<Nanos>(nanos / speed_); }
    /// Waits for another device: a bus does not get faster with the processor.
    void wait_until(Nanos at) noexcept {
        if (at > now()) spent_ = at - begun_;
    }
    [[nodiscard]] Nanos now() const noexcept { return begun_ + spent_; }
    [[nodiscard]] Nanos spent() const noexcept { return spent_; }
    void set_speed(double speed) noexcept { speed_ = speed; }

private:
    double speed_;
    Nanos begun_ = 0;
    Nanos spent_ = 0;
};

}  // namespace ulc::sim
