// SPDX-License-Identifier: BSD-3-Clause
// One network interface of a simulated host: the rings that the engine sees through port.h on one
// side, a port of a medium on the other, a bus of finite speed in between (host/costs.h draws the
// path).
//
//   tx():  charge the processor, move the frame over the bus, hand it over when enough bytes are in
//          the NIC that the wire cannot overtake the bus. The segment is released when the medium
//          has sent the frame, in order. A frame dropped after 16 collisions goes back to
//          the engine (GAMMA §4.5.5: reported, and retried above).
//   rx():  frames whose bytes have reached memory, copied into segments of the pool
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/units.h"
#include "port/port.h"
#include "tests/sim/host/costs.h"
#include "tests/sim/host/frame_pool.h"
#include "tests/sim/media/medium.h"
#include "wire/header.h"

namespace ulc::sim {

/// Preamble, frame check sequence and inter-frame gap, in bytes.
inline constexpr std::uint32_t kLineOverheadOctets = 24;
/// Returns the time that a frame of `octets` (without FCS) occupies a line; 0 at a rate of 0, which
/// is infinite.
[[nodiscard]] Nanos line_time(std::uint64_t octets, std::uint64_t bits_per_second) noexcept;

struct NicStats {
    std::uint64_t tx_frames = 0;
    std::uint64_t tx_octets = 0;
    std::uint64_t mcast_frames = 0;  ///< MCAST frames sent
    std::uint64_t rx_frames = 0;
    std::uint64_t overruns = 0;     ///< the ring, or the pool, was full
    std::uint64_t too_long = 0;     ///< received, longer than the MTU
    std::uint64_t given_up = 0;     ///< excessive collisions; reported to the engine
    std::uint64_t filtered = 0;     ///< multicasts for other interfaces
    std::uint64_t handed_over = 0;  ///< to other threads of the machine
};

class Nic {
public:
    struct Config {
        std::uint16_t index = 0;
        Mac mac;
        std::uint16_t mtu = 1500;
        std::uint64_t bits_per_second = 0;
        std::uint32_t segments = 4096;  ///< for sending, and the same number for receiving
        bool half_duplex = false;
        std::uint16_t multicast_filters = kPassesAll;
        std::uint32_t overtaken_every = 0;  ///< as in NetConfig
        std::vector<Mac> neighbours;        ///< other threads of the machine
        bool hands_over = false;            ///< gets frames of the cable that are for neighbours
        bool reads_arenas = false;          ///< as in NetConfig
    };
    /// Takes a frame that reaches the NIC at `at`, for the medium. A frame of another source is
    /// handed over to the neighbours, and does not leave.
    using HandOver = std::function<void(std::uint16_t index, FramePtr frame, Nanos at)>;

    Nic(Config config, const HostCosts& costs, HandOver hand_over);

    /// Returns a table over this object, which must stay in place.
    [[nodiscard]] Port port() noexcept;
    [[nodiscard]] Cpu& cpu() noexcept { return cpu_; }
    /// Begins a round of the engine, whose counters these are: records that it takes from clients
    /// and acknowledgements are charged before the next frame that it sends. `idle`: the host did
    /// nothing before, so an interrupt brought the frames that it receives.
    void begin_round(const Counters& counters, bool idle) noexcept;
    void end_round() noexcept;
    [[nodiscard]] const HostCosts& costs() const noexcept { return costs_; }

    // --- from the medium
    /// Reports that the medium has sent the oldest frame, or (false) dropped it.
    void on_sent(bool sent);
    /// Takes a frame whose last bit has arrived. Returns when its bytes are in memory; kNever:
    /// dropped, the ring is full.
    [[nodiscard]] Nanos on_arrival(const FramePtr& frame, Nanos at);
    /// Returns when the oldest frame of the rx ring is, or was, in memory; kNever if there is none.
    [[nodiscard]] Nanos next_rx() const noexcept {
        return rx_ring_.empty() ? kNever : rx_ring_.front().at;
    }

    /// Releases every frame in the rings; the medium must have been emptied.
    void drop_all();

    /// Returns the number of segments in use of those in the pools.
    [[nodiscard]] std::uint32_t segments_out() const noexcept {
        return tx_pool_.out() + rx_pool_.out();
    }
    [[nodiscard]] std::uint32_t segments_made() const noexcept {
        return tx_pool_.made() + rx_pool_.made();
    }
    /// Returns the number of clients whose memory the device reads.
    [[nodiscard]] std::size_t arenas() const noexcept { return arenas_.size(); }
    bool plugged = true;  ///< as the engine sees its link
    NicStats stats;

private:
    struct Sending {
        Segment* segment;
        FramePtr frame;
    };
    struct Received {
        FramePtr frame;
        Nanos at;
    };
    [[nodiscard]] std::uint16_t rx(Segment** out, std::uint16_t n);
    [[nodiscard]] Segment* rx_landing(const Landing& landing);
    [[nodiscard]] std::uint16_t tx(Segment* const* frames, std::uint16_t n);
    [[nodiscard]] std::uint32_t add_arena(std::span<const std::byte> memory);
    [[nodiscard]] bool may_read(const Segment& segment) const noexcept;
    void send(Segment* segment);
    [[nodiscard]] bool set_multicasts(std::span<const Mac> addresses);
    [[nodiscard]] bool passes(const Mac& destination) const noexcept;
    [[nodiscard]] bool is_neighbour(const Mac& address) const noexcept;
    [[nodiscard]] Nanos send_cost(const wire::EthernetHeader& header) const noexcept;
    [[nodiscard]] Nanos receive_cost(const wire::EthernetHeader& header) const noexcept;
    [[nodiscard]] bool pass_on(const FramePtr& frame);
    void charge_counted() noexcept;
    [[nodiscard]] Nanos bus_time(std::size_t octets) const noexcept;
    [[nodiscard]] bool takes_all_at_once(std::uint32_t threshold,
                                         std::size_t octets) const noexcept {
        return threshold == 0 || octets <= threshold;
    }

    struct Arena {
        std::span<const std::byte> memory;
        std::uint32_t key = 0;
    };

    Config config_;
    std::vector<Arena> arenas_;
    std::uint32_t next_key_ = 0x7000;
    std::vector<Mac> multicasts_;
    bool all_multicasts_;
    HostCosts costs_;
    HandOver hand_over_;
    Cpu cpu_;
    FramePool tx_pool_;
    FramePool rx_pool_;
    std::deque<Sending> tx_ring_;
    std::deque<Segment*> failed_;  ///< dropped by the medium, for tx_failed()
    std::deque<Received> rx_ring_;
    std::uint32_t landed_ = 0;
    const Counters* counters_ = nullptr;  ///< within a round
    std::uint64_t submissions_charged_ = 0;
    std::uint64_t acknowledgements_charged_ = 0;
    bool interrupt_due_ = false;
    Nanos bus_free_ = 0;
    Nanos last_hand_over_ = 0;
};

}  // namespace ulc::sim
