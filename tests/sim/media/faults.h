// What may befall a frame on its last metre, judged for each receiver by itself when the frame arrives there. Every medium
// has one; all of it may be changed while the run goes on, and heal() ends it.
//
//   frame from a for b ─▶ cable in? ─▶ same partition? ─▶ scripted loss? ─▶ burst, loss ─▶ corrupted? ─▶ doubled? ─▶ late?
//
// Each receiver draws from a generator of its own, so that what is done to one changes nothing for another.
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

/// Losses that come together (Gilbert 1960, Elliott 1963): a receiver is in its good or in its bad state, and changes before
/// it sees a frame. A share of enter / (enter + leave) of the frames meets the bad state, 1 / leave of them at a stretch.
struct BurstLoss {
    double enter = 0;  ///< chance of the bad state after the good one; 0: none of this
    double leave = 1;  ///< chance of the good state after the bad one
    double loss = 1;   ///< in the bad state
};

/// Chances are per frame and receiver, 0 … 1.
struct FaultRates {
    double loss = 0;
    BurstLoss burst;
    double corrupt = 0;  ///< damage that the FCS does not show: in a switch's or a host's memory
    std::uint32_t corrupt_octets_max = 4;
    double duplicate = 0;  ///< arrives twice; each copy may be late by itself
    double reorder = 0;  ///< chance of being late by up to reorder_delay, so that later frames pass
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
    /// One of what arrives: the frame or a damaged copy, `late` after its time.
    struct Copy {
        FramePtr frame;
        Nanos late = 0;
    };
    using Copies = FixedVector<Copy, 2>;

    Faults(std::uint16_t ports, std::uint64_t seed);

    void set(const FaultRates& rates);
    void set_receiver(std::uint16_t to, const FaultRates& rates);
    /// The next n frames that arrive at `to` from `from` are lost.
    void lose_next(std::uint16_t from, std::uint16_t to, std::uint32_t n);
    /// Ports of different islands do not hear each other. islands: a number for each port.
    void partition(std::span<const std::uint16_t> islands);
    /// Nothing from `from` arrives at `to`, until it is said again with false. The other direction is not touched.
    void cut(std::uint16_t from, std::uint16_t to, bool is_cut);
    /// Loses all frames from `from` but NODE frames: its engine answers pings, and nothing else.
    void mute(std::uint16_t from);
    /// Pulls or plugs in a port's cable: nothing comes or goes; its transmitter sends into the void.
    void unplug(std::uint16_t port, bool unplugged = true);
    [[nodiscard]] bool is_unplugged(std::uint16_t port) const { return receivers_[port].unplugged; }
    /// No rates, scripts, cuts or partition any more; all cables in again, unless they are to stay out.
    void heal(bool keep_unplugged = false);

    /// What arrives of a frame, at its time of arrival; empty: nothing.
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
