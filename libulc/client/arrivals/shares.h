// SPDX-License-Identifier: BSD-3-Clause
// The part of an endpoint's memory that messages of one sender without a receive may hold. Used by
// Arrivals, Inbox and the notes to peers and to the engine.
//
// Share. A sender whose messages hold more bytes than are free is stopped: the engine takes no
// further message of it, and its own credit stops it. It goes on when it holds at most half of
// the free bytes (dynamic thresholds, Choudhury and Hahne 1998). So a sender that sends without end
// leaves half of the memory to others, and k of them at least the 2^k-th part. Messages that hold
// at most half of the memory together stop no sender, however many there are. Messages that were
// on their way when a sender is stopped come in addition: at most the completion ring and the
// receive arena, for all senders together.
//
// Order holds, because the engine stops all streams of the sender together. A multicast of a
// stopped sender waits for this member, as for each member without memory.
//
// No circle of ranks waits because of a share, unless it would wait at the limit of all as well:
//   - A note to the engine waits behind no send (abi::SourceNote). So memory of messages that the
//     application has received is free for their sender, whatever else waits.
//   - The rest of a message that has a receive, or for which ulc_take() waits, needs no memory of
//     the share. It is taken to its end (Intake::kToEnd).
//   - A sender that may be asked to hold (ulc_set_rendezvous) is asked at a quarter of its share.
//     From then on its long messages are announced, and each holds one Arrival.
//   - A sender that dies is taken to its end, so that its death is reported.
// A rank that waits for a message behind more unexpected ones of the same sender than the share
// must receive some of those first. ULC_ERR_LIMIT names the sender to the error handler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/endpoint_region.h"
#include "client/arrivals/arrival.h"

namespace ulc::client {

class Arrivals;

class Shares {
public:
    /// The references outlive this. `limit`: bytes of memory of all senders.
    Shares(const Arrivals& arrivals, const ErrorHandler& handler, std::uint64_t limit) noexcept
        : arrivals_(arrivals), handler_(handler), limit_(limit) {}
    /// Begins a job of that number of ranks. Returns false if out of memory.
    [[nodiscard]] bool begin_job(std::uint16_t ranks) noexcept;

    // --- memory of all senders
    [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
    [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
    /// Returns the memory that is free for messages without a receive.
    [[nodiscard]] std::uint64_t unused() const noexcept { return limit_ - std::min(used_, limit_); }
    /// Replaces `before` bytes by `after`. Returns false, with nothing changed, above the limit.
    [[nodiscard]] bool resize(std::uint64_t before, std::uint64_t after) noexcept {
        if (used_ - before + after > limit_) return false;
        used_ = used_ - before + after;
        return true;
    }
    /// Takes memory without which no message could be received, whatever the limit.
    void take_always(std::uint64_t octets) noexcept { used_ += octets; }
    void give_back(std::uint64_t octets) noexcept { used_ -= octets; }

    // --- memory of one sender
    /// Replaces `before` bytes of the sender's share by `after`.
    void charge(std::uint16_t source, std::uint64_t before, std::uint64_t after) noexcept {
        senders_[source].memory = senders_[source].memory - before + after;
    }
    /// Decides again whether the sender is stopped.
    void judge(std::uint16_t source) noexcept;
    void judge_if_stopped(std::uint16_t source) noexcept {
        if (senders_[source].intake != abi::Intake::kAll) judge(source);
    }
    /// Counts bytes of an unexpected message, for the share and for Holds.
    void count(Arrival& arrival, std::uint64_t octets) noexcept;
    void uncount(Arrival& arrival) noexcept;
    /// Notes that the source will be another peer, which has not been asked to hold.
    void forget(std::uint16_t source) noexcept { senders_[source].told = false; }

    // --- Holds, for the senders (rendezvous.h)
    /// Sets the bytes of one sender above which it has to hold; UINT64_MAX: none.
    void set_held_max(std::uint64_t octets) noexcept { held_max_ = octets; }
    [[nodiscard]] bool has_holds() const noexcept { return !to_hold_.empty(); }
    /// Calls tell(source, hold) for senders that are to hold or to go on, at most `most` of them;
    /// tell returns false if it could not be said now.
    template <typename Tell>
    void each_to_hold(unsigned most, Tell tell) noexcept {
        for (; most > 0 && !to_hold_.empty(); --most) {
            if (hold_turn_ >= to_hold_.size()) hold_turn_ = 0;
            const std::uint16_t source = to_hold_[hold_turn_];
            Sender& sender = senders_[source];
            if (sender.holds != sender.told && !tell(source, sender.holds)) {
                ++hold_turn_;
                continue;
            }
            sender.told = sender.holds;
            sender.listed = false;
            to_hold_[hold_turn_] = to_hold_.back();
            to_hold_.pop_back();
        }
    }

    // --- intakes, for the engine (abi::SourceNote)
    /// True if next_intake() has something, or may have.
    [[nodiscard]] bool has_intakes() const noexcept {
        return !to_note_.empty() || !stopped_.empty();
    }
    /// Names the next sender of which the engine shall take other messages than before.
    /// Returns false if there is none.
    [[nodiscard]] bool next_intake(std::uint16_t& source, abi::Intake& intake) noexcept;
    /// Returns the messages of the sender that are taken.
    [[nodiscard]] abi::Intake intake_of(std::uint16_t source) const noexcept {
        return senders_[source].intake;
    }
    /// `memory`: bytes that messages of each sender hold.
    void check_invariants(const std::vector<std::uint64_t>& memory) const;

private:
    friend struct Breaker;
    struct Sender {
        std::uint64_t held = 0;  ///< bytes of its unexpected messages
        bool holds = false;
        bool told = false;    ///< the last word to it was Hold
        bool listed = false;  ///< in to_hold_
        bool noted = false;   ///< in to_note_
        abi::Intake intake = abi::Intake::kAll;
        abi::Intake noted_intake = abi::Intake::kAll;
        std::uint64_t memory = 0;  ///< bytes of its Arrivals and of their copies
    };

    void judge_hold(std::uint16_t source) noexcept;
    [[nodiscard]] abi::Intake due_intake(std::uint16_t source) const noexcept;

    const Arrivals& arrivals_;
    const ErrorHandler& handler_;
    std::vector<Sender> senders_;         ///< by rank
    std::vector<std::uint16_t> to_hold_;  ///< capacity for all
    std::vector<std::uint16_t> to_note_;  ///< the engine shall hear of them; capacity for all
    std::vector<std::uint16_t> stopped_;  ///< not kAll; capacity for all
    std::size_t stopped_turn_ = 0;        ///< into stopped_
    std::size_t hold_turn_ = 0;           ///< into to_hold_
    std::uint64_t held_max_ = UINT64_MAX;
    std::uint64_t limit_;
    std::uint64_t used_ = 0;
};

}  // namespace ulc::client
