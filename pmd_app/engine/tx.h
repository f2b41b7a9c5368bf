// SPDX-License-Identifier: BSD-3-Clause
// The path to the NIC: a burst at a time, and never more in its ring than keeps the wire busy, so
// that control frames and retransmissions, which the members send first, do not wait behind bulk
// (two MTU of Fast Ethernet, 20 µs on faster links). With one frame in a gigabit ring the
// wire would idle while the engine does other work, so two of the largest frames are always
// allowed; 20 µs are more than that from 1.3 Gb/s on.
//
//   sent lengths   |…|L|L|L|L|    ring of the last kSentMax frames; the port reports how many are
//                       └pending  pending, so their bytes are known
//
// A driver may report sent frames late, or in batches that these few frames never fill. If a port
// reports nothing for longer than any frame can need (stall_after_), the transmitter waits for it
// no longer: frames leave at the link's rate, until it reports frame by frame (the link was down,
// or a hub was busy).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/counters.h"
#include "endpoint/send_queue.h"
#include "port/port.h"
#include "urtp/departures.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

class Transmitter final : public endpoint::GatheredFrames {
public:
    Transmitter(const Port& port, urtp::Departures& departures, Counters& counters) noexcept;

    /// Replaces the port by one around it.
    void replace_port(const Port& port) noexcept { port_ = port; }

    /// Call once a round, before the first frame: asks the port for its pending frames, unless none
    /// can be.
    void begin_round(Nanos now) noexcept {
        now_ = now;
        if (in_flight_frames_ == 0) return;
        if (leave_at_once() && burst_count_ == 0) {
            in_flight_frames_ = 0;
            in_flight_octets_ = 0;
        } else if (burst_count_ == 0 && !by_clock_ && port_.tx_pending(port_.context) == 0) {
            all_left(now);
        } else {
            look_at_port(now);
        }
    }
    /// True if one more frame may be given to push().
    [[nodiscard]] bool may_push() const noexcept {
        return burst_count_ < kBurst && in_flight_octets_ + frame_octets_max_ <= budget_octets_ &&
               in_flight_frames_ < frames_max_;
    }
    /// Returns true if nothing is pending or kept, so that any client may push(): two of the
    /// largest frames are always allowed.
    [[nodiscard]] bool has_all_to_give() const noexcept {
        return (in_flight_frames_ | burst_count_) == 0;
    }
    /// Returns whether a user that shares the wire with others may give one more frame. Pending
    /// frames may take half of the allowance beyond one frame, so that another user's frame waits
    /// for less. It is counted in time, since that half may be less than a frame.
    [[nodiscard]] bool may_push_shared() const noexcept {
        return may_push() && (in_flight_frames_ == 0 || !rate_known_ || leaves_soon());
    }
    /// Takes over one reference. Sends the burst when it is full.
    void push(Segment* frame) noexcept {
        ULC_CHECK(burst_count_ < kBurst);
        burst_[burst_count_++] = frame;
        ++departures_.next;
        in_flight_octets_ += frame->length + kFrameOverhead;
        ++in_flight_frames_;
        if ((burst_count_ & flush_mask_) == 0) flush();
    }
    /// Returns whether send_one() may be called.
    [[nodiscard]] bool may_send_one() const noexcept { return has_all_to_give() && !by_clock_; }
    /// Gives the port one frame. Takes over one reference.
    void send_one(Segment* frame) noexcept {
        const std::uint32_t length = frame->length;
        burst_[0] = frame;
        ++departures_.next;
        if (give(1) != 1) [[unlikely]] {
            burst_count_ = 1;
            note_pending(length);
            (void)keep_from(0);
            return;
        }
        counters_.add(Counter::tx_frames);
        counters_.add(Counter::tx_bytes, length);
        if (leave_at_once()) {
            departures_.leave_next(now_);
            reported_ = ++sent_next_;
        } else {
            note_pending(length);
            ++sent_next_;
        }
    }
    /// Sends the last frame of the round's messages: push() and flush().
    void push_last(Segment* frame) noexcept {
        if (may_send_one()) [[likely]] {
            send_one(frame);
        } else {
            push(frame);
            flush();
        }
    }
    /// Sends the frames that are there. Frames that the port does not take are kept for the next
    /// round.
    void flush() noexcept {
        if (burst_count_ > 0) send_burst();
    }
    [[nodiscard]] bool kept() const noexcept { return burst_count_ > 0; }
    /// Returns true if the port has nothing to report: no frame is kept, and none was pending when
    /// it was last asked, or ever is.
    [[nodiscard]] bool idle() const noexcept {
        return in_flight_frames_ == 0 || (leave_at_once() && burst_count_ == 0);
    }
    /// Makes kept frames refer to no memory other than their own.
    void pull_tails() noexcept override {
        for (std::uint32_t n = 0; n < burst_count_; ++n)
            pull_tail(*burst_[n]);
    }
    [[nodiscard]] std::uint32_t key_of(std::span<const std::byte> arena) noexcept override {
        return port_.add_memory == nullptr ? 0 : port_.add_memory(port_.context, arena);
    }
    /// Drops the frames that the port has not taken: its link is down, or the engine ends.
    void drop_all() noexcept;
    /// Fails the process if tickets, reports and kept frames do not add up. Between two rounds.
    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    friend struct Breaker;  // tests/unit/engine/invariants_test.cc

    static constexpr std::uint32_t kBurst = 32;
    static_assert(kBurst <= kTapBurstMax);
    static constexpr std::uint32_t kSentMax = 1024;      ///< power of two
    static constexpr std::uint32_t kFrameOverhead = 24;  ///< FCS, preamble, gap

    /// Offers the port the first n frames of the burst. Returns how many it took.
    [[nodiscard]] std::uint16_t give(std::uint16_t n) noexcept {
        const PortTap* const tap = port_.tap;
        if (tap != nullptr) [[unlikely]]
            tap->on_offered(tap->context, burst_, n);
        const std::uint16_t taken = port_.tx(port_.context, burst_, n);
        if (tap != nullptr) [[unlikely]]
            PortTap::add(*tap->taken, taken);
        return taken;
    }
    /// Notes that one frame is pending or kept, and no other.
    void note_pending(std::uint32_t length) noexcept {
        in_flight_octets_ = length + kFrameOverhead;
        in_flight_frames_ = 1;
        sent_[sent_next_ & (kSentMax - 1)] = static_cast<std::uint16_t>(in_flight_octets_);
        reported_at_ = now_;  // the wait begins
    }
    /// Notes that nothing is pending or kept.
    void all_left(Nanos now) noexcept {
        if (reported_ != sent_next_) reported_at_ = now;
        reported_ = sent_next_;
        departures_.leave_until(sent_next_, now);
        in_flight_frames_ = 0;
        in_flight_octets_ = 0;
    }
    /// Returns whether frames leave when the port takes them.
    [[nodiscard]] bool leave_at_once() const noexcept { return port_.tx_pending == nullptr; }
    /// Notes that all frames that the port took have left.
    void note_left() noexcept {
        reported_ = sent_next_;
        reported_at_ = now_;
        departures_.leave_until(sent_next_, now_);
    }
    void look_at_port(Nanos now) noexcept;
    [[nodiscard]] std::uint32_t pending_frames(Nanos now) noexcept;
    [[nodiscard]] bool leaves_soon() const noexcept;
    [[nodiscard]] std::uint32_t frames_on_wire(Nanos now) const noexcept;
    [[nodiscard]] Nanos wire_time(std::uint64_t octets) const noexcept;
    void send_burst() noexcept;
    [[nodiscard]] std::uint64_t keep_from(std::uint32_t taken) noexcept;

    Port port_;
    urtp::Departures& departures_;
    Counters& counters_;
    std::uint64_t budget_octets_;
    std::uint64_t in_flight_octets_ = 0;
    std::uint32_t in_flight_frames_ = 0;
    std::uint32_t frames_max_;
    std::uint32_t frame_octets_max_;
    std::uint32_t flush_mask_;
    std::uint32_t burst_count_ = 0;
    std::uint32_t sent_next_ = 0;
    bool rate_known_;
    bool by_clock_ = false;       ///< the port's reports are not awaited
    Nanos now_ = 0;               ///< time of the round
    Nanos shared_time_ = 0;       ///< limit for pending frames of users that share the wire
    Nanos stall_after_;           ///< without a report, and with frames pending
    Nanos reported_at_ = 0;       ///< when the port last reported a frame, or had none
    Nanos wire_free_at_ = 0;      ///< by_clock_: when the last frame is on the wire
    std::uint32_t reported_ = 0;  ///< frames, as sent_next_
    Segment* burst_[kBurst];
    std::uint16_t sent_[kSentMax] = {};
};

}  // namespace ulc::engine
