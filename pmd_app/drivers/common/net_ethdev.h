// SPDX-License-Identifier: BSD-3-Clause
// DPDK's view of a driver: probing, the table of operations, names of statistics. A driver includes
// this in one file, and registers make_driver<Card>() with its table of PCI ids.
#pragma once

#include <bus_pci_driver.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <new>
#include <string_view>
#include <utility>

#include "drivers/common/net_port.h"
#include "drivers/common/net_port_burst.h"
#include "drivers/common/net_port_control.h"

namespace ulc::nic {

inline constexpr std::uint64_t kLinkWaitSeconds = 9;
/// Place of the revision in the PCI configuration space.
inline constexpr off_t kRevisionOffset = 8;

/// Private data that DPDK keeps for the device: a Port needs construction, which its memory does
/// not get.
template <typename Card>
struct Private {
    Port<Card>* port;
};

template <typename Card>
[[nodiscard]] Port<Card>& port_of(rte_eth_dev* device) noexcept {
    return *static_cast<Private<Card>*>(device->data->dev_private)->port;
}

// ---- operations ---------------------------------------------------------------------------------
inline int on_configure(rte_eth_dev* device) {
    const rte_eth_conf& conf = device->data->dev_conf;
    if (conf.lpbk_mode > 1) {
        NIC_LOG(ERR, "loopback mode %u: 0 (none) or 1 (inside the chip)\n", conf.lpbk_mode);
        return -EINVAL;
    }
    return 0;
}

/// Applications read these states before they poll a queue.
inline void mark_queues(rte_eth_dev* device, std::uint8_t state) {
    device->data->rx_queue_state[0] = state;
    device->data->tx_queue_state[0] = state;
}

template <typename Card>
int on_start(rte_eth_dev* device) {
    const int error = port_of<Card>(device).start();
    if (error == 0) mark_queues(device, RTE_ETH_QUEUE_STATE_STARTED);
    return error;
}

template <typename Card>
int on_stop(rte_eth_dev* device) {
    mark_queues(device, RTE_ETH_QUEUE_STATE_STOPPED);
    return port_of<Card>(device).stop();
}

template <typename Card>
int on_close(rte_eth_dev* device) {
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) return 0;
    auto* own = static_cast<Private<Card>*>(device->data->dev_private);
    own->port->stop();
    own->port->release_receive();
    own->port->release_transmit();
    delete own->port;
    own->port = nullptr;
    return 0;
}

inline int on_info(rte_eth_dev* /*device*/, rte_eth_dev_info* info) {
    info->max_rx_queues = 1;
    info->max_tx_queues = 1;
    info->min_rx_bufsize = kFrameOctetsMax + RTE_ETHER_CRC_LEN;
    info->max_rx_pktlen = kFrameOctetsMax + RTE_ETHER_CRC_LEN;
    info->min_mtu = RTE_ETHER_MIN_MTU;
    info->max_mtu = kMtuMax;
    info->max_mac_addrs = 1;
    info->speed_capa = RTE_ETH_LINK_SPEED_10M | RTE_ETH_LINK_SPEED_10M_HD |
                       RTE_ETH_LINK_SPEED_100M | RTE_ETH_LINK_SPEED_100M_HD;
    info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    info->rx_desc_lim = {.nb_max = kRingMax, .nb_min = kRingMin, .nb_align = 1};
    info->tx_desc_lim = {.nb_max = kRingMax,
                         .nb_min = kRingMin,
                         .nb_align = 1,
                         .nb_seg_max = kPartsMax,
                         .nb_mtu_seg_max = kPartsMax};
    info->default_rxportconf = {.burst_size = 32, .ring_size = kRingDefault, .nb_queues = 1};
    info->default_txportconf = {.burst_size = 32, .ring_size = kRingDefault, .nb_queues = 1};
    return 0;
}

template <typename Card>
int on_link(rte_eth_dev* device, int wait) {
    Port<Card>& port = port_of<Card>(device);
    const std::uint64_t until = rte_get_timer_cycles() + rte_get_timer_hz() * kLinkWaitSeconds;
    Link link = port.link();
    while (wait != 0 && !link.up && rte_get_timer_cycles() < until) {
        rte_delay_us_sleep(100'000);
        link = port.link();
    }
    rte_eth_link out{};
    out.link_status = link.up ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN;
    out.link_duplex = link.full_duplex ? RTE_ETH_LINK_FULL_DUPLEX : RTE_ETH_LINK_HALF_DUPLEX;
    out.link_speed = link.up ? link.mbit : RTE_ETH_SPEED_NUM_NONE;
    out.link_autoneg = RTE_ETH_LINK_AUTONEG;
    return rte_eth_linkstatus_set(device, &out);
}

/// Ethdev has set the flags before it calls: `device->data` has the one that is not changed here.
template <typename Card>
int receive_as(rte_eth_dev* device, bool promiscuous, bool all_multicast) {
    return port_of<Card>(device).set_reception(
        {.promiscuous = promiscuous, .all_multicast = all_multicast});
}
template <typename Card>
int on_promiscuous(rte_eth_dev* device) {
    return receive_as<Card>(device, true, device->data->all_multicast != 0);
}
template <typename Card>
int on_not_promiscuous(rte_eth_dev* device) {
    return receive_as<Card>(device, false, device->data->all_multicast != 0);
}
template <typename Card>
int on_all_multicast(rte_eth_dev* device) {
    return receive_as<Card>(device, device->data->promiscuous != 0, true);
}
template <typename Card>
int on_not_all_multicast(rte_eth_dev* device) {
    return receive_as<Card>(device, device->data->promiscuous != 0, false);
}

inline MacAddress address_of(const rte_ether_addr& address) {
    MacAddress out;
    std::copy_n(address.addr_bytes, out.size(), out.begin());
    return out;
}

template <typename Card>
int on_multicasts(rte_eth_dev* device, rte_ether_addr* list, std::uint32_t count) {
    std::vector<MacAddress> multicasts;
    for (std::uint32_t i = 0; i < count; ++i)
        multicasts.push_back(address_of(list[i]));
    return port_of<Card>(device).set_multicasts(std::move(multicasts));
}

template <typename Card>
int on_address(rte_eth_dev* device, rte_ether_addr* address) {
    return port_of<Card>(device).set_own(address_of(*address));
}

/// Accepts the MTU that ethdev checked against on_info(); receive buffers hold the largest frame
/// anyway.
inline int on_mtu(rte_eth_dev* /*device*/, std::uint16_t /*mtu*/) { return 0; }

template <typename Card>
int on_rx_setup(rte_eth_dev* device, std::uint16_t /*queue*/, std::uint16_t descriptors,
                unsigned socket, const rte_eth_rxconf* /*conf*/, rte_mempool* pool) {
    Port<Card>& port = port_of<Card>(device);
    const int error = port.set_up_receive(descriptors, pool, static_cast<int>(socket));
    device->data->rx_queues[0] = error == 0 ? &port : nullptr;
    return error;
}

template <typename Card>
int on_tx_setup(rte_eth_dev* device, std::uint16_t /*queue*/, std::uint16_t descriptors,
                unsigned socket, const rte_eth_txconf* /*conf*/) {
    Port<Card>& port = port_of<Card>(device);
    const int error = port.set_up_transmit(descriptors, static_cast<int>(socket));
    device->data->tx_queues[0] = error == 0 ? &port : nullptr;
    return error;
}

template <typename Card>
void on_rx_info(rte_eth_dev* device, std::uint16_t /*queue*/, rte_eth_rxq_info* info) {
    Port<Card>& port = port_of<Card>(device);
    info->mp = port.pool();
    info->nb_desc = static_cast<std::uint16_t>(port.receive_ring()->size());
}

template <typename Card>
void on_tx_info(rte_eth_dev* device, std::uint16_t /*queue*/, rte_eth_txq_info* info) {
    info->nb_desc = static_cast<std::uint16_t>(port_of<Card>(device).transmit_ring()->size());
}

template <typename Card>
int on_stats(rte_eth_dev* device, rte_eth_stats* stats) {
    port_of<Card>(device).statistics(*stats);
    return 0;
}

template <typename Card>
int on_stats_reset(rte_eth_dev* device) {
    port_of<Card>(device).clear_statistics();
    return 0;
}

struct NamedCounter {
    const char* name;
    std::uint64_t PortCounters::*counter;
};
inline constexpr NamedCounter kCounters[] = {
    {"rx_crc_errors", &PortCounters::rx_crc_errors},
    {"rx_runts", &PortCounters::rx_runts},
    {"rx_too_long", &PortCounters::rx_too_long},
    {"rx_fifo_overflow_errors", &PortCounters::rx_fifo_overflows},
    {"rx_malformed_descriptors", &PortCounters::rx_malformed},
    {"tx_collisions", &PortCounters::tx_collisions},
    {"tx_collision_retries", &PortCounters::tx_collision_retries},
    {"tx_given_up", &PortCounters::tx_given_up},
    {"tx_underflows", &PortCounters::tx_underflows},
    {"tx_no_carrier", &PortCounters::tx_no_carrier},
    {"tx_jabber", &PortCounters::tx_jabber},
    {"tx_refused", &PortCounters::tx_refused},
    {"tx_lost_in_reset", &PortCounters::tx_lost_in_reset},
    {"recoveries", &PortCounters::recoveries},
    {"failed_recoveries", &PortCounters::failed_recoveries},
};
/// The chip's own counts follow those (Card::kOwnCounters).
template <typename Card>
constexpr unsigned kNamedCounters = std::size(kCounters) + std::size(Card::kOwnCounters);

template <typename Card>
int on_xstats_names(rte_eth_dev* /*device*/, rte_eth_xstat_name* names, unsigned room) {
    if (names == nullptr || room < kNamedCounters<Card>) return kNamedCounters<Card>;
    unsigned i = 0;
    for (const NamedCounter& c : kCounters)
        std::snprintf(names[i++].name, sizeof names->name, "%s", c.name);
    for (const auto& own : Card::kOwnCounters)
        std::snprintf(names[i++].name, sizeof names->name, "%s", own.name);
    return kNamedCounters<Card>;
}

template <typename Card>
int on_xstats(rte_eth_dev* device, rte_eth_xstat* values, unsigned room) {
    if (values == nullptr || room < kNamedCounters<Card>) return kNamedCounters<Card>;
    rte_eth_stats ignored{};
    Port<Card>& port = port_of<Card>(device);
    port.statistics(ignored);  // asks the chip
    unsigned i = 0;
    const auto put = [&](std::uint64_t value) {
        values[i].id = i;
        values[i].value = value;
        ++i;
    };
    for (const NamedCounter& c : kCounters)
        put(port.counters().*c.counter);
    for (const auto& own : Card::kOwnCounters)
        put(port.card().value_of(own));
    return kNamedCounters<Card>;
}

/// Returns the registers as they read; zero for those whose reading changes something.
template <typename Card>
int on_registers(rte_eth_dev* device, rte_dev_reg_info* info) {
    info->length = Card::kRegisters;
    info->width = sizeof(std::uint32_t);
    if (info->data == nullptr) return 0;
    auto* out = static_cast<std::uint32_t*>(info->data);
    for (std::uint32_t i = 0; i < Card::kRegisters; ++i)
        out[i] = port_of<Card>(device).card().register_at(i);
    return 0;
}

template <typename Card>
constexpr eth_dev_ops make_operations() {
    eth_dev_ops ops{};
    ops.dev_configure = on_configure;
    ops.dev_start = on_start<Card>;
    ops.dev_stop = on_stop<Card>;
    ops.dev_close = on_close<Card>;
    ops.dev_infos_get = on_info;
    ops.link_update = on_link<Card>;
    ops.promiscuous_enable = on_promiscuous<Card>;
    ops.promiscuous_disable = on_not_promiscuous<Card>;
    ops.allmulticast_enable = on_all_multicast<Card>;
    ops.allmulticast_disable = on_not_all_multicast<Card>;
    ops.set_mc_addr_list = on_multicasts<Card>;
    ops.mac_addr_set = on_address<Card>;
    ops.mtu_set = on_mtu;
    ops.rx_queue_setup = on_rx_setup<Card>;
    ops.tx_queue_setup = on_tx_setup<Card>;
    ops.rxq_info_get = on_rx_info<Card>;
    ops.txq_info_get = on_tx_info<Card>;
    ops.stats_get = on_stats<Card>;
    ops.stats_reset = on_stats_reset<Card>;
    ops.xstats_get = on_xstats<Card>;
    ops.xstats_get_names = on_xstats_names<Card>;
    ops.xstats_reset = on_stats_reset<Card>;
    ops.get_reg = on_registers<Card>;
    return ops;
}
template <typename Card>
constexpr eth_dev_ops kOperations = make_operations<Card>();

template <typename Card>
std::uint16_t rx_burst(void* queue, rte_mbuf** frames, std::uint16_t count) {
    return static_cast<Port<Card>*>(queue)->receive(frames, count);
}
template <typename Card>
std::uint16_t tx_burst(void* queue, rte_mbuf** frames, std::uint16_t count) {
    return static_cast<Port<Card>*>(queue)->transmit(frames, count);
}
template <typename Card>
int rx_status(void* queue, std::uint16_t offset) {
    auto* ring = static_cast<Port<Card>*>(queue)->receive_ring();
    if (offset >= ring->size()) return -EINVAL;
    return ring->done_at(offset) ? RTE_ETH_RX_DESC_DONE : RTE_ETH_RX_DESC_AVAIL;
}
template <typename Card>
int tx_status(void* queue, std::uint16_t offset) {
    auto* ring = static_cast<Port<Card>*>(queue)->transmit_ring();
    if (offset >= ring->size()) return -EINVAL;
    return ring->done_at(offset) ? RTE_ETH_TX_DESC_DONE : RTE_ETH_TX_DESC_FULL;
}

// ---- probing ------------------------------------------------------------------------------------
inline int refuse(const rte_pci_device* pci, std::string_view why) {
    NIC_LOG(ERR, "%s: %s\n", pci->name, why.data());
    return -EIO;
}

template <typename Card>
int set_up(rte_eth_dev* device) {
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
        NIC_LOG(ERR, "only the primary process may use this port\n");
        return -ENOTSUP;
    }
    rte_pci_device* pci = RTE_ETH_DEV_TO_PCI(device);
    void* bar = pci->mem_resource[Card::kRegistersBar].addr;
    if (bar == nullptr || pci->mem_resource[Card::kRegistersBar].len < Card::kBarOctets)
        return refuse(pci,
                      "its registers are not mapped; bind it with dpdk-devbind.py to "
                      "uio_pci_generic or vfio-pci");
    PortArguments arguments;
    if (const int error = parse_arguments(pci->device.devargs, arguments); error != 0) return error;
    // uio leaves this off (vfio does not): without it the chip reads no descriptor.
    if (rte_pci_set_bus_master(pci, true) != 0)
        return refuse(pci, "bus mastering cannot be switched on; run as root");
    Identity identity{.device_id = pci->id.device_id, .revision = 0};
    // A card whose revision cannot be read is taken for the oldest.
    (void)rte_pci_read_config(pci, &identity.revision, sizeof identity.revision, kRevisionOffset);
    auto* port = new (std::nothrow) Port<Card>(device, bar, identity);
    if (port == nullptr) return -ENOMEM;
    if (const Fault fault = port->probe(arguments); fault != Fault::kNone) {
        delete port;
        return refuse(pci, text_of(fault));
    }
    static_cast<Private<Card>*>(device->data->dev_private)->port = port;
    device->data->mac_addrs =
        static_cast<rte_ether_addr*>(rte_zmalloc("nic_mac", sizeof(rte_ether_addr), 0));
    if (device->data->mac_addrs == nullptr) {
        delete port;
        return -ENOMEM;
    }
    std::copy_n(port->address().begin(), 6, device->data->mac_addrs->addr_bytes);
    device->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
    device->dev_ops = &kOperations<Card>;
    device->rx_pkt_burst = rx_burst<Card>;
    device->tx_pkt_burst = tx_burst<Card>;
    device->rx_descriptor_status = rx_status<Card>;
    device->tx_descriptor_status = tx_status<Card>;
    return 0;
}

template <typename Card>
int on_probe(rte_pci_driver* /*driver*/, rte_pci_device* device) {
    return rte_eth_dev_pci_generic_probe(device, sizeof(Private<Card>), set_up<Card>);
}

template <typename Card>
int on_remove(rte_pci_device* device) {
    return rte_eth_dev_pci_generic_remove(device, on_close<Card>);
}

/// A constant: DPDK's registration runs before any other initialisation. `ids` ends with zeros.
template <typename Card>
constexpr rte_pci_driver make_driver(const rte_pci_id* ids) {
    rte_pci_driver driver{};
    driver.id_table = ids;
    driver.drv_flags = RTE_PCI_DRV_NEED_MAPPING;
    driver.probe = on_probe<Card>;
    driver.remove = on_remove<Card>;
    return driver;
}

}  // namespace ulc::nic
