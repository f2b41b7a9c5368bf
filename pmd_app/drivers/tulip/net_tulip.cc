// SPDX-License-Identifier: BSD-3-Clause
// DPDK's view of the driver: probing, the table of operations, arguments, names of statistics.
#include "drivers/tulip/net_tulip.h"

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_kvargs.h>
#include <rte_log.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace ulc::tulip {

int g_log_type = 0;

namespace {

constexpr std::uint16_t kVendorDec = 0x1011;
constexpr std::uint16_t kDevice21143 = 0x0019;
constexpr std::uint16_t kDevice21140 = 0x0009;
constexpr int kRegistersBar = 1;  ///< in memory space; BAR 0 is the same in I/O space
constexpr std::uint64_t kLinkWaitSeconds = 9;

constexpr std::array<rte_pci_id, 3> kIds{
    {{RTE_PCI_DEVICE(kVendorDec, kDevice21143)}, {RTE_PCI_DEVICE(kVendorDec, kDevice21140)}, {}}};

// ---- arguments of the device string -------------------------------------------------------------
constexpr const char* kArgMac = "mac";
constexpr const char* kArgMedia = "media";
constexpr const char* kArgThreshold = "tx_threshold";
constexpr const char* kArgRetries = "collision_retries";

template <typename T, std::size_t N>
int choose(const char* key, const char* value, const std::pair<const char*, T> (&table)[N],
           T& out) {
    for (const auto& [name, choice] : table) {
        if (std::string_view(name) != value) continue;
        out = choice;
        return 0;
    }
    std::string names;
    for (const auto& entry : table)
        names += std::string(names.empty() ? "" : ", ") + entry.first;
    TULIP_LOG(ERR, "%s=%s: one of %s\n", key, value, names.c_str());
    return -EINVAL;
}

int take_argument(const char* key, const char* value, void* context) {
    auto& arguments = *static_cast<PortArguments*>(context);
    if (value == nullptr) return -EINVAL;
    if (std::string_view(key) == kArgMac) {
        rte_ether_addr address;
        if (rte_ether_unformat_addr(value, &address) != 0 ||
            !rte_is_valid_assigned_ether_addr(&address)) {
            TULIP_LOG(ERR, "mac=%s: a unicast address as 02:00:00:00:00:01\n", value);
            return -EINVAL;
        }
        std::copy_n(address.addr_bytes, 6, arguments.mac.emplace().begin());
        return 0;
    }
    if (std::string_view(key) == kArgMedia) {
        static constexpr std::pair<const char*, Media> kTable[] = {{"auto", Media::kNegotiate},
                                                                   {"10half", Media::k10Half},
                                                                   {"10full", Media::k10Full},
                                                                   {"100half", Media::k100Half},
                                                                   {"100full", Media::k100Full}};
        return choose(key, value, kTable, arguments.media);
    }
    if (std::string_view(key) == kArgThreshold) {
        static constexpr std::pair<const char*, TransmitThreshold> kTable[] = {
            {"128", TransmitThreshold::k128},
            {"256", TransmitThreshold::k256},
            {"512", TransmitThreshold::k512},
            {"1024", TransmitThreshold::k1024},
            {"whole", TransmitThreshold::kWhole}};
        return choose(key, value, kTable, arguments.threshold);
    }
    char* end = nullptr;
    const unsigned long retries = std::strtoul(value, &end, 10);
    if (end == value || *end != '\0' || retries > 100) {
        TULIP_LOG(ERR, "%s=%s: a number from 0 to 100\n", kArgRetries, value);
        return -EINVAL;
    }
    arguments.collision_retries = static_cast<std::uint8_t>(retries);
    return 0;
}

int parse_arguments(const rte_devargs* given, PortArguments& arguments) {
    if (given == nullptr || given->args == nullptr || *given->args == '\0') return 0;
    static const char* const kKeys[] = {kArgMac, kArgMedia, kArgThreshold, kArgRetries, nullptr};
    rte_kvargs* list = rte_kvargs_parse(given->args, kKeys);
    if (list == nullptr) {
        TULIP_LOG(ERR, "'%s': known are mac, media, tx_threshold and collision_retries\n",
                  given->args);
        return -EINVAL;
    }
    const int error = rte_kvargs_process(list, nullptr, take_argument, &arguments);
    rte_kvargs_free(list);
    return error < 0 ? -EINVAL : 0;
}

// ---- operations ---------------------------------------------------------------------------------
int on_configure(rte_eth_dev* device) {
    const rte_eth_conf& conf = device->data->dev_conf;
    if (conf.lpbk_mode > 1) {
        TULIP_LOG(ERR, "loopback mode %u: 0 (none) or 1 (inside the chip)\n", conf.lpbk_mode);
        return -EINVAL;
    }
    return 0;
}

/// Applications read these states before they poll a queue.
void mark_queues(rte_eth_dev* device, std::uint8_t state) {
    device->data->rx_queue_state[0] = state;
    device->data->tx_queue_state[0] = state;
}

int on_start(rte_eth_dev* device) {
    const int error = port_of(device).start();
    if (error == 0) mark_queues(device, RTE_ETH_QUEUE_STATE_STARTED);
    return error;
}

int on_stop(rte_eth_dev* device) {
    mark_queues(device, RTE_ETH_QUEUE_STATE_STOPPED);
    return port_of(device).stop();
}

int on_close(rte_eth_dev* device) {
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) return 0;
    auto* own = static_cast<Private*>(device->data->dev_private);
    own->port->stop();
    own->port->release_receive();
    own->port->release_transmit();
    delete own->port;
    own->port = nullptr;
    return 0;
}

int on_info(rte_eth_dev* /*device*/, rte_eth_dev_info* info) {
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
                         .nb_seg_max = kSegmentsMax,
                         .nb_mtu_seg_max = kSegmentsMax};
    info->default_rxportconf = {.burst_size = 32, .ring_size = kRingDefault, .nb_queues = 1};
    info->default_txportconf = {.burst_size = 32, .ring_size = kRingDefault, .nb_queues = 1};
    return 0;
}

int on_link(rte_eth_dev* device, int wait) {
    Port& port = port_of(device);
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
int receive_as(rte_eth_dev* device, bool promiscuous, bool all_multicast) {
    return port_of(device).set_reception(
        {.promiscuous = promiscuous, .all_multicast = all_multicast});
}
int on_promiscuous(rte_eth_dev* device) {
    return receive_as(device, true, device->data->all_multicast != 0);
}
int on_not_promiscuous(rte_eth_dev* device) {
    return receive_as(device, false, device->data->all_multicast != 0);
}
int on_all_multicast(rte_eth_dev* device) {
    return receive_as(device, device->data->promiscuous != 0, true);
}
int on_not_all_multicast(rte_eth_dev* device) {
    return receive_as(device, device->data->promiscuous != 0, false);
}

MacAddress address_of(const rte_ether_addr& address) {
    MacAddress out;
    std::copy_n(address.addr_bytes, out.size(), out.begin());
    return out;
}

int on_multicasts(rte_eth_dev* device, rte_ether_addr* list, std::uint32_t count) {
    std::vector<MacAddress> multicasts;
    for (std::uint32_t i = 0; i < count; ++i)
        multicasts.push_back(address_of(list[i]));
    return port_of(device).set_multicasts(std::move(multicasts));
}

int on_address(rte_eth_dev* device, rte_ether_addr* address) {
    return port_of(device).set_own(address_of(*address));
}

/// Accepts the MTU that ethdev checked against on_info(); receive buffers hold the largest frame
/// anyway.
int on_mtu(rte_eth_dev* /*device*/, std::uint16_t /*mtu*/) { return 0; }

int on_rx_setup(rte_eth_dev* device, std::uint16_t /*queue*/, std::uint16_t descriptors,
                unsigned socket, const rte_eth_rxconf* /*conf*/, rte_mempool* pool) {
    Port& port = port_of(device);
    const int error = port.set_up_receive(descriptors, pool, static_cast<int>(socket));
    device->data->rx_queues[0] = error == 0 ? &port : nullptr;
    return error;
}

int on_tx_setup(rte_eth_dev* device, std::uint16_t /*queue*/, std::uint16_t descriptors,
                unsigned socket, const rte_eth_txconf* /*conf*/) {
    Port& port = port_of(device);
    const int error = port.set_up_transmit(descriptors, static_cast<int>(socket));
    device->data->tx_queues[0] = error == 0 ? &port : nullptr;
    return error;
}

void on_rx_info(rte_eth_dev* device, std::uint16_t /*queue*/, rte_eth_rxq_info* info) {
    Port& port = port_of(device);
    info->mp = port.pool();
    info->nb_desc = static_cast<std::uint16_t>(port.receive_ring()->size());
}

void on_tx_info(rte_eth_dev* device, std::uint16_t /*queue*/, rte_eth_txq_info* info) {
    info->nb_desc = static_cast<std::uint16_t>(port_of(device).transmit_ring()->size());
}

int on_stats(rte_eth_dev* device, rte_eth_stats* stats) {
    port_of(device).statistics(*stats);
    return 0;
}

int on_stats_reset(rte_eth_dev* device) {
    port_of(device).clear_statistics();
    return 0;
}

struct NamedCounter {
    const char* name;
    std::uint64_t PortCounters::*counter;
};
constexpr NamedCounter kCounters[] = {
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
/// Names of the chip's own counts (CSR8), after those.
constexpr const char* kMissedNames[] = {"rx_missed_no_descriptor", "rx_missed_fifo_overflow"};
constexpr unsigned kNamedCounters = std::size(kCounters) + std::size(kMissedNames);

int on_xstats_names(rte_eth_dev* /*device*/, rte_eth_xstat_name* names, unsigned room) {
    if (names == nullptr || room < kNamedCounters) return kNamedCounters;
    unsigned i = 0;
    for (const NamedCounter& c : kCounters)
        std::snprintf(names[i++].name, sizeof names->name, "%s", c.name);
    for (const char* name : kMissedNames)
        std::snprintf(names[i++].name, sizeof names->name, "%s", name);
    return kNamedCounters;
}

int on_xstats(rte_eth_dev* device, rte_eth_xstat* values, unsigned room) {
    if (values == nullptr || room < kNamedCounters) return kNamedCounters;
    rte_eth_stats ignored{};
    Port& port = port_of(device);
    port.statistics(ignored);  // reads CSR8
    unsigned i = 0;
    const auto put = [&](std::uint64_t value) {
        values[i].id = i;
        values[i].value = value;
        ++i;
    };
    for (const NamedCounter& c : kCounters)
        put(port.counters().*c.counter);
    put(port.missed().no_descriptor);
    put(port.missed().fifo_overflow);
    return kNamedCounters;
}

/// Returns the 16 registers as they read, except CSR8 and CSR9, since reading them changes
/// something.
int on_registers(rte_eth_dev* device, rte_dev_reg_info* info) {
    constexpr std::uint32_t kCount = 16;
    info->length = kCount;
    info->width = sizeof(std::uint32_t);
    if (info->data == nullptr) return 0;
    auto* out = static_cast<std::uint32_t*>(info->data);
    for (std::uint32_t i = 0; i < kCount; ++i) {
        const auto csr = static_cast<Csr>(i);
        const bool silent = csr == Csr::kMissedFrames || csr == Csr::kRomAndMii;
        out[i] = silent ? 0 : port_of(device).bus().read(csr);
    }
    return 0;
}

constexpr eth_dev_ops make_operations() {
    eth_dev_ops ops{};
    ops.dev_configure = on_configure;
    ops.dev_start = on_start;
    ops.dev_stop = on_stop;
    ops.dev_close = on_close;
    ops.dev_infos_get = on_info;
    ops.link_update = on_link;
    ops.promiscuous_enable = on_promiscuous;
    ops.promiscuous_disable = on_not_promiscuous;
    ops.allmulticast_enable = on_all_multicast;
    ops.allmulticast_disable = on_not_all_multicast;
    ops.set_mc_addr_list = on_multicasts;
    ops.mac_addr_set = on_address;
    ops.mtu_set = on_mtu;
    ops.rx_queue_setup = on_rx_setup;
    ops.tx_queue_setup = on_tx_setup;
    ops.rxq_info_get = on_rx_info;
    ops.txq_info_get = on_tx_info;
    ops.stats_get = on_stats;
    ops.stats_reset = on_stats_reset;
    ops.xstats_get = on_xstats;
    ops.xstats_get_names = on_xstats_names;
    ops.xstats_reset = on_stats_reset;
    ops.get_reg = on_registers;
    return ops;
}
constexpr eth_dev_ops kOperations = make_operations();

std::uint16_t rx_burst(void* queue, rte_mbuf** frames, std::uint16_t count) {
    return static_cast<Port*>(queue)->receive(frames, count);
}
std::uint16_t tx_burst(void* queue, rte_mbuf** frames, std::uint16_t count) {
    return static_cast<Port*>(queue)->transmit(frames, count);
}
int rx_status(void* queue, std::uint16_t offset) {
    RxRing* ring = static_cast<Port*>(queue)->receive_ring();
    if (offset >= ring->size()) return -EINVAL;
    return ring->done_at(offset) ? RTE_ETH_RX_DESC_DONE : RTE_ETH_RX_DESC_AVAIL;
}
int tx_status(void* queue, std::uint16_t offset) {
    TxRing* ring = static_cast<Port*>(queue)->transmit_ring();
    if (offset >= ring->size()) return -EINVAL;
    return ring->done_at(offset) ? RTE_ETH_TX_DESC_DONE : RTE_ETH_TX_DESC_FULL;
}

// ---- probing ------------------------------------------------------------------------------------
int refuse(const rte_pci_device* pci, std::string_view why) {
    TULIP_LOG(ERR, "%s: %s\n", pci->name, why.data());
    return -EIO;
}

int set_up(rte_eth_dev* device) {
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
        TULIP_LOG(ERR, "only the primary process may use this port\n");
        return -ENOTSUP;
    }
    rte_pci_device* pci = RTE_ETH_DEV_TO_PCI(device);
    void* bar = pci->mem_resource[kRegistersBar].addr;
    if (bar == nullptr || pci->mem_resource[kRegistersBar].len < kBarOctets)
        return refuse(pci,
                      "its registers are not mapped; bind it with dpdk-devbind.py to "
                      "uio_pci_generic or vfio-pci");
    PortArguments arguments;
    if (const int error = parse_arguments(pci->device.devargs, arguments); error != 0) return error;
    // uio leaves this off (vfio does not): without it the chip reads no descriptor.
    if (rte_pci_set_bus_master(pci, true) != 0)
        return refuse(pci, "bus mastering cannot be switched on; run as root");
    const Model model = pci->id.device_id == kDevice21140 ? Model::k21140 : Model::k21143;
    Port* port = new (std::nothrow) Port(device, model, bar);
    if (port == nullptr) return -ENOMEM;
    if (const Fault fault = port->probe(arguments); fault != Fault::kNone) {
        delete port;
        return refuse(pci, text_of(fault));
    }
    static_cast<Private*>(device->data->dev_private)->port = port;
    device->data->mac_addrs =
        static_cast<rte_ether_addr*>(rte_zmalloc("tulip_mac", sizeof(rte_ether_addr), 0));
    if (device->data->mac_addrs == nullptr) {
        delete port;
        return -ENOMEM;
    }
    std::copy_n(port->address().begin(), 6, device->data->mac_addrs->addr_bytes);
    device->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
    device->dev_ops = &kOperations;
    device->rx_pkt_burst = rx_burst;
    device->tx_pkt_burst = tx_burst;
    device->rx_descriptor_status = rx_status;
    device->tx_descriptor_status = tx_status;
    return 0;
}

int on_probe(rte_pci_driver* /*driver*/, rte_pci_device* device) {
    return rte_eth_dev_pci_generic_probe(device, sizeof(Private), set_up);
}

int on_remove(rte_pci_device* device) { return rte_eth_dev_pci_generic_remove(device, on_close); }

/// A constant: DPDK's registration runs before any other initialisation.
constexpr rte_pci_driver make_driver() {
    rte_pci_driver driver{};
    driver.id_table = kIds.data();
    driver.drv_flags = RTE_PCI_DRV_NEED_MAPPING;
    driver.probe = on_probe;
    driver.remove = on_remove;
    return driver;
}
constinit rte_pci_driver g_driver = make_driver();

}  // namespace
}  // namespace ulc::tulip

RTE_INIT(ulc_tulip_log) {
    ulc::tulip::g_log_type = rte_log_register_type_and_pick_level("pmd.net.tulip", RTE_LOG_NOTICE);
}
RTE_PMD_REGISTER_PCI(net_tulip, ulc::tulip::g_driver);
RTE_PMD_REGISTER_KMOD_DEP(net_tulip, "* uio_pci_generic | vfio-pci");
RTE_PMD_REGISTER_PARAM_STRING(net_tulip,
                              "mac=<address> media=auto|10half|10full|100half|100full "
                              "tx_threshold=128|256|512|1024|whole collision_retries=<0-100>");
