// Which medium a simulated net has, in one place for tests, scenarios and random checks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "port/port.h"
#include "tests/sim/media/faults.h"
#include "tests/sim/media/machine_medium.h"
#include "tests/sim/media/medium.h"
#include "wire/ids.h"

namespace ulc::sim {

enum class MediumKind : std::uint8_t {
    kSwitch,      ///< store and forward
    kCutThrough,  ///< a switch that forwards when it has the header
    kDirect,      ///< a cable between two hosts, full duplex
    kHub,         ///< a repeater, half duplex: CSMA/CD
};

struct NetConfig {
    std::uint16_t ports = 2;
    std::uint16_t mtu = 1500;
    MediumKind medium = MediumKind::kSwitch;
    std::uint64_t bits_per_second = 10'000'000'000;
    std::vector<std::uint64_t> port_bits_per_second;  ///< by port, of a switch; empty: all the same
    Nanos latency =
        5 * kMicrosecond;  ///< of the switch; not of a hub, nor of a cable, which has none
    Nanos repeater = -1;   ///< of a hub; below 0: 46 bit times, as of class II
    Nanos cable = 25;      ///< of each cable, one way
    std::uint64_t buffer_octets = 0;  ///< of each output of a switch; 0: as many as it takes
    std::uint64_t shared_octets = 0;  ///< of all outputs together; 0: as many as it takes
    std::uint32_t segments = 4096;    ///< of each port's pool
    std::uint16_t multicast_filters = kPassesAll;  ///< that each interface has
    /// One in this number of payloads that land (port/port.h) is overwritten meanwhile, as on a
    /// wire of shared memory; 0: none.
    std::uint32_t overtaken_every = 0;
    FaultRates faults;
    std::uint64_t seed = 1;
    /// Threads of a machine's engine: ports that follow each other, each with an address and a NIC
    /// queue. They share a cable, and are joined by rings. Faults are those of machines.
    std::uint16_t threads = 1;
    Steering steering = Steering::kByNic;
    Nanos ring_latency = 100;  ///< between two threads of a machine

    [[nodiscard]] std::uint64_t rate_of(std::uint16_t port) const noexcept {
        return port < port_bits_per_second.size() ? port_bits_per_second[port] : bits_per_second;
    }
};

/// The station address of a port.
[[nodiscard]] Mac mac_of_port(std::uint16_t port) noexcept;

/// What a medium counted, by name, in a fixed order: frames carried, and frames dropped by reason.
using MediumReport = std::vector<std::pair<std::string, std::uint64_t>>;

struct MadeMedium {
    std::unique_ptr<Medium> medium;
    Faults* faults = nullptr;  ///< of the medium
    std::function<MediumReport()> report;
};

/// Why there is no such medium; empty: there is. For what a person wrote.
[[nodiscard]] std::string problem_of(const NetConfig& config);
/// The configuration has no problem_of().
[[nodiscard]] MadeMedium make_medium(const NetConfig& config);

}  // namespace ulc::sim
