// SPDX-License-Identifier: BSD-3-Clause
// Decides what a poller does while nothing moves: spin, then yield, then nap. Pure: the caller
// reads the clock and acts.
//
// A poller alone on its core should spin: any system call costs latency. One that shares its core
// must not, or the thread that would bring it work waits for a whole time slice (milliseconds). A
// process cannot ask which case it is, but sched_yield() shows it: it returns at once if no other
// thread is runnable here, and late if another one ran. So there is no spin while yields have
// lately been slow, and a long one while they have been quick. One slow yield proves nothing: alone
// on a core, one in three hundred is slow (an interrupt, a helper thread that naps). If each one
// counted, the many yields without a spin would keep the mistake alive without end. So slow yields
// must outweigh quick ones.
#pragma once

#include <utility>

#include "base/units.h"

namespace ulc {

class IdleLadder {
public:
    struct Limits {
        Nanos spin = 50 * kMicrosecond;        ///< before the first yield, alone on a core
        Nanos yield_slow = 1500;               ///< after a longer yield, another thread ran
        Nanos shared_for = 20 * kMillisecond;  ///< how long the finding counts
        Nanos nap_after = 5 * kMillisecond;    ///< idle for this time: nap
        Nanos nap = 200 * kMicrosecond;        ///< first nap; doubles up to nap_max
        Nanos nap_max = 1 * kMillisecond;
    };

    enum class Step : unsigned char { kSpin, kYield, kNap };

    IdleLadder() = default;
    explicit IdleLadder(const Limits& limits) : limits_(limits) {}

    /// Notes that something moved.
    void busy() noexcept { idle_since_ = kNever; }
    /// Notes that a part of what is awaited may have moved, such as a frame of a long message:
    /// there is more to come soon. The next nap comes as if nothing had.
    void moved(Nanos now) noexcept { spins_until_ = now + limits_.spin; }
    /// Notes that something moved that announces nothing more, like two idle nodes that ask each
    /// other whether they live: a nap that was reached continues, beginning short. Counted as
    /// busy() it would cost nap_after of polling each time.
    void stirred() noexcept { nap_ = limits_.nap; }

    /// Returns what to do before the next round, if nothing moved in the round at `now`.
    [[nodiscard]] Step idle(Nanos now) noexcept {
        if (idle_since_ == kNever) {
            idle_since_ = now;
            spins_until_ = now + limits_.spin;
            nap_ = limits_.nap;
            // It is not known yet which thread the nap's end displaced: perhaps the one that waits
            // for the result of this round.
            if (std::exchange(napped_, false)) return Step::kYield;
        }
        const Nanos idle = now - idle_since_;
        if (idle >= limits_.nap_after) return Step::kNap;
        return now < spins_until_ && !shares_its_core(now) ? Step::kSpin : Step::kYield;
    }

    /// Notes a yield that lasted from before to after.
    void yielded(Nanos before, Nanos after) noexcept {
        if (after - before <= limits_.yield_slow) {
            if (slow_score_ > 0) --slow_score_;
            return;
        }
        slow_score_ = slow_score_ < kSlowScoreMax ? slow_score_ + kSlowWeight : kSlowScoreMax;
        if (slow_score_ >= kSlowScoreShared) shared_until_ = after + limits_.shared_for;
    }

    /// Returns the length of the next nap; later naps of this idle time are longer.
    [[nodiscard]] Nanos next_nap() noexcept {
        const Nanos nap = nap_;
        napped_ = true;
        nap_ = nap_ * 2 < limits_.nap_max ? nap_ * 2 : limits_.nap_max;
        return nap;
    }

    [[nodiscard]] bool shares_its_core(Nanos now) const noexcept { return now < shared_until_; }

private:
    // Two slow yields with fewer than two quick ones between them; or, of many, more than one in
    // four.
    static constexpr int kSlowWeight = 3;
    static constexpr int kSlowScoreShared = 5;
    static constexpr int kSlowScoreMax = 12;

    Limits limits_;
    Nanos idle_since_ = kNever;
    Nanos spins_until_ = 0;
    Nanos shared_until_ = 0;
    Nanos nap_ = 0;
    int slow_score_ = 0;
    bool napped_ = false;  ///< since anything moved
};

}  // namespace ulc
