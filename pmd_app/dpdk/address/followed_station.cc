// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/address/followed_station.h"

#include <rte_ethdev.h>

#include <cstring>

namespace ulc::dpdk {
namespace {

bool passes(std::uint16_t ethdev, const Mac& address) {
    rte_ether_addr mac{};
    std::memcpy(mac.addr_bytes, address.octets.data(), sizeof mac.addr_bytes);
    return rte_eth_promiscuous_get(ethdev) == 1 || rte_eth_dev_mac_addr_add(ethdev, &mac, 0) == 0;
}

}  // namespace

void FollowedStation::begin(std::uint16_t ethdev, const std::string& name, const PortInfo& info) {
    ethdev_ = ethdev;
    name_ = name;
    port::InterfaceCalls calls;
    calls.context = this;
    calls.read = [](void* context, int, port::InterfaceReading& out) {
        const auto& self = *static_cast<const FollowedStation*>(context);
        rte_ether_addr mac{};
        if (rte_eth_macaddr_get(self.ethdev_, &mac) != 0) return false;
        std::memcpy(out.mac.octets.data(), mac.addr_bytes, sizeof mac.addr_bytes);
        out.name = self.name_;
        return true;
    };
    calls.find = [](void*, const std::string&) { return 0; };
    calls.bind = [](void*, int) { return false; };
    calls.keep_address = [](void* context, int, const Mac& address) {
        return passes(static_cast<const FollowedStation*>(context)->ethdev_, address);
    };
    watch_.begin(calls, name, 1, info.mac, info.mtu);
}

}  // namespace ulc::dpdk
