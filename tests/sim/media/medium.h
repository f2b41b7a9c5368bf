// SPDX-License-Identifier: BSD-3-Clause
// The medium that joins the simulated nodes: a shared cable (hub_medium.h) or a switch
// (switch_medium.h), in virtual time.
//
//   host ─transmit(port, frame)─▶ the port's transmitter, a FIFO ─▶ medium
//                  ─▶ on_arrival(port, frame) at each receiver
//                  └▶ on_sent(port, true | false)
//
// A medium moves bytes. It reads no field of a frame except the two MAC addresses. It knows no
// protocol and no clock, and its only randomness is its seed: the same seed and the same calls give
// the same events, in the same order, on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"

namespace ulc::sim {

/// One frame: the bytes from destination MAC on, without preamble, padding and FCS. All of its
/// receivers share it and it never changes; a medium that corrupts one makes another.
using FramePtr = std::shared_ptr<const std::vector<std::byte>>;

/// Events of a medium for its host: called in time order from advance(). A sink may call transmit()
/// from within, with `now` = at.
class MediumSink {
public:
    /// Reports that the oldest frame that was given to that port and not yet reported has left its
    /// transmitter at `at`, the end of its last bit. sent = false: dropped after the attempts that
    /// the standard allows (16 collisions), no port has it.
    virtual void on_sent(std::uint16_t port, bool sent, Nanos at) = 0;
    /// Reports that the last bit of a frame is at that port. The frame is for the port by its
    /// destination address, or to a group.
    virtual void on_arrival(std::uint16_t port, const FramePtr& frame, Nanos at) = 0;

protected:
    ~MediumSink() = default;
};

/// A medium with numbered ports, 0 up to a number fixed at construction. Time never goes back:
/// `now` and `to` are at least the values of the last call.
class Medium {
public:
    Medium() = default;
    Medium(const Medium&) = delete;
    Medium& operator=(const Medium&) = delete;
    virtual ~Medium() = default;

    /// Hands a frame to a port's transmitter, FIFO behind the port's earlier frames. The
    /// transmitter takes any number of frames: the host keeps its ring's limit by counting
    /// on_sent(). `now`: at or after the last advance(), and not after next_event(), so that the
    /// medium has not missed an event.
    virtual void transmit(std::uint16_t from, FramePtr frame, Nanos now) = 0;
    /// Returns when advance() has work next; kNever: nothing is in flight.
    [[nodiscard]] virtual Nanos next_event() const = 0;
    /// Performs everything due up to and including `to`, and reports it to the sink in time order.
    virtual void advance(Nanos to, MediumSink& sink) = 0;
};

}  // namespace ulc::sim
