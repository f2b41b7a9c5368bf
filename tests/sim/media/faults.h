// SPDX-License-Identifier: BSD-3-Clause
// Faults of a frame on its last segment, decided for each receiver separately when the frame
// arrives there. Every medium has one; all of it may be changed during the run, and heal() ends it.
//
//   frame from a for b ─▶ cable in? ─▶ same partition? ─▶ scripted loss? ─▶ burst, loss
//                                                       ─▶ corrupted? ─▶ doubled? ─▶ late?
//
// Each receiver draws from a separate generator, so that the faults of one change nothing for
// another.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/bounded.h"
#include "base/prng.h"
#include "base/units.h"
#include "medium.h"

namespace ulc::sim {

/// Losses that come together (Gilbert 1960, Elliott 1963): a receiver is in its good or in its bad
/// state, and changes before it sees a frame. A share of enter / (enter + leave) of the frames
/// meets the bad state, 1 / leave of them at a stretch.
struct BurstLoss {
    double enter = 0;  ///< probability of the bad state after the good one; 0: no bursts
    double leave = 1;  ///< probability of the good state after the bad one
    double loss = 1;   ///< in the bad state
};

/// Probabilities are per frame and receiver, 0 … 1.
struct FaultRates {
    double loss = 0;
    BurstLoss burst;
    double corrupt = 0;  ///< damage that the FCS does not show: in a switch's or a host's memory
    std::uint32_t corrupt_octets_max = 4;
    double duplicate = 0;  ///< arrives twice; each copy may be late by itself
    /// Probability of a delay of up to reorder_delay, so that later frames pass
    double reorder = 0;
    Nanos reorder_delay = 50 * kMicrosecond;
};

struct FaultCounts {
    std::uint64_t lost = 0;  ///< by chance, by burst or by script
    std::uint64_t cut = 0;   ///< partition or unplugged
    std::uint64_t corrupted = 0;
    std::uint64_t duplicated = 0;
    std::uint64_t late = 0;
};

class Faults {
public:
    /// One of the frames that arrive: the frame or a damaged copy, `late` after its time.
    struct Copy {
        FramePtr frame;
        Nanos late = 0;
    };
    using Copies = FixedVector<Copy, 2>;

    Faults(std::uint16_t ports, std::uint64_t seed);

    void set(const FaultRates& rates);
    void set_receiver(std::uint16_t to, const FaultRates& rates);
    /// Loses the next n frames that arrive at `to` from `from`.
    void lose_next(std::uint16_t from, std::uint16_t to, std::uint32_t n);
    /// Separates ports of different islands. `islands`: a number for each port.
    void partition(std::span<const std::uint16_t> islands);
    /// Blocks all frames from `from` to `to`, until it is called again with false. The other
    /// direction is not affected.
    void cut(std::uint16_t from, std::uint16_t to, bool is_cut);
    /// Loses all frames from `from` except NODE frames: its engine answers pings, and nothing else.
    void mute(std::uint16_t from);
    /// Loses frames to and from that port with more bytes after the Ethernet header.
    void set_longest(std::uint16_t port, std::size_t octets) { receivers_[port].longest = octets; }
    /// Unplugs or plugs in a port's cable: no frame passes; frames of its transmitter are lost.
    void unplug(std::uint16_t port, bool unplugged = true);
    [[nodiscard]] bool is_unplugged(std::uint16_t port) const { return receivers_[port].unplugged; }
    /// Removes all rates, scripts, cuts and partitions; plugs all cables in again, unless they are
    /// to stay out.
    void heal(bool keep_unplugged = false);

    /// Returns the copies of a frame that arrive, at its time of arrival; empty: none.
    [[nodiscard]] Copies judge(std::uint16_t from, std::uint16_t to, const FramePtr& frame);
    [[nodiscard]] const FaultCounts& counts(std::uint16_t to) const {
        return receivers_[to].counts;
    }

private:
    struct Receiver {
        explicit Receiver(std::uint64_t seed) : prng(seed) {}
        Prng prng;
        FaultRates rates;
        bool has_rates = false;
        bool in_burst = false;
        bool unplugged = false;
        std::size_t longest = SIZE_MAX;  ///< without the Ethernet header
        std::uint16_t island = 0;
        FaultCounts counts;
    };
    using Pair = std::pair<std::uint16_t, std::uint16_t>;

    static void apply(Receiver& receiver, const FaultRates& rates);
    [[nodiscard]] bool is_apart(std::uint16_t from, std::uint16_t to) const;
    [[nodiscard]] bool loses(std::uint16_t from, std::uint16_t to);
    [[nodiscard]] static FramePtr damaged(Receiver& receiver, const FramePtr& frame);

    std::vector<Receiver> receivers_;
    std::map<Pair, std::uint32_t> scripted_;
    std::set<Pair> cuts_;
    std::set<std::uint16_t> mute_;
};

}  // namespace ulc::sim
