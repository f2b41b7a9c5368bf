// SPDX-License-Identifier: BSD-3-Clause
// A processor that a polling process shares with others: the process runs for a while, and then
// others do, for lengths drawn at random. While others run, nothing of the process happens.
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "base/units.h"

namespace ulc::sim {

/// Mean times; the lengths are uniform from 0 to twice the mean. away 0: its own processor.
struct Sharing {
    Nanos runs = 0;
    Nanos away = 0;
};

class SharedProcessor {
public:
    SharedProcessor(const Sharing& sharing, std::uint64_t seed) : sharing_(sharing), prng_(seed) {}

    /// Returns the first time from `now` on at which the process runs. It loses the processor
    /// `early` before the others of the same process do. `now` must not fall between calls.
    [[nodiscard]] Nanos next(Nanos now, Nanos early = 0) {
        if (sharing_.away == 0) return now;
        while (now >= back_) {
            leaves_ = back_ + 1 + length(sharing_.runs);
            back_ = leaves_ + 1 + length(sharing_.away);
        }
        return now + early < leaves_ ? now : back_;
    }

private:
    [[nodiscard]] Nanos length(Nanos mean) {
        return static_cast<Nanos>(prng_.below(static_cast<std::uint64_t>(2 * mean)));
    }

    Sharing sharing_;
    Prng prng_;
    Nanos leaves_ = 0;
    Nanos back_ = 0;
};

}  // namespace ulc::sim
