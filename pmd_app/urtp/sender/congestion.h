// SPDX-License-Identifier: BSD-3-Clause
// Bounds what a stream may have under way so that the ports it shares do not overflow. Pure state
// machines: in go acknowledgements, their times and losses; out comes a number of packets. There
// are three of them, all of which begin by doubling each round trip and cut at most once a round
// trip:
//
//   LossBased        additive increase, multiplicative decrease: one packet more a round trip, half
//                    after a loss (Jacobson 1988)
//   AdaptiveBackoff  the same, but a loss on a path that shows no queue is a bit error and cuts
//                    nothing, unless there are many (after H-TCP and Veno, which weigh the cut by
//                    the delay). Losses tell all streams of a port the same thing, so they share it
//                    fairly, though each has a different idea of the shortest round trip.
//   DelayBased       towards a round trip that is `kTarget` times the shortest seen: more below it,
//                    less above it in proportion (Vegas, TIMELY, Swift). A stream that begins on a
//                    full path takes the queue for the path, and more than its share.
//
// The window may fall below one packet; the pacer then spaces them.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp {

struct CongestionLimits {
    float most = 256;  ///< packets: the stream's window
    float first = 10;  ///< to begin with
};
inline constexpr float kLeastWindow = 0.1F;

class LossBased {
public:
    explicit LossBased(const CongestionLimits& limits) noexcept
        : most_(limits.most),
          window_(std::min(limits.first, limits.most)),
          threshold_(limits.most) {}

    /// gain: packets more a round trip, once a loss has been met.
    void on_acked(float packets, float gain = 1) noexcept {
        window_ += window_ < threshold_ ? packets : gain * packets / std::max(window_, 1.0F);
        window_ = std::min(window_, most_);
    }
    /// round_trip: since the last cut there was one.
    void on_lost(bool round_trip) noexcept {
        if (round_trip) cut(0.5F);
    }
    /// share: of the window, that is left.
    void cut(float share) noexcept {
        window_ = std::max(window_ * share, kLeastWindow);
        threshold_ = window_;
    }
    [[nodiscard]] float window() const noexcept { return window_; }
    [[nodiscard]] bool full() const noexcept { return window_ >= most_; }
    void fields(state::Archive& archive);  ///< urtp/state/

private:
    float most_;
    float window_;
    float threshold_;
};

/// The shortest and the latest round trip of a stream, in ns; 0: none yet.
class RoundTrips {
public:
    void sample(Nanos rtt) noexcept {
        latest_ = static_cast<float>(std::max<Nanos>(rtt, 1));
        shortest_ = shortest_ == 0 ? latest_
                                   : std::min(shortest_ + (latest_ - shortest_) * kForget, latest_);
    }
    /// Tells that losses show a full path though no queue shows: the shortest round trip was not
    /// that of an idle path.
    void doubt() noexcept { shortest_ /= 2; }
    [[nodiscard]] float latest() const noexcept { return latest_; }
    [[nodiscard]] float shortest() const noexcept { return shortest_; }
    /// Returns the share of the latest round trip that was no queue of the network: 1 on an idle
    /// path. Time in our NIC's ring, which a lone stream fills too, does not count.
    [[nodiscard]] float idle_share() const noexcept {
        return latest_ == 0 ? 1 : shortest_ / std::max(latest_ - kRing, shortest_);
    }
    void fields(state::Archive& archive);  ///< urtp/state/

private:
    static constexpr float kForget =
        1.0F / 4096;  ///< a sample: paths change, and doubt may be wrong
    static constexpr float kRing = 20 * kMicrosecond;  ///< the engine's limit (engine/tx.h)
    float latest_ = 0;
    float shortest_ = 0;
};

class AdaptiveBackoff {
public:
    /// Packets more a round trip: a few are many among many streams.
    static constexpr float kGain = 0.5F;
    /// The share of the window that a cut leaves: half, for a stream with one bottleneck (Jacobson
    /// 1988). Any member of a group that loses cuts the group's window, so where several of their
    /// ports are full it is cut that much more often, and less is enough (0.7 as RFC 9438).
    static constexpr float kCut = 0.5F;
    static constexpr float kGroupCut = 0.7F;
    /// A smaller share of the round trip without queue is congestion.
    static constexpr float kQueued = 0.8F;
    /// More losses than this, and a larger share of the packets since the last cut, are no bit
    /// errors.
    static constexpr float kManyLeast = 4;
    static constexpr float kManyLost = 0.05F;
    /// Packets after which old news counts half.
    static constexpr float kMemory = 512;

    explicit AdaptiveBackoff(const CongestionLimits& limits) noexcept : reno_(limits) {}

    /// True: the window is another now. A full one costs a sample and a sum.
    bool on_acked(float packets, Nanos rtt) noexcept {
        if (rtt >= 0) trips_.sample(rtt);
        acked_ += packets;
        if (reno_.full()) return false;
        reno_.on_acked(packets, kGain);
        return true;
    }
    /// Counts lost packets: 1/n of one that one of n destinations lacks. cut: the share of the
    /// window that a cut leaves. overtaken: packets overtake each other, so a few may be late
    /// rather than lost, whatever the delay.
    void on_lost(float packets, bool round_trip, float cut = kCut,
                 bool overtaken = false) noexcept {
        lost_ += packets;
        if (!round_trip) return;
        const bool many = lost_ >= kManyLeast && lost_ > kManyLost * (lost_ + acked_);
        if (many || (!overtaken && trips_.idle_share() < kQueued)) {
            if (many) trips_.doubt();
            reno_.cut(cut);
            lost_ = acked_ = 0;
        } else if (lost_ + acked_ > kMemory) {
            lost_ /= 2;
            acked_ /= 2;
        }
    }
    [[nodiscard]] float window() const noexcept { return reno_.window(); }
    void fields(state::Archive& archive);  ///< urtp/state/

private:
    LossBased reno_;
    RoundTrips trips_;
    float acked_ = 0;  ///< since the last cut
    float lost_ = 0;
};

class DelayBased {
public:
    static constexpr float kTarget = 3;      ///< round trips, of the shortest one
    static constexpr float kGain = 0.8F;     ///< cut, as a share of the excess
    static constexpr float kMostCut = 0.5F;  ///< share of the window cut at once

    explicit DelayBased(const CongestionLimits& limits) noexcept
        : most_(limits.most), window_(std::min(limits.first, limits.most)) {}

    void on_acked(float packets, Nanos rtt, bool round_trip) noexcept {
        if (rtt >= 0) trips_.sample(rtt);
        const float target = kTarget * trips_.shortest();
        // Repairs give no sample: where only they are under way, each acknowledgement would cut by
        // the same old one.
        if (rtt < 0 || trips_.latest() <= target) {
            window_ += starting_ ? packets : packets / std::max(window_, 1.0F);
        } else {
            starting_ = false;
            if (round_trip) cut(kGain * (1 - target / trips_.latest()));
        }
        window_ = std::clamp(window_, kLeastWindow, most_);
    }
    void on_lost(bool round_trip) noexcept {
        if (2 * trips_.idle_share() > 1) return;
        starting_ = false;
        if (round_trip) cut(kMostCut);
        window_ = std::max(window_, kLeastWindow);
    }
    [[nodiscard]] float window() const noexcept { return window_; }
    void fields(state::Archive& archive);  ///< urtp/state/

private:
    void cut(float share) noexcept { window_ *= 1 - std::min(share, kMostCut); }

    RoundTrips trips_;
    float most_;
    float window_;
    bool starting_ = true;
};

}  // namespace ulc::urtp
