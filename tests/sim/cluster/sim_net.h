// SPDX-License-Identifier: BSD-3-Clause
// N network interfaces on one medium, in virtual time: the simulated hosts' view of the wire. A
// thin layer over media/ and host/; it moves bytes and knows no protocol (DECISIONS D1). The
// same seed and the same calls give the same events.
//
//   engine ─port.h─▶ Nic ─hand over, at its time─▶ Medium ─on_arrival─▶ Nic ─port.h─▶ engine
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/units.h"
#include "tests/sim/cluster/net_config.h"
#include "tests/sim/host/costs.h"
#include "tests/sim/host/nic.h"
#include "tests/sim/media/event_queue.h"
#include "tests/sim/media/medium.h"

namespace ulc::sim {

/// Sees every frame at every interface, in time order.
class Tap {
public:
    virtual ~Tap() = default;
    virtual void on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                          Nanos at) = 0;
};

class SimNet : private MediumSink {
public:
    /// `hosts`: costs by port; fewer than ports: the last one (or the ideal host) for the others.
    explicit SimNet(const NetConfig& config, std::vector<HostCosts> hosts = {});
    SimNet(const SimNet&) = delete;
    SimNet& operator=(const SimNet&) = delete;
    virtual ~SimNet();

    [[nodiscard]] Port port(std::uint16_t index) noexcept { return nics_[index]->port(); }
    [[nodiscard]] Nic& nic(std::uint16_t index) noexcept { return *nics_[index]; }
    [[nodiscard]] const Nic& nic(std::uint16_t index) const noexcept { return *nics_[index]; }
    [[nodiscard]] static Mac mac_of(std::uint16_t index) noexcept { return mac_of_port(index); }
    [[nodiscard]] std::uint16_t ports() const noexcept {
        return static_cast<std::uint16_t>(nics_.size());
    }
    [[nodiscard]] Nanos now() const noexcept { return now_; }
    [[nodiscard]] Nanos next_event() const noexcept;
    /// Begins the turn of the host behind that port: its processor counts its costs from this time.
    void begin_turn(std::uint16_t index) noexcept { nics_[index]->cpu().begin(now_); }
    /// Moves the clock, and performs everything that happens until then.
    void advance(Nanos to);
    /// Called when a frame will be in a host's memory (arrived), or a transmission is over (not
    /// arrived).
    using Listener = std::function<void(std::uint16_t port, bool arrived, Nanos at)>;
    void listen(Listener listener) { listener_ = std::move(listener); }
    /// `tap`: outlives this; nullptr: none.
    void set_tap(Tap* tap) noexcept { tap_ = tap; }

    /// Returns the faults (losses, partitions, unplugged cables), which may be changed at any time.
    [[nodiscard]] Faults& faults() noexcept { return *made_.faults; }
    /// Drops all frames in flight and in the rings. Nothing moves after this.
    void drop_all();
    /// Injects a frame from outside, as if received by that port.
    void inject(std::uint16_t index, const std::byte* frame, std::uint32_t octets);

    [[nodiscard]] const NicStats& stats(std::uint16_t index) const noexcept {
        return nics_[index]->stats;
    }
    [[nodiscard]] MediumReport medium_report() const { return made_.report(); }
    [[nodiscard]] std::uint32_t segments_out(std::uint16_t index) const noexcept {
        return nics_[index]->segments_out();
    }

private:
    struct HandOver {
        std::uint16_t from = 0;
        FramePtr frame;
    };
    void on_sent(std::uint16_t port, bool sent, Nanos at) override;
    void on_arrival(std::uint16_t port, const FramePtr& frame, Nanos at) override;
    void hand_over(std::uint16_t from, FramePtr frame, Nanos at);
    void transmit(std::uint16_t from, FramePtr frame);

    MadeMedium made_;
    std::vector<std::unique_ptr<Nic>> nics_;
    EventQueue<HandOver> hand_overs_;
    Listener listener_;
    Tap* tap_ = nullptr;
    Nanos now_ = 0;
    bool closed_ = false;
};

}  // namespace ulc::sim
