// SPDX-License-Identifier: BSD-3-Clause
// The frames that wait at one output port, by the time at which they may leave. With a rate, the
// port is a link: a frame leaves when its last bit would, and a frame that would wait behind more
// than `buffer` bytes is refused, as in a switch with that size of memory. Bounded; no allocation
// after construction. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "port/port.h"

namespace ulc::ether_switch {

struct Waiting {
    Nanos due = 0;
    std::uint64_t order = 0;  ///< ties leave in the order of arrival
    Segment* segment = nullptr;
    std::uint32_t length = 0;
    std::uint16_t from = 0;  ///< port whose pool it is from
    std::uint8_t kind = 0;   ///< the caller's
};

class OutQueue {
public:
    /// `rate`: bits per second, 0: no limit. `buffer`: bytes, only with a rate. `frames_max`:
    /// frames of any kind.
    OutQueue(std::uint64_t rate, std::uint64_t buffer, std::size_t frames_max)
        : rate_(rate), buffer_(buffer), frames_max_(frames_max) {
        heap_.reserve(frames_max);
    }

    /// Adds a frame. Returns false if there is no space; the caller then still owns the reference.
    /// `frame.due`: when it is ready to leave. `held`: out of the link's order (a reordered frame).
    [[nodiscard]] bool push(Waiting frame, bool held) {
        if (heap_.size() == frames_max_) return false;
        if (!held && !take_wire(frame)) return false;
        frame.order = order_++;
        put_back(frame);
        return true;
    }
    /// Counts a frame that the link damages: it takes its time, and no station gets it.
    void waste(Waiting frame) noexcept { (void)take_wire(frame); }
    /// Puts a frame that pop() returned and the port did not take back to its old place.
    void put_back(const Waiting& frame) {
        heap_.push_back(frame);
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    /// Takes out the next frame that may leave; returns false if there is none.
    [[nodiscard]] bool pop(Nanos now, Waiting& out) noexcept {
        if (heap_.empty() || heap_.front().due > now) return false;
        std::pop_heap(heap_.begin(), heap_.end(), later);
        out = heap_.back();
        heap_.pop_back();
        return true;
    }
    [[nodiscard]] Nanos next_due() const noexcept {
        return heap_.empty() ? kNever : heap_.front().due;
    }
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }

    /// Returns the time on the wire of a frame without FCS: with FCS, preamble and gap, at least 60
    /// bytes.
    [[nodiscard]] Nanos wire_time(std::uint32_t length) const noexcept {
        constexpr std::uint64_t kOverhead = 4 + 8 + 12;
        const std::uint64_t bits = (std::max<std::uint64_t>(length, 60) + kOverhead) * 8;
        return rate_ == 0 ? 0 : static_cast<Nanos>(bits * 1'000'000'000 / rate_);
    }

private:
    /// Computes when the frame's last bit has left, behind the waiting frames. Returns false if
    /// there is no space.
    bool take_wire(Waiting& frame) noexcept {
        if (rate_ == 0) return true;
        const Nanos start = std::max(free_at_, frame.due);
        if (octets_in(start - frame.due) > buffer_) return false;
        free_at_ = start + wire_time(frame.length);
        frame.due = free_at_;
        return true;
    }
    static bool later(const Waiting& a, const Waiting& b) noexcept {
        return a.due != b.due ? a.due > b.due : a.order > b.order;
    }
    [[nodiscard]] std::uint64_t octets_in(Nanos span) const noexcept {
        return static_cast<std::uint64_t>(static_cast<double>(span) * static_cast<double>(rate_) /
                                          8e9);
    }

    std::vector<Waiting> heap_;
    std::uint64_t order_ = 0;
    std::uint64_t rate_;
    std::uint64_t buffer_;
    std::size_t frames_max_;
    Nanos free_at_ = 0;
};

}  // namespace ulc::ether_switch
