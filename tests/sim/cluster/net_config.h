// SPDX-License-Identifier: BSD-3-Clause
// Selects the medium of a simulated net, in one place for tests, scenarios and random checks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "port/port.h"
#include "tests/sim/host/shared_processor.h"
#include "tests/sim/media/faults.h"
#include "tests/sim/media/machine_medium.h"
#include "tests/sim/media/medium.h"
#include "wire/ids.h"

namespace ulc::sim {

enum class MediumKind : std::uint8_t {
    kSwitch,      ///< store and forward
    kCutThrough,  ///< a switch that forwards once it has the header
    kDirect,      ///< a cable between two hosts, full duplex
    kHub,         ///< a repeater, half duplex: CSMA/CD
};

struct NetConfig {
    std::uint16_t ports = 2;
    std::uint16_t mtu = 1500;
    std::vector<std::uint16_t> port_mtus;  ///< by port; fewer: `mtu` for the others
    MediumKind medium = MediumKind::kSwitch;
    std::uint64_t bits_per_second = 10'000'000'000;
    std::vector<std::uint64_t> port_bits_per_second;  ///< by port, of a switch; empty: all the same
    Nanos latency = 5 * kMicrosecond;  ///< latency of the switch; a hub and a cable have none
    Nanos repeater = -1;               ///< delay of a hub; below 0: 46 bit times, as of class II
    Nanos cable = 25;                  ///< delay of each cable, one way
    std::uint64_t buffer_octets = 0;   ///< buffer of each output of a switch; 0: unlimited
    std::uint64_t shared_octets = 0;   ///< buffer of all outputs together; 0: unlimited
    std::vector<std::uint16_t> vlans;  ///< by port, of a switch; empty: one
    bool learns = false;               ///< the switch, as in media/switch_medium.h
    Sharing sharing;                   ///< a switch that is a process (media/switch_medium.h)
    std::uint64_t host_bits_per_second = 0;        ///< as in media/switch_medium.h
    std::uint32_t segments = 4096;                 ///< segments of each port's pool
    std::uint16_t multicast_filters = kPassesAll;  ///< filters of each interface
    /// One in this number of payloads that land (port/port.h) is overwritten during the copy, as on
    /// a wire of shared memory; 0: none.
    std::uint32_t overtaken_every = 0;
    bool reads_arenas = false;  ///< devices read payloads of clients where they lie
    FaultRates faults;
    std::uint64_t seed = 1;
    /// Threads of a machine's engine: consecutive ports, each with an address and a NIC queue. They
    /// share a cable, and are joined by rings. Faults apply to machines.
    std::uint16_t threads = 1;
    Steering steering = Steering::kByNic;
    Nanos ring_latency = 100;  ///< between two threads of a machine

    [[nodiscard]] std::uint64_t rate_of(std::uint16_t port) const noexcept {
        return port < port_bits_per_second.size() ? port_bits_per_second[port] : bits_per_second;
    }
    [[nodiscard]] std::uint16_t mtu_of(std::uint16_t port) const noexcept {
        return port < port_mtus.size() ? port_mtus[port] : mtu;
    }
};

/// Returns the station address of a port.
[[nodiscard]] Mac mac_of_port(std::uint16_t port) noexcept;

/// The counters of a medium, by name, in a fixed order: frames carried, and frames dropped by
/// reason.
using MediumReport = std::vector<std::pair<std::string, std::uint64_t>>;

struct MadeMedium {
    std::unique_ptr<Medium> medium;
    Faults* faults = nullptr;  ///< those of the medium
    std::function<MediumReport()> report;
};

/// Returns why there can be no such medium; empty if there can. For configurations that a user
/// wrote.
[[nodiscard]] std::string problem_of(const NetConfig& config);
/// Precondition: problem_of() finds no problem.
[[nodiscard]] MadeMedium make_medium(const NetConfig& config);

}  // namespace ulc::sim
