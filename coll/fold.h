// Folding operands into one range, x ∘ y ∘ z …, strictly in the order in which they are added, with brackets from the left. So
// whoever adds the same operands in the same order has the same result, to the last bit of a floating-point number.
#pragma once

#include <array>
#include <cstdint>

#include "coll/plan.h"

namespace ulc::coll {

/// A ring of scratch ranges that operands are received into.
class Slots {
public:
    struct Slot {
        Range range;
        std::uint32_t*
            free;  ///< the step after which the range may be written; whoever uses it says the next
    };
    Slots(Plan& plan, std::uint64_t octets) {
        free_.fill(kNoStep);
        for (Range& range : ranges_)
            range = plan.scratch(octets);
    }
    [[nodiscard]] Slot next(std::uint64_t octets) {
        const std::size_t i = at_++ % kSegmentWindow;
        return {ranges_[i].part(0, octets), &free_[i]};
    }

private:
    std::array<Range, kSegmentWindow> ranges_;
    std::array<std::uint32_t, kSegmentWindow> free_{};
    std::size_t at_ = 0;
};

class Fold {
public:
    /// free: the step after which `into` may be written. An operand that lies in `into` already may only be the first.
    Fold(Plan& plan, Range into, std::uint32_t free = kNoStep)
        : plan_(&plan), into_(into), last_(free) {}

    /// The operand is there when step `ready` is done. Returns the step after which it is not needed any more.
    std::uint32_t add(Range operand, std::uint32_t ready = kNoStep) {
        const bool first = !begun_;
        begun_ = true;
        if (first && operand.at(into_)) return last_;
        plan_->after(last_).after(ready);
        return last_ = first ? plan_->copy(into_, operand) : plan_->reduce(into_, operand);
    }

    /// Receives `octets` from a peer into a slot, and adds the part of them that begins at `at`. Returns the receive.
    std::uint32_t receive(std::uint16_t peer, std::uint64_t octets, Slots& slots,
                          std::uint64_t at = 0) {
        const Slots::Slot slot = slots.next(octets);
        const std::uint32_t received = plan_->after(*slot.free).receive(peer, slot.range);
        *slot.free = add(slot.range.part(at, into_.length), received);
        return received;
    }
    std::uint32_t receive(std::uint16_t peer, Slots& slots) {
        return receive(peer, into_.length, slots);
    }

    [[nodiscard]] bool begun() const noexcept { return begun_; }
    /// The step after which `into` holds all that was added.
    [[nodiscard]] std::uint32_t done() const noexcept { return last_; }

private:
    Plan* plan_;
    Range into_;
    std::uint32_t last_;
    bool begun_ = false;
};

}  // namespace ulc::coll
