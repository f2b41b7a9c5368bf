// SPDX-License-Identifier: BSD-3-Clause
// Seeded faults of one output port: which frames are lost, repeated, held back, and for how long.
// Each port draws from its own generator, so the fate of a flooded frame is independent for each
// receiver, and one port's traffic does not change another port's faults. The same seed and the
// same frames give the same faults. Pure.
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "base/units.h"

namespace ulc::ether_switch {

struct FaultConfig {
    double loss = 0;       ///< probability that a frame is lost
    double duplicate = 0;  ///< probability that it is sent twice
    double reorder = 0;    ///< probability that later frames overtake it
    Nanos delay = 0;       ///< delay of every frame
    Nanos jitter = 0;      ///< more delay, uniform below this; frames may overtake each other
    Nanos hold = 100 * kMicrosecond;  ///< a reordered frame waits this long, up to twice
    [[nodiscard]] bool any() const noexcept {
        return loss > 0 || duplicate > 0 || reorder > 0 || delay > 0 || jitter > 0;
    }
};

/// The fate of one frame on one output port.
struct Fate {
    int copies = 1;           ///< 0: lost
    bool held = false;        ///< reordered: the first copy leaves the order of the others
    Nanos after[2] = {0, 0};  ///< delay of each copy
};

class FaultModel {
public:
    FaultModel(const FaultConfig& config, std::uint64_t seed, std::uint16_t port) noexcept
        : config_(config), prng_(seed * 0x9e3779b97f4a7c15U + port) {}

    /// Draws the same number of times for every frame, so one probability does not shift another's
    /// choices.
    [[nodiscard]] Fate judge() noexcept {
        Fate fate;
        const bool lost = prng_.chance(config_.loss);
        const bool twice = prng_.chance(config_.duplicate);
        fate.held = prng_.chance(config_.reorder);
        const Nanos hold = config_.hold + below(config_.hold);
        fate.after[0] = config_.delay + below(config_.jitter) + (fate.held ? hold : 0);
        fate.after[1] = config_.delay + below(config_.jitter);
        fate.copies = lost ? 0 : twice ? 2 : 1;
        return fate;
    }

private:
    [[nodiscard]] Nanos below(Nanos bound) noexcept {
        return static_cast<Nanos>(prng_.below(static_cast<std::uint64_t>(bound)));
    }

    FaultConfig config_;
    Prng prng_;
};

}  // namespace ulc::ether_switch
