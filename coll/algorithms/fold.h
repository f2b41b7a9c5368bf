// SPDX-License-Identifier: BSD-3-Clause
// Folding operands into one range, x ∘ y ∘ z …, strictly in the order in which they are added, with
// brackets from the left. So each rank that adds the same operands in the same order has the same
// result, to the last bit of a floating-point number.
//
// No operand is copied unless it is the only one: one that is received first comes straight into
// the range, and one that this rank holds waits for the second.
#pragma once

#include <array>
#include <cstdint>

#include "base/check.h"
#include "coll/plan.h"

namespace ulc::coll {

/// A ring of scratch ranges for received operands, made as they are needed. A step that takes a
/// slot waits for the operand that had it before, so that no more operands are pending than there
/// are slots.
class Slots {
public:
    struct Slot {
        std::size_t number;
        /// The step after which the slot may be used; the user of the slot sets the next.
        std::uint32_t* free;
    };
    /// `octets`: maximum of an operand.
    Slots(Plan& plan, std::uint64_t octets) : plan_(&plan), octets_(octets) { free_.fill(kNoStep); }

    [[nodiscard]] Slot next() {
        const std::size_t i = at_++ % kSegmentWindow;
        return {i, &free_[i]};
    }
    [[nodiscard]] Range memory(const Slot& slot, std::uint64_t octets) {
        Range& range = ranges_[slot.number];
        ULC_CHECK(octets <= octets_);
        if (range.length == 0) range = plan_->scratch(octets_);
        return range.part(0, octets);
    }

private:
    Plan* plan_;
    std::uint64_t octets_;
    std::array<Range, kSegmentWindow> ranges_{};
    std::array<std::uint32_t, kSegmentWindow> free_{};
    std::size_t at_ = 0;
};

class Fold {
public:
    /// `free`: the step after which `into` may be written. An operand that is in `into` already may
    /// only be the first.
    Fold(Plan& plan, Range into, std::uint32_t free = kNoStep)
        : plan_(&plan), into_(into), last_(free) {}

    /// The operand is there when step `ready` is done, and stays until done().
    void add(Range operand, std::uint32_t ready = kNoStep) {
        if (state_ == State::kEmpty && operand.at(into_) && ready == kNoStep) {
            state_ = State::kBegun;
        } else if (state_ == State::kEmpty) {
            state_ = State::kHeld;
            held_ = operand;
            held_ready_ = ready;
        } else {
            put(operand, ready);
        }
    }

    /// Receives `octets` from a peer, and adds the part of them that begins at `at`. Returns the
    /// receive. No more are pending than there are slots.
    std::uint32_t receive(std::uint16_t peer, std::uint64_t octets, Slots& slots,
                          std::uint64_t at = 0) {
        const Slots::Slot slot = slots.next();
        if (state_ != State::kBegun && octets == into_.length) {
            ULC_CHECK(at == 0);
            const std::uint32_t received =
                plan_->after(last_).after(*slot.free).receive(peer, into_);
            last_ = received;
            if (state_ == State::kHeld)
                last_ = plan_->after(received).after(held_ready_).reduce(into_, held_, into_);
            state_ = State::kBegun;
            *slot.free = last_;
            return received;
        }
        const Range message = slots.memory(slot, octets);
        const std::uint32_t received = plan_->after(*slot.free).receive(peer, message);
        put(message.part(at, into_.length), received);
        *slot.free = last_;
        return received;
    }
    std::uint32_t receive(std::uint16_t peer, Slots& slots) {
        return receive(peer, into_.length, slots);
    }

    /// Ends the fold: an operand that is still held back is copied, by a separate step. Returns the
    /// step after which `into` holds everything added.
    [[nodiscard]] std::uint32_t done() {
        if (state_ == State::kHeld)
            last_ = plan_->after(last_).after(held_ready_).copy(into_, held_);
        state_ = State::kBegun;
        return last_;
    }

private:
    enum class State : std::uint8_t { kEmpty, kHeld, kBegun };

    /// Adds the operand, there after step `ready`, to the range, behind the present content, or
    /// holds it back.
    void put(Range operand, std::uint32_t ready) {
        plan_->after(last_).after(ready);
        if (state_ == State::kEmpty) {
            last_ = plan_->copy(into_, operand);
        } else if (state_ == State::kHeld) {
            last_ = plan_->after(held_ready_).reduce(into_, held_, operand);
        } else {
            last_ = plan_->reduce(into_, into_, operand);
        }
        state_ = State::kBegun;
    }

    Plan* plan_;
    Range into_;
    std::uint32_t last_;
    State state_ = State::kEmpty;
    Range held_{};
    std::uint32_t held_ready_ = kNoStep;
};

}  // namespace ulc::coll
