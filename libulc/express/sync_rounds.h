// SPDX-License-Identifier: BSD-3-Clause
// The rounds of express_sync(): a barrier of ⌈log2 n⌉ messages of each process, by dissemination.
// They carry how many messages were sent to whom, so that each process learns how many of them it
// must have handled. Pure. Used by Process.
//
//   s = n;  while s > 1:  h = ⌈s/2⌉;  rank r sends counts h … s − 1 to r + h, and takes such from
//                                     r − h;  s = h
//
// Count i of rank r is that of messages to r + i, from all processes whose counts r has. A round
// moves each count closer to the process that it concerns and adds it there, so none is added
// twice. Count 0 is complete when s is 1. It has then a part of each process, so all have begun.
//
// Invariant: a process sends each other at most one message a barrier, and is at most one barrier
// ahead, so two places for each partner are enough.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace ulc::express {

class SyncRounds {
public:
    using Counts = std::vector<std::uint64_t>;

    /// Exchange partners of a round: a message goes to `to`, and one of `source` comes.
    struct Partner {
        std::uint16_t to;
        std::uint16_t source;
        unsigned counts;     ///< in a message of `source`
        unsigned taken = 0;  ///< messages of `source`, one a barrier
        int error = 0;       ///< why `source` passes no barrier any more; 0: it does
        std::array<Counts, 2> messages{};
    };

    void resize(unsigned rank, unsigned size) {
        rank_ = rank;
        size_ = size;
        partners_.clear();
        for (unsigned span = size; span > 1; span = half(span))
            partners_.push_back({static_cast<std::uint16_t>((rank + half(span)) % size),
                                 static_cast<std::uint16_t>((rank + size - half(span)) % size),
                                 span - half(span)});
        round_ = partners_.size();
    }
    [[nodiscard]] const std::vector<Partner>& partners() const noexcept { return partners_; }

    /// Begins the next barrier. sent: messages to each process since the last one began.
    void begin(const Counts& sent) {
        ULC_CHECK(is_over());
        counts_.resize(size_);
        for (unsigned n = 0; n < size_; ++n)
            counts_[n] = sent[(rank_ + n) % size_];
        span_ = size_;
        round_ = 0;
        ++begun_;
    }
    /// Barriers that have begun.
    [[nodiscard]] unsigned begun() const noexcept { return begun_; }
    [[nodiscard]] bool is_over() const noexcept { return round_ == partners_.size(); }

    /// The partners of this round.
    [[nodiscard]] const Partner& partner() const { return partners_[round_]; }
    /// The counts that partner().to gets, once, when the round begins.
    [[nodiscard]] std::span<const std::uint64_t> counts() const {
        return std::span(counts_).subspan(half(span_), span_ - half(span_));
    }
    /// True if the message has come that ends this round.
    [[nodiscard]] bool has_come() const { return partner().taken >= begun_; }
    /// Ends this round by the message that has come.
    void pass() {
        ULC_CHECK(has_come());
        const Counts& more = partner().messages[begun_ % 2];
        for (std::size_t n = 0; n < more.size(); ++n)
            counts_[n] += more[n];
        span_ = half(span_);
        ++round_;
    }
    /// Messages of the time before this barrier that were sent to this process, when it is over.
    [[nodiscard]] std::uint64_t expected() const { return counts_.empty() ? 0 : counts_[0]; }

    /// Takes a message of a process. False: it has a wrong length, or none is due of that process.
    [[nodiscard]] bool take(std::uint16_t source, Counts counts) {
        Partner* const partner = find(source);
        if (partner == nullptr || partner->taken > begun_ || counts.size() != partner->counts)
            return false;
        ++partner->taken;
        partner->messages[partner->taken % 2] = std::move(counts);
        return true;
    }
    /// The process passes no barrier any more, behind those of which messages have come. False: it
    /// is no partner.
    [[nodiscard]] bool take_error(std::uint16_t source, int error) {
        Partner* const partner = find(source);
        if (partner == nullptr) return false;
        partner->error = error;
        return true;
    }

private:
    [[nodiscard]] Partner* find(std::uint16_t source) noexcept {
        for (Partner& partner : partners_)
            if (partner.source == source) return &partner;
        return nullptr;
    }
    [[nodiscard]] static constexpr unsigned half(unsigned span) noexcept { return (span + 1) / 2; }

    unsigned rank_ = 0;
    unsigned size_ = 0;
    unsigned span_ = 0;
    std::size_t round_ = 0;
    unsigned begun_ = 0;
    Counts counts_;
    std::vector<Partner> partners_;  ///< by round
};

}  // namespace ulc::express
