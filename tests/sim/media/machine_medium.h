// SPDX-License-Identifier: BSD-3-Clause
// Machines whose engine has several threads, on the cables of another medium, in virtual time. Each
// thread is a station with its own address; the stations of a machine follow each other.
//
//   station ─┬─▶ cable ▶ other medium ▶ the other machine's NIC ─steering─▶ stations
//            └─▶ ring ▶ station of the same machine     (both ways, if the frame is to a group)
//
// The cable takes the frames of its stations in the order in which they come. A station that is
// given a frame of another machine may hand it over: it transmits that frame as it came.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "tests/sim/media/event_queue.h"
#include "tests/sim/media/medium.h"
#include "wire/ids.h"

namespace ulc::sim {

/// The stations to which the NIC of a machine gives a frame that arrives.
enum class Steering : std::uint8_t {
    kByNic,         ///< by the address; a frame to a group goes to each thread
    kUnicastByNic,  ///< by the address; a frame to a group goes to the first thread alone
    kBySoftware,    ///< all frames go to the first thread
};

struct MachineConfig {
    std::vector<Mac> macs;  ///< one a station
    std::uint16_t threads = 1;
    Steering steering = Steering::kByNic;
    Nanos ring_latency = 0;  ///< from a write until another thread may read it
};

class MachineMedium final : public Medium, private MediumSink {
public:
    /// cables: has a port for each machine, and knows the addresses of all of its stations.
    MachineMedium(std::unique_ptr<Medium> cables, MachineConfig config);

    void transmit(std::uint16_t from, FramePtr frame, Nanos now) override;
    [[nodiscard]] Nanos next_event() const override;
    void advance(Nanos to, MediumSink& sink) override;

private:
    /// Something in a machine's memory: a frame at the end of a ring, or a frame that has left.
    struct Event {
        std::uint16_t station = 0;
        FramePtr frame;  ///< nullptr: look whether the oldest frame has left
    };
    void on_sent(std::uint16_t machine, bool sent, Nanos at) override;
    void on_arrival(std::uint16_t machine, const FramePtr& frame, Nanos at) override;
    void write_rings(std::uint16_t from, const FramePtr& frame, Nanos now);
    void tell_what_left(std::uint16_t station, Nanos at);
    [[nodiscard]] bool is_from(std::uint16_t station, const FramePtr& frame) const noexcept;
    [[nodiscard]] bool is_to(std::uint16_t station, const FramePtr& frame) const noexcept;
    [[nodiscard]] std::uint16_t first_of(std::uint16_t station) const noexcept {
        return static_cast<std::uint16_t>(station - station % config_.threads);
    }

    std::unique_ptr<Medium> cables_;
    MachineConfig config_;
    std::vector<std::deque<bool>> sending_;          ///< by station: whether each frame has left
    std::vector<std::deque<std::uint16_t>> queued_;  ///< by machine: whose frame each is
    EventQueue<Event> events_;
    MediumSink* sink_ = nullptr;  ///< within advance()
};

}  // namespace ulc::sim
