// How much a stream may have under way so that the ports it shares do not overflow. Pure state machines: what was acknowledged,
// how long it took, what is asked for again; out comes a number of packets. Three of them, all of which begin by doubling
// each round trip and cut at most once a round trip:
//
//   LossBased        additive increase, multiplicative decrease: one packet more a round trip, half after a loss (Jacobson 1988)
//   AdaptiveBackoff  the same, but a loss on a path that shows no queue is a bit error and cuts nothing, unless there are many (after
//                    H-TCP and Veno, which weigh the cut by the delay). Losses tell all streams of a port the same thing, so
//                    they share it fairly, though each has its own idea of the shortest round trip.
//   DelayBased       towards a round trip that is `kTarget` times the shortest seen: more below it, less above it in proportion
//                    (Vegas, TIMELY, Swift). A stream that begins on a full path takes the queue for the path, and more than its share.
//
// The window may fall below one packet; the pacer then spaces them.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace ulc::urtp {

struct CongestionLimits {
    double least = 0.1;  ///< packets
    double most = 256;   ///< the stream's window
    double first = 10;   ///< to begin with
};

class LossBased {
public:
    explicit LossBased(const CongestionLimits& limits) noexcept
        : limits_(limits), window_(std::min(limits.first, limits.most)), threshold_(limits.most) {}

    /// gain: packets more a round trip, once a loss has been met.
    void on_acked(double packets, double gain = 1) noexcept {
        window_ += window_ < threshold_ ? packets : gain * packets / std::max(window_, 1.0);
        window_ = std::min(window_, limits_.most);
    }
    /// round_trip: since the last cut there was one.
    void on_lost(bool round_trip) noexcept {
        if (round_trip) cut(0.5);
    }
    /// share: of the window, that is left.
    void cut(double share) noexcept {
        window_ = std::max(window_ * share, limits_.least);
        threshold_ = window_;
    }
    [[nodiscard]] double window() const noexcept { return window_; }

private:
    CongestionLimits limits_;
    double window_;
    double threshold_;
};

/// The shortest and the latest round trip of a stream.
class RoundTrips {
public:
    void sample(Nanos rtt) noexcept {
        latest_ = std::max<Nanos>(rtt, 1);
        shortest_ = std::min(shortest_, latest_);
    }
    [[nodiscard]] bool known() const noexcept { return latest_ != 0; }
    [[nodiscard]] double latest() const noexcept { return static_cast<double>(latest_); }
    [[nodiscard]] double shortest() const noexcept { return static_cast<double>(shortest_); }
    /// Share of the latest round trip that was no queue of the network: 1 on an idle path. What may have been spent in our
    /// own NIC's ring, which a lone stream fills too, does not count.
    [[nodiscard]] double idle_share() const noexcept {
        return known() ? shortest() / std::max(latest() - kRing, shortest()) : 1;
    }

private:
    static constexpr double kRing = 20 * kMicrosecond;  ///< the engine's limit (engine/tx.h)
    Nanos latest_ = 0;
    Nanos shortest_ = kNever;
};

class AdaptiveBackoff {
public:
    static constexpr double kGain =
        0.5;  ///< packets more a round trip: few are many among many streams
    static constexpr double kCut = 0.5;  ///< of the window, that is left
    static constexpr double kQueued =
        0.8;  ///< less of the round trip was no queue: it is congestion
    static constexpr double kManyLeast = 4;
    static constexpr double kManyLost = 0.2;  ///< of the packets since the last cut: no bit errors

    explicit AdaptiveBackoff(const CongestionLimits& limits) noexcept : reno_(limits) {}

    void on_acked(double packets, Nanos rtt) noexcept {
        if (rtt >= 0) trips_.sample(rtt);
        acked_ += packets;
        reno_.on_acked(packets, kGain);
    }
    /// packets: of one that only one of n destinations lacks, 1/n.
    void on_lost(double packets, bool round_trip) noexcept {
        lost_ += packets;
        if (!round_trip) return;
        const bool many = lost_ >= kManyLeast && lost_ > kManyLost * (lost_ + acked_);
        if (many || trips_.idle_share() < kQueued) reno_.cut(kCut);
        lost_ = acked_ = 0;
    }
    [[nodiscard]] double window() const noexcept { return reno_.window(); }

private:
    LossBased reno_;
    RoundTrips trips_;
    double acked_ = 0;  ///< since the last cut
    double lost_ = 0;
};

class DelayBased {
public:
    static constexpr double kTarget = 3;     ///< round trips, of the shortest one
    static constexpr double kGain = 0.8;     ///< of the excess
    static constexpr double kMostCut = 0.5;  ///< of the window at once

    explicit DelayBased(const CongestionLimits& limits) noexcept
        : limits_(limits), window_(std::min(limits.first, limits.most)) {}

    void on_acked(double packets, Nanos rtt, bool round_trip) noexcept {
        if (rtt >= 0) trips_.sample(rtt);
        const double target = kTarget * trips_.shortest();
        if (trips_.latest() <= target) {
            window_ += starting_ ? packets : packets / std::max(window_, 1.0);
        } else {
            starting_ = false;
            if (round_trip) cut(kGain * (1 - target / trips_.latest()));
        }
        window_ = std::clamp(window_, limits_.least, limits_.most);
    }
    void on_lost(bool round_trip) noexcept {
        if (2 * trips_.idle_share() > 1) return;
        starting_ = false;
        if (round_trip) cut(kMostCut);
        window_ = std::max(window_, limits_.least);
    }
    [[nodiscard]] double window() const noexcept { return window_; }

private:
    void cut(double share) noexcept { window_ *= 1 - std::min(share, kMostCut); }

    CongestionLimits limits_;
    RoundTrips trips_;
    double window_;
    bool starting_ = true;
};

}  // namespace ulc::urtp
