// SPDX-License-Identifier: BSD-3-Clause
#include "port/interface/kernel.h"

#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace ulc::port {
namespace {

/// Returns true if the interface, whose name is in the query, passes frames for its own address
/// alone, whatever addresses it is asked to pass.
bool passes_own_alone(int socket, ifreq& query) noexcept {
    ethtool_drvinfo driver{};
    driver.cmd = ETHTOOL_GDRVINFO;
    query.ifr_data = reinterpret_cast<char*>(&driver);
    if (ioctl(socket, SIOCETHTOOL, &query) != 0) return false;
    const std::size_t length = strnlen(driver.driver, sizeof driver.driver);
    return std::string_view(driver.driver, length) == "macvlan";
}

}  // namespace

InterfaceCalls KernelInterface::calls(bool (*bind)(void* context, int index), void* bind_context) {
    InterfaceCalls calls;
    calls.context = this;
    calls.read = [](void* context, int index, InterfaceReading& out) {
        return static_cast<const KernelInterface*>(context)->read(index, out);
    };
    calls.find = [](void* context, const std::string& name) {
        return static_cast<const KernelInterface*>(context)->find(name);
    };
    calls.bind = bind;
    calls.bind_context = bind_context;
    calls.keep_address = [](void* context, int index, const Mac& address) {
        return static_cast<const KernelInterface*>(context)->keep_address(index, address);
    };
    return calls;
}

bool KernelInterface::read(int index, InterfaceReading& out) const {
    ifreq query{};
    query.ifr_ifindex = index;
    if (ioctl(socket_, SIOCGIFNAME, &query) != 0) return false;
    out.name.assign(query.ifr_name, strnlen(query.ifr_name, IFNAMSIZ));
    if (ioctl(socket_, SIOCGIFFLAGS, &query) != 0) return false;
    constexpr short kUp = IFF_UP | IFF_RUNNING;
    out.running = (query.ifr_flags & kUp) == kUp;
    out.mtu = ioctl(socket_, SIOCGIFMTU, &query) == 0 ? query.ifr_mtu : 0;
    if (ioctl(socket_, SIOCGIFHWADDR, &query) != 0) return false;
    std::memcpy(&out.mac, query.ifr_hwaddr.sa_data, sizeof out.mac);
    return true;
}

int KernelInterface::find(const std::string& name) const noexcept {
    ifreq query{};
    name.copy(query.ifr_name, IFNAMSIZ - 1);
    return ioctl(socket_, SIOCGIFINDEX, &query) == 0 ? query.ifr_ifindex : 0;
}

bool KernelInterface::keep_address(int index, const Mac& address) const noexcept {
    ifreq query{};
    query.ifr_ifindex = index;
    if (ioctl(socket_, SIOCGIFNAME, &query) != 0 || passes_own_alone(socket_, query)) return false;
    packet_mreq request{};
    request.mr_ifindex = index;
    request.mr_type = PACKET_MR_UNICAST;
    request.mr_alen = sizeof address.octets;
    std::memcpy(request.mr_address, address.octets.data(), sizeof address.octets);
    return setsockopt(socket_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request) == 0;
}

}  // namespace ulc::port
