// SPDX-License-Identifier: BSD-3-Clause
#include "engine/groups/multicast_filter.h"

#include <algorithm>

namespace ulc::engine {
namespace {

constexpr Mac kFirstMac{{0x03, 0x55, 0x4c, 0, 0, 0}};  // locally administered, of a group; "UL"

}  // namespace

Mac mac_of_address(AddressId address) noexcept {
    if (address == kBroadcastAddress) return kBroadcastMac;
    Mac mac = kFirstMac;
    for (unsigned i = 0; i < 3; ++i)
        mac.octets[3 + i] = static_cast<std::uint8_t>(address >> (16 - 8 * i));
    return mac;
}

bool MulticastFilter::listens(AddressId address) const noexcept {
    return std::ranges::count(listened_, address, &Listened::address) > 0;
}

void MulticastFilter::listen(AddressId address) {
    if (address == kBroadcastAddress) return;
    const auto at = std::ranges::find(listened_, address, &Listened::address);
    if (at != listened_.end()) {
        ++at->groups;
        return;
    }
    listened_.push_back({address, 1});
    changed_ = true;
}

void MulticastFilter::release(AddressId address) noexcept {
    const auto at = std::ranges::find(listened_, address, &Listened::address);
    if (at == listened_.end() || --at->groups > 0) return;
    listened_.erase(at);
    changed_ = true;
}

void MulticastFilter::tell(const Port& port, Counters& counters) {
    changed_ = false;
    const auto now = static_cast<std::uint16_t>(listened_.size());
    counters.add(Counter::multicast_addresses, std::uint64_t{now} - told_);
    told_ = now;
    if (port.set_multicasts == nullptr) return;
    std::vector<Mac> macs;
    macs.reserve(listened_.size());
    for (const Listened& each : listened_)
        macs.push_back(mac_of_address(each.address));
    if (!port.set_multicasts(port.context, macs)) counters.add(Counter::multicast_overflows);
}

Counter MulticastFilter::reason_of_unwanted(const Mac& destination) const noexcept {
    const bool ours = std::equal(kFirstMac.octets.begin(), kFirstMac.octets.begin() + 3,
                                 destination.octets.begin());
    if (!ours) return Counter::drop_unknown_handle;
    AddressId address = 0;
    for (unsigned i = 3; i < 6; ++i)
        address = address << 8 | destination.octets[i];
    return listens(address) ? Counter::drop_shared_address : Counter::drop_unfiltered;
}

}  // namespace ulc::engine
