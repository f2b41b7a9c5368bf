// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/multicast.h"

#include <rte_ethdev.h>

#include <array>
#include <cstring>
#include <string_view>

namespace ulc::dpdk {
namespace {

constexpr std::size_t kFiltersMax = 64;
/// The 21143 compares this number of addresses; for more it takes a hash
/// (drivers/tulip/setup_frame.h).
constexpr std::uint16_t kTulipFilters = 14;
/// The 8255x filters this number by a hash; of more it receives all
/// (drivers/i8255x/filter.h).
constexpr std::uint16_t kI8255xFilters = 22;

bool set_list(std::uint16_t ethdev, std::span<const Mac> addresses) {
    if (addresses.size() > kFiltersMax) return false;
    std::array<rte_ether_addr, kFiltersMax> list;
    static_assert(sizeof(rte_ether_addr) == sizeof(Mac));
    if (!addresses.empty())
        std::memcpy(list.data(), addresses.data(), addresses.size() * sizeof(Mac));
    return rte_eth_dev_set_mc_addr_list(ethdev, list.data(),
                                        static_cast<std::uint32_t>(addresses.size())) == 0;
}

std::uint16_t most_of(std::uint16_t ethdev) {
    rte_eth_dev_info info;
    if (rte_eth_dev_info_get(ethdev, &info) == 0 && info.driver_name != nullptr) {
        const std::string_view driver = info.driver_name;
        if (driver == "net_tulip") return kTulipFilters;
        if (driver == "net_i8255x") return kI8255xFilters;
    }
    std::array<Mac, kFiltersMax> some;
    for (std::size_t i = 0; i < some.size(); ++i)
        some[i] = {{0x03, 0, 0, 0, 0, static_cast<std::uint8_t>(i)}};
    for (std::size_t count = some.size(); count > 0; count /= 2)
        if (set_list(ethdev, std::span(some).first(count)))
            return static_cast<std::uint16_t>(count);
    return 0;
}

}  // namespace

std::uint16_t learn_multicast_filters(std::uint16_t ethdev) {
    const std::uint16_t most = most_of(ethdev);
    if (most > 0 && set_multicasts(ethdev, {})) return most;
    rte_eth_allmulticast_enable(ethdev);
    return kPassesAll;
}

bool set_multicasts(std::uint16_t ethdev, std::span<const Mac> addresses) {
    const bool filters = set_list(ethdev, addresses) && rte_eth_allmulticast_disable(ethdev) == 0;
    if (!filters) rte_eth_allmulticast_enable(ethdev);
    return filters;
}

}  // namespace ulc::dpdk
