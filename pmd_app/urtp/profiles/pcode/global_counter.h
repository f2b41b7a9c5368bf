// The global counter of one group at one member, and what it knows of the others' (PCODE §5.1, §5.2).
//
// Every message carries its sender's counter, one more than the highest that the sender had seen without a gap. So the
// counters of a group number its messages roughly, and each value was put on at least one message:
//
//              current            top
//   ─────■■■■■■■■■■■┴·■··■■─·──■─────┴──▶      ■ seen on a message, · not yet
//                    └ gap: somebody's message is missing, or late
//
// A counter beyond a gap is remembered until the gap closes (the paper's list of saved counters, here one bit a value). A
// PROGRESS counter says how far its sender has come and was on no message of it ("non-original"): it moves that member's
// mark alone. heard(i), the paper's gcv[i], is the mark as far as it is not beyond a gap here. (Who says n had seen all
// up to n, so where the paper's list still holds n back, i has come at least to the gap.)
//
// Bounded: a counter further ahead than `range` is refused; a gap that nobody can fill (its sender died) is skipped by skip_gap().
#pragma once

#include <cstdint>
#include <memory>

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp::pcode {

class GlobalCounter {
public:
    /// members: of the group, ≥ 1; own: index < members. range: power of two ≥ 64. Allocates; nothing else here does.
    GlobalCounter(std::uint32_t members, std::uint32_t own, std::uint32_t range);

    /// A message of ours is sent for the first time: the counter it carries.
    std::uint32_t on_send() noexcept;
    /// A message of `member` was accepted, carrying `counter`. False: no honest member can be so far ahead.
    [[nodiscard]] bool on_message(std::uint32_t member, std::uint32_t counter) noexcept;
    /// `member` told its counter in a STATUS. False as above.
    [[nodiscard]] bool on_progress(std::uint32_t member, std::uint32_t counter) noexcept;
    /// The others were told ours in a STATUS.
    void on_told() noexcept;
    /// `member` left or died: it holds nobody back.
    void remove(std::uint32_t member) noexcept;

    /// GlobalCounter.
    [[nodiscard]] std::uint32_t current() const noexcept { return current_; }
    /// gcv[member].
    [[nodiscard]] std::uint32_t heard(std::uint32_t member) const noexcept;
    /// current() less the least of the others' gcv: how many messages the slowest may lack.
    [[nodiscard]] std::uint32_t spread() noexcept;
    /// current() less what the others were told of ours: by a message or a STATUS.
    [[nodiscard]] std::uint32_t untold() const noexcept { return current_ - mark_[own_]; }
    /// current() less what the last STATUS said.
    [[nodiscard]] std::uint32_t since_status() const noexcept { return current_ - last_status_; }

    /// The first gap is [from, to); false: there is none.
    [[nodiscard]] bool gap(std::uint32_t& from, std::uint32_t& to) const noexcept;
    void fields(state::Archive& archive);  ///< urtp/state/
    /// Nobody answers for the first gap: goes on behind it.
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
    std::uint32_t least_ = 0;  ///< least mark of the others, when it is fresh
    bool fresh_ = false;
    std::unique_ptr<std::uint64_t[]>
        seen_;  ///< of (current, current + range): bit of counter mod range
    std::unique_ptr<std::uint32_t[]> mark_;  ///< by member: the highest that it told
    std::unique_ptr<bool[]> absent_;
};

}  // namespace ulc::urtp::pcode
