// SPDX-License-Identifier: BSD-3-Clause
// Divides the thread of a waiting rank between ULC, the MPI, and the processes that share its core.
// Pure: the caller reads the clock and acts. Used by session.h.
//
// Alone on a core, a round is many polls of ULC and one of the MPI. On a shared core, each process
// that waits delays the one that brings it work by its whole round, so a round is short: few polls,
// and the MPI's progress, which asks the kernel for its sockets, only in every fourth. Rounds are
// counted, and not time: the fewer processes share the core, the sooner the MPI has its turn, which
// another rank's MPI_Put may wait for.
#pragma once

#include "base/idle_ladder.h"
#include "base/units.h"

namespace ulc::mpi {

class Pace {
public:
    /// Rounds of waits on a shared core from one turn of the MPI to the next.
    static constexpr unsigned kMpiApart = 4;

    /// Begins a wait. Whether the core is shared stays known from the waits before.
    void begin() noexcept { ladder_.busy(); }

    /// Polls of ULC in the next round.
    [[nodiscard]] unsigned polls() const noexcept {
        return ladder_.shares_its_core(at_) ? kPollsShared : kPollsAlone;
    }

    /// True if the round that ends at `now` must drive the MPI's progress.
    [[nodiscard]] bool mpi_is_due(Nanos now) noexcept {
        at_ = now;
        if (ladder_.shares_its_core(now) && ++rounds_ < kMpiApart) return false;
        rounds_ = 0;
        return true;
    }

    /// The finding of the polls of a round. Frames are a part of what completes something later.
    enum class Found : unsigned char { kNothing, kFrames, kCompletion };

    /// Returns whether to yield before the next round. There is no nap: another rank may wait for a
    /// message of the MPI that only this wait moves.
    [[nodiscard]] bool yields(Found found, Nanos now) noexcept {
        if (found == Found::kCompletion) {
            ladder_.busy();
            return false;
        }
        if (found == Found::kFrames) ladder_.moved(now);
        return ladder_.idle(now) != IdleLadder::Step::kSpin;
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
    unsigned rounds_ = 0;  ///< since the MPI's last turn
};

}  // namespace ulc::mpi
