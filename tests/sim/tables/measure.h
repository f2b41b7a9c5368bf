// SPDX-License-Identifier: BSD-3-Clause
// The loops of the papers, on libulc in the simulator: ping-pong (GAMMA §2.1) and synchronised
// barriers (GAMMA §5.4). Times are virtual: they follow from the host's costs, the medium and the
// actions of the shipped objects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "tests/sim/cluster/lib_cluster.h"

namespace ulc::sim {

/// Result of a measurement; microseconds. ok false: it did not end within its limit.
struct Measured {
    bool ok = false;
    double us = 0;
};

inline constexpr std::uint64_t kFastEthernet = 100'000'000;  ///< bits a second
inline constexpr Nanos kGammaRepeater = 900;  ///< delay of a hub; GAMMA §5.4: 0.9 µs

/// Returns two nodes of such hosts on Fast Ethernet.
[[nodiscard]] ClusterConfig pair_of(const HostCosts& host, const char* profile, MediumKind medium,
                                    std::uint64_t seed);

/// Makes the transport act as a TCP of the papers' time: go-back-n, an ACK for every two segments
/// and none by time, and a timer of at least `clock`.
void use_tcp(ClusterConfig& config, Nanos clock);
/// The same as that of Linux 2.0.29: a window of 32 packets, between the 22 and the 44 of 32 and
/// 64 KiB, and a clock of 200 ms (estimates).
void use_linux_tcp(ClusterConfig& config);

/// Two ranks on two nodes. One cluster is used for many sizes.
class PingPongBench {
public:
    explicit PingPongBench(const ClusterConfig& config);
    /// Returns half the mean round trip of messages of `octets`; the first rounds warm up and are
    /// not counted.
    [[nodiscard]] Measured one_way(std::size_t octets, unsigned rounds);
    [[nodiscard]] bool formed() const noexcept { return formed_; }
    [[nodiscard]] LibCluster& lib() noexcept { return *lib_; }

private:
    struct Side;
    Nanos act(Side& side, Nanos now);

    std::unique_ptr<LibCluster> lib_;
    bool formed_ = false;
};

/// Returns the throughput in MB/s (10⁶ bytes a second) at a one-way time.
[[nodiscard]] inline double megabytes_per_second(std::size_t octets, double us) {
    return us > 0 ? static_cast<double>(octets) / us : 0;
}

/// Returns the smallest message that reaches half of `asymptotic` MB/s (GAMMA §2.1.3); 0 if none up
/// to `octets_max` does.
[[nodiscard]] std::size_t half_power_point(PingPongBench& bench, double asymptotic,
                                           std::size_t octets_max, unsigned rounds);

/// Runs GAMMA's loop: a barrier that synchronises, then one that is timed, at rank 0; the first two
/// and the worst two of all trials are left out, the rest averaged. `algorithm`: as for
/// ulc_barrier_start().
[[nodiscard]] Measured barrier_time(const ClusterConfig& config, const std::string& algorithm,
                                    unsigned trials);
/// Returns the same for the median of `runs`, an odd number, whose seeds are consecutive.
[[nodiscard]] Measured barrier_median(ClusterConfig config, const std::string& algorithm,
                                      unsigned trials, unsigned runs);

}  // namespace ulc::sim
