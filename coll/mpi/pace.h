// SPDX-License-Identifier: BSD-3-Clause
// Divides the thread of a waiting rank between ULC, the MPI, and the processes that share its core.
// Pure: the caller reads the clock and acts. Used by session.h.
//
// Alone on a core, a round is many polls of ULC and one of the MPI. On a shared core, each process
// that waits delays the one that brings it work by its whole round, so a round is short: few polls,
// and the MPI's progress, which asks the kernel for its sockets, only once in kMpiApart.
#pragma once

#include "base/idle_ladder.h"
#include "base/units.h"

namespace ulc::mpi {

class Pace {
public:
    /// Longest time that a wait on a shared core leaves the MPI's messages alone.
    static constexpr Nanos kMpiApart = 100 * kMicrosecond;

    /// Begins a wait. Whether the core is shared stays known from the waits before.
    void begin() noexcept { ladder_.busy(); }

    /// Polls of ULC in the next round.
    [[nodiscard]] unsigned polls() const noexcept {
        return ladder_.shares_its_core(at_) ? kPollsShared : kPollsAlone;
    }

    /// True if the round that ends at `now` must drive the MPI's progress.
    [[nodiscard]] bool mpi_is_due(Nanos now) noexcept {
        at_ = now;
        if (ladder_.shares_its_core(now) && now - mpi_at_ < kMpiApart) return false;
        mpi_at_ = now;
        return true;
    }

    /// Returns whether to yield before the next round. There is no nap: another rank may wait for a
    /// message of the MPI that only this wait moves.
    [[nodiscard]] bool yields(bool moved, Nanos now) noexcept {
        if (!moved) return ladder_.idle(now) != IdleLadder::Step::kSpin;
        ladder_.busy();
        return false;
    }

    /// Notes a yield that lasted from before to after.
    void yielded(Nanos before, Nanos after) noexcept {
        ladder_.yielded(before, after);
        at_ = after;
    }

private:
    static constexpr unsigned kPollsAlone = 16;
    static constexpr unsigned kPollsShared = 2;

    IdleLadder ladder_;
    Nanos at_ = 0;
    Nanos mpi_at_ = -kMpiApart;
};

}  // namespace ulc::mpi
