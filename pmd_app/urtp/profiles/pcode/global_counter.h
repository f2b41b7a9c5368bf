// SPDX-License-Identifier: BSD-3-Clause
// The global counter of one group at one member, and its knowledge of the others' (PCODE §5.1,
// §5.2).
//
// Every message has its sender's counter, one more than the highest that the sender had seen
// without a gap. So the counters of a group number its messages roughly, and each value was put on
// at least one message:
//
//              current            top
//   ─────■■■■■■■■■■■┴·■··■■─·──■─────┴──▶      ■ seen on a message, · not yet
//                    └ gap: a message of some member is missing, or late
//
// A counter beyond a gap is remembered until the gap closes (the paper's list of saved counters,
// here one bit a value). A PROGRESS counter reports how far its sender has come and was on no
// message of it ("non-original"): it advances only that member's mark. heard(i), the paper's
// gcv[i], is the mark unless it is beyond a gap here. (A member that reports n had seen all up to
// n, so if the paper's list still holds n back, i has come at least to the gap.)
//
// Bounded: a counter further ahead than `range` is refused; a gap that no member can fill (its
// sender died) is skipped by skip_gap().
#pragma once

#include <cstdint>
#include <memory>

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp::pcode {

class GlobalCounter {
public:
    /// `members`: those of the group, ≥ 1; `own`: index < members. `range`: power of two ≥ 64.
    /// Allocates; nothing else here does.
    GlobalCounter(std::uint32_t members, std::uint32_t own, std::uint32_t range);

    /// Returns the counter of a message of ours that is sent for the first time.
    std::uint32_t on_send() noexcept;
    /// Notes that a message of `member` with `counter` was accepted. Returns false if no honest
    /// member can be that far ahead.
    [[nodiscard]] bool on_message(std::uint32_t member, std::uint32_t counter) noexcept;
    /// Notes the counter that `member` reported in a STATUS. Returns false as above.
    [[nodiscard]] bool on_progress(std::uint32_t member, std::uint32_t counter) noexcept;
    /// Notes that our counter was reported to the others in a STATUS.
    void on_told() noexcept;
    /// Removes a `member` that left or died: it holds no other back.
    void remove(std::uint32_t member) noexcept;

    /// GlobalCounter.
    [[nodiscard]] std::uint32_t current() const noexcept { return current_; }
    /// Returns gcv[member].
    [[nodiscard]] std::uint32_t heard(std::uint32_t member) const noexcept;
    /// Returns current() less the minimum of the others' gcv: how many messages the slowest may
    /// lack.
    [[nodiscard]] std::uint32_t spread() noexcept;
    /// Returns current() less our counter as last reported to the others: by a message or a STATUS.
    [[nodiscard]] std::uint32_t untold() const noexcept { return current_ - mark_[own_]; }
    /// Returns current() less the counter of the last STATUS.
    [[nodiscard]] std::uint32_t since_status() const noexcept { return current_ - last_status_; }

    /// Returns the first gap as [from, to); false if there is none.
    [[nodiscard]] bool gap(std::uint32_t& from, std::uint32_t& to) const noexcept;
    void fields(state::Archive& archive);  ///< urtp/state/
    /// Skips the first gap, for which no member answers.
    void skip_gap() noexcept;

private:
    [[nodiscard]] bool seen(std::uint32_t counter) const noexcept {
        const std::uint32_t at = counter & mask_;
        return (seen_[at / 64] >> (at % 64) & 1U) != 0;
    }
    void advance() noexcept;
    void mark(std::uint32_t member, std::uint32_t counter) noexcept;

    const std::uint32_t members_;
    const std::uint32_t own_;
    const std::uint32_t mask_;
    std::uint32_t current_ = 0;
    std::uint32_t top_ = 0;  ///< highest counter seen on a message
    std::uint32_t last_status_ = 0;
    std::uint32_t least_ = 0;  ///< minimum mark of the others, when it is fresh
    bool fresh_ = false;
    std::unique_ptr<std::uint64_t[]>
        seen_;  ///< counters of (current, current + range): bit of counter mod range
    std::unique_ptr<std::uint32_t[]> mark_;  ///< by member: the highest that it reported
    std::unique_ptr<bool[]> absent_;
};

}  // namespace ulc::urtp::pcode
