// SPDX-License-Identifier: BSD-3-Clause
#include "port/port_counts.h"

namespace ulc::port {
namespace {

/// Adds the rise of a port's count since the last look. A count that is lower is that of a device
/// that is away.
void count_rise(Counters& counters, Counter counter, std::uint64_t& counted, std::uint64_t now) {
    if (now <= counted) return;
    counters.add(counter, now - counted);
    counted = now;
}

}  // namespace

void PortCounts::count_costs(const PortCosts& now, Counters& counters) {
    counters.add(Counter::tx_calls, now.calls - costs_.calls);
    counters.add(Counter::tx_refusals, now.refusals - costs_.refusals);
    counters.add(Counter::port_copied_bytes, now.copied_bytes - costs_.copied_bytes);
    costs_ = now;
}

void PortCounts::count_transit(const PortTransit& now, Counters& counters) {
    counters.add(Counter::mesh_forwarded, now.forwarded - transit_.forwarded);
    counters.add(Counter::drop_transit_full, now.full - transit_.full);
    counters.add(Counter::drop_forward, now.malformed - transit_.malformed);
    counters.add(Counter::drop_misrouted, now.misrouted - transit_.misrouted);
    counters.add(Counter::drop_no_path, now.pathless - transit_.pathless);
    transit_ = now;
}

void PortCounts::count_drops(const PortDrops& now, Counters& counters) {
    const auto rise = [&](Counter counter, std::uint64_t PortDrops::*count) {
        count_rise(counters, counter, drops_.*count, now.*count);
    };
    rise(Counter::drop_other_station, &PortDrops::other_station);
    rise(Counter::drop_too_long, &PortDrops::too_long);
    rise(Counter::drop_vlan, &PortDrops::vlan);
    rise(Counter::drop_own_echo, &PortDrops::own_echo);
    rise(Counter::drop_wrong_source, &PortDrops::wrong_source);
    rise(Counter::port_errors, &PortDrops::damaged);
    rise(Counter::drop_unsealed, &PortDrops::unsealed);
    rise(Counter::tx_unsendable, &PortDrops::unsendable);
    rise(Counter::paths_narrowed, &PortDrops::narrowed);
}

void PortCounts::look(const Port& port, Counters& counters, Nanos now) {
    if (port.costs != nullptr) count_costs(port.costs(port.context), counters);
    if (port.silences != nullptr) {
        const std::uint64_t silences = port.silences(port.context);
        counters.add(Counter::link_silences, silences - silences_);
        silences_ = silences;
    }
    if (port.transit != nullptr) count_transit(port.transit(port.context), counters);
    if (now < due_) return;
    due_ = now + kSecond;
    if (port.missed != nullptr)
        count_rise(counters, Counter::port_missed, missed_, port.missed(port.context));
    if (port.drops != nullptr) count_drops(port.drops(port.context), counters);
}

}  // namespace ulc::port
