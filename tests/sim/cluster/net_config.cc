// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/cluster/net_config.h"

#include <algorithm>

#include "tests/sim/media/hub_medium.h"
#include "tests/sim/media/switch_medium.h"

namespace ulc::sim {
namespace {

std::vector<Mac> macs_of(const NetConfig& config) {
    std::vector<Mac> macs;
    // A medium joins at least two ports; a single node has no node at the other end.
    const auto ports_min = static_cast<std::uint16_t>(2 * config.threads);
    for (std::uint16_t port = 0; port < std::max(config.ports, ports_min); ++port)
        macs.push_back(mac_of_port(port));
    return macs;
}

SwitchConfig switch_config(const NetConfig& config) {
    SwitchConfig out;
    out.macs = macs_of(config);
    out.macs_each = config.threads;
    out.bits_per_second = config.bits_per_second;
    out.port_bits_per_second = config.port_bits_per_second;
    out.latency = config.latency;
    out.cable = config.cable;
    out.vlans = config.vlans;
    out.learns = config.learns;
    out.sharing = config.sharing;
    out.host_bits_per_second = config.host_bits_per_second;
    if (config.buffer_octets != 0) out.buffer_octets = config.buffer_octets;
    if (config.shared_octets != 0) out.shared_octets = config.shared_octets;
    if (config.medium == MediumKind::kCutThrough) out.forwarding = Forwarding::kCutThrough;
    if (config.medium == MediumKind::kDirect) {
        out.forwarding = Forwarding::kCutThrough;
        out.cut_through_octets = 0;
        out.latency = 0;
    }
    out.seed = config.seed;
    return out;
}

HubConfig hub_config(const NetConfig& config) {
    HubConfig out;
    out.macs = macs_of(config);
    out.bits_per_second = config.bits_per_second;
    out.repeater = config.repeater >= 0 ? config.repeater
                                        : static_cast<Nanos>(46 * kSecond) /
                                              static_cast<Nanos>(config.bits_per_second);
    out.cable = config.cable;
    out.seed = config.seed;
    return out;
}

void add_faults(const Faults& faults, std::uint16_t ports, MediumReport& report) {
    FaultCounts sum;
    for (std::uint16_t port = 0; port < ports; ++port) {
        const FaultCounts& counts = faults.counts(port);
        sum.lost += counts.lost;
        sum.cut += counts.cut;
        sum.corrupted += counts.corrupted;
        sum.duplicated += counts.duplicated;
        sum.late += counts.late;
    }
    report.insert(report.end(), {{"lost", sum.lost},
                                 {"cut_off", sum.cut},
                                 {"corrupted", sum.corrupted},
                                 {"duplicated", sum.duplicated},
                                 {"late", sum.late}});
}

MediumReport report_of(const SwitchMedium& medium, const Faults& faults, std::uint16_t ports) {
    SwitchPortCounts sum;
    for (std::uint16_t port = 0; port < ports; ++port) {
        const SwitchPortCounts& counts = medium.counts(port);
        sum.in_frames += counts.in_frames;
        sum.in_octets += counts.in_octets;
        sum.out_frames += counts.out_frames;
        sum.overflows += counts.overflows;
        sum.buffer_octets_max = std::max(sum.buffer_octets_max, counts.buffer_octets_max);
    }
    MediumReport report{{"in_frames", sum.in_frames},
                        {"in_octets", sum.in_octets},
                        {"out_frames", sum.out_frames},
                        {"overflows", sum.overflows},
                        {"buffer_octets_max", sum.buffer_octets_max}};
    add_faults(faults, ports, report);
    if (medium.flooded() > 0) report.emplace_back("flooded", medium.flooded());
    return report;
}

MediumReport report_of(const HubMedium& medium, const Faults& faults, std::uint16_t ports) {
    const HubCounts sum = medium.total();
    MediumReport report{{"sent_frames", sum.sent},
                        {"sent_octets", sum.octets},
                        {"collisions", sum.collisions},
                        {"deferred", sum.deferred},
                        {"given_up", sum.given_up}};
    add_faults(faults, ports, report);
    return report;
}

/// `ports`: those of the medium, which belong to machines.
template <typename Kind, typename Config>
MadeMedium make(const Config& config, std::uint16_t ports) {
    auto medium = std::make_unique<Kind>(config);
    Kind* raw = medium.get();
    MadeMedium made;
    made.faults = &raw->faults();
    made.report = [raw, ports] { return report_of(*raw, raw->faults(), ports); };
    made.medium = std::move(medium);
    return made;
}

}  // namespace

Mac mac_of_port(std::uint16_t port) noexcept {
    return Mac{
        {0x02, 0, 0, 0, static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port)}};
}

std::string problem_of(const NetConfig& config) {
    if (config.ports == 0) return "there are no ports";
    if (config.threads == 0 || config.ports % config.threads != 0)
        return "each machine must have the same number of threads";
    if (config.threads > 1 && config.medium == MediumKind::kHub)
        return "machines with several threads need a switch or a cable";
    if (config.threads > 1 && config.multicast_filters != kPassesAll)
        return "machines with several threads pass all multicasts";
    const auto machines = static_cast<std::uint16_t>(config.ports / config.threads);
    if (config.medium == MediumKind::kDirect && machines > 2)
        return "a cable has two ends: medium direct is for 2 nodes";
    return config.medium == MediumKind::kHub ? problem_of(hub_config(config))
                                             : problem_of(switch_config(config));
}

MadeMedium make_medium(const NetConfig& config) {
    const auto machines = static_cast<std::uint16_t>(config.ports / config.threads);
    MadeMedium made = config.medium == MediumKind::kHub
                          ? make<HubMedium>(hub_config(config), config.ports)
                          : make<SwitchMedium>(switch_config(config), machines);
    made.faults->set(config.faults);
    if (config.threads > 1) {
        const MachineConfig machine{macs_of(config), config.threads, config.steering,
                                    config.ring_latency};
        made.medium = std::make_unique<MachineMedium>(std::move(made.medium), machine);
    }
    return made;
}

}  // namespace ulc::sim
